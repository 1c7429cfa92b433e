"""gaussian_blur: convolve with a k×k Gaussian.

One sees the drawing, then the cue with ``kernel`` = 5, 9, 15.
"""

from gallery.shared import save, thing

from cuebench.cues import gaussian_blur

image, _ = thing()
save(__file__, image, *(gaussian_blur(image, kernel=value) for value in (5, 9, 15)))
