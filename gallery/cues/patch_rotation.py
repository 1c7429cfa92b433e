"""patch_rotation: turn each patch of a ``grid`` × ``grid`` cutting by a random angle, in place.

One sees the drawing, then the cue with ``grid`` = 2, 4, 8.
"""

from gallery.shared import save, thing

from cuebench.cues import patch_rotation

image, _ = thing()
save(__file__, image, *(patch_rotation(image, grid=value) for value in (2, 4, 8)))
