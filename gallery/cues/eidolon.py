"""eidolon: disturb where things are, in each layer of the image's scale space ("partially coherent disarray").

One sees the drawing, then the cue with ``reach`` = 2.0, 8.0, 32.0.
"""

from gallery.shared import save, thing

from cuebench.cues import eidolon

image, _ = thing()
save(__file__, image, *(eidolon(image, reach=value) for value in (2.0, 8.0, 32.0)))
