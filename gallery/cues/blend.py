"""blend: blend a shape cue of one class with a texture cue of another.

One sees both images, then their mixture with the default weights, and with more texture.
"""

from gallery.shared import save, thing

from cuebench.cues import blend

image, _ = thing("clock")
other, _ = thing("car")
save(__file__, image, other, blend(image, other), blend(image, other, gamma_s=0.4, gamma_t=0.6))
