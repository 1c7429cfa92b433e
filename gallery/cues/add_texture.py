"""add_texture: add a texture cue of one class to a shape cue of another, and clip.

One sees both images, then their mixture with the default weights, and with more texture.
"""

from gallery.shared import save, thing

from cuebench.cues import add_texture, texture_residual

image, _ = thing("clock")
other = texture_residual(thing("car")[0], steps=4096)
save(__file__, image, other, add_texture(image, other), add_texture(image, other, gamma_s=0.4, gamma_t=0.6))
