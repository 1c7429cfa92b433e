"""low_pass: blur with a Gaussian (cut off at 4 σ); outside the image lies the constant `border`.

One sees the drawing, then the cue with ``sigma`` = 1.0, 3.0, 7.0.
"""

from gallery.shared import save, thing

from cuebench.cues import low_pass

image, _ = thing()
save(__file__, image, *(low_pass(image, sigma=value) for value in (1.0, 3.0, 7.0)))
