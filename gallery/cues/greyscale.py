"""greyscale: mix the image with its luminance.

One sees the drawing, then the cue with ``alpha`` = 0.4, 0.8, 1.0.
"""

from gallery.shared import save, thing

from cuebench.cues import greyscale

image, _ = thing()
save(__file__, image, *(greyscale(image, alpha=value) for value in (0.4, 0.8, 1.0)))
