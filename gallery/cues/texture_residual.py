"""texture_residual: return the difference of the image and its edge-enhancing diffusion, moved to mid-grey.

One sees the drawing, then what is left of it.
"""

from gallery.shared import save, thing

from cuebench.cues import texture_residual

image, _ = thing()
save(__file__, image, texture_residual(image, steps=4096))
