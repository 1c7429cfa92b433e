"""high_pass: keep only what a Gaussian blur takes away.

One sees the drawing, then the cue with ``sigma`` = 3.0, 1.0, 0.45.
"""

from gallery.shared import save, thing

from cuebench.cues import high_pass

image, _ = thing()
save(__file__, image, *(high_pass(image, sigma=value) for value in (3.0, 1.0, 0.45)))
