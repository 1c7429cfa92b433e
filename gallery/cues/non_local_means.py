"""non_local_means: average each pixel with pixels whose surroundings look alike.

One sees the drawing, then the cue with ``strength`` = 5, 15, 25.
"""

from gallery.shared import save, thing

from cuebench.cues import non_local_means

image, _ = thing()
save(__file__, image, *(non_local_means(image, strength=value) for value in (5, 15, 25)))
