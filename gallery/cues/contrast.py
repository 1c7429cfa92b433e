"""contrast: reduce the contrast.

One sees the drawing, then the cue with ``level`` = 0.5, 0.15, 0.05.
"""

from gallery.shared import save, thing

from cuebench.cues import contrast

image, _ = thing()
save(__file__, image, *(contrast(image, level=value) for value in (0.5, 0.15, 0.05)))
