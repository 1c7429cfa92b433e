"""edge_blur: blur an image along its edges only.

One sees the drawing, then the cue with ``sigma`` = 2.0, 8.0.
"""

from gallery.shared import save, thing

from cuebench.cues import edge_blur

image, _ = thing()
save(__file__, image, *(edge_blur(image, sigma=value) for value in (2.0, 8.0)))
