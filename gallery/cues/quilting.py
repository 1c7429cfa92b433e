"""quilting: synthesise texture of the image's own size by quilting blocks of it.

One sees the drawing, then the cue with ``block`` = 12, 20.
"""

from gallery.shared import save, thing

from cuebench.cues import quilting

image, mask = thing()
save(__file__, image, *(quilting(image, inside=mask, block=value) for value in (12, 20)))
