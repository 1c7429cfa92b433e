"""contours: draw the structural contours of an object in white on black; nothing is drawn outside the object.

One sees the drawing, then what is left of it.
"""

from gallery.shared import save, thing

from cuebench.cues import contours

image, mask = thing()
save(__file__, image, contours(image, mask=mask))
