"""saturation: scale the difference of each pixel from its luminance.

One sees the drawing, then the cue with ``factor`` = 0.0, 0.5, 2.0.
"""

from gallery.shared import save, thing

from cuebench.cues import saturation

image, _ = thing()
save(__file__, image, *(saturation(image, factor=value) for value in (0.0, 0.5, 2.0)))
