"""sketch: draw the image in dark strokes on white.

One sees the drawing, then the cue with ``sigma`` = 1.0, 2.0.
"""

from gallery.shared import save, thing

from cuebench.cues import sketch

image, _ = thing()
save(__file__, image, *(sketch(image, sigma=value) for value in (1.0, 2.0)))
