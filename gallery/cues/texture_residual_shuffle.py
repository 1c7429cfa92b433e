"""texture_residual_shuffle: return `patch_shuffle` of `texture_residual`: texture without the outlines the residual
still shows.

One sees the drawing, then what is left of it.
"""

from gallery.shared import save, thing

from cuebench.cues import texture_residual_shuffle

image, _ = thing()
save(__file__, image, texture_residual_shuffle(image, steps=4096))
