"""uniform_noise: lower the contrast, then add independent uniform noise to each pixel.

One sees the drawing, then the cue with ``width`` = 0.05, 0.2, 0.6.
"""

from gallery.shared import save, thing

from cuebench.cues import uniform_noise

image, _ = thing()
save(__file__, image, *(uniform_noise(image, width=value) for value in (0.05, 0.2, 0.6)))
