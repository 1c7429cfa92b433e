"""channel_shuffle: exchange the colour channels.

One sees the drawing, then the cue with ``order`` = (1, 2, 0), (2, 1, 0).
"""

from gallery.shared import save, thing

from cuebench.cues import channel_shuffle

image, _ = thing()
save(__file__, image, *(channel_shuffle(image, order=value) for value in ((1, 2, 0), (2, 1, 0))))
