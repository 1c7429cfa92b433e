"""patch_shuffle: cut the image into ``grid`` × ``grid`` patches and put them back in random order.

One sees the drawing, then the cue with ``grid`` = 2, 4, 8.
"""

from gallery.shared import save, thing

from cuebench.cues import patch_shuffle

image, _ = thing()
save(__file__, image, *(patch_shuffle(image, grid=value) for value in (2, 4, 8)))
