"""bilateral: average each pixel with near pixels of similar colour.

One sees the drawing, then the cue with ``diameter`` = 4, 8, 14.
"""

from gallery.shared import save, thing

from cuebench.cues import bilateral

image, _ = thing()
save(__file__, image, *(bilateral(image, diameter=value) for value in (4, 8, 14)))
