"""mean_shift: move each pixel's colour to the nearest mode of the colours around it.

One sees the drawing, then what is left of it.
"""

from gallery.shared import save, thing

from cuebench.cues import mean_shift

image, _ = thing()
save(__file__, image, mean_shift(image))
