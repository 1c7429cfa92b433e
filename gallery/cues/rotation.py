"""rotation: turn the image counter-clockwise about its centre; the size stays.

One sees the drawing, then the cue with ``angle`` = 90, 180, 270.
"""

from gallery.shared import save, thing

from cuebench.cues import rotation

image, _ = thing()
save(__file__, image, *(rotation(image, angle=value) for value in (90, 180, 270)))
