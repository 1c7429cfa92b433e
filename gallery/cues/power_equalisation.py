"""power_equalisation: give the image the amplitude spectrum of a whole set of images.

One sees the drawing, then the cue with ``exponent`` = 0.5, 1.0, 1.5.
"""

from gallery.shared import save, thing

from cuebench.cues import power_equalisation

image, _ = thing()
save(__file__, image, *(power_equalisation(image, exponent=value) for value in (0.5, 1.0, 1.5)))
