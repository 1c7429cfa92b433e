"""voronoi_shuffle: fill each cell of a random Voronoi diagram with a randomly shifted part of the image.

One sees the drawing, then the cue with ``sites`` = 8, 32, 128.
"""

from gallery.shared import save, thing

from cuebench.cues import voronoi_shuffle

image, _ = thing()
save(__file__, image, *(voronoi_shuffle(image, sites=value) for value in (8, 32, 128)))
