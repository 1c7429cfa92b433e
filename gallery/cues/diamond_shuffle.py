"""diamond_shuffle: cut the image, closed to a torus, into diamonds and put them back in random order.

One sees the drawing, then the cue with ``grid`` = 4, 8, 16.
"""

from gallery.shared import save, thing

from cuebench.cues import diamond_shuffle

image, _ = thing()
save(__file__, image, *(diamond_shuffle(image, grid=value) for value in (4, 8, 16)))
