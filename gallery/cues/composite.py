"""composite: fade everything but the object to a background, then shrink and place it.

One sees the drawing, then the cue with ``size`` = 1.0, 0.6, 0.3.
"""

from gallery.shared import save, thing

from cuebench.cues import composite

image, mask = thing()
save(__file__, image, *(composite(image, mask=mask, size=value) for value in (1.0, 0.6, 0.3)))
