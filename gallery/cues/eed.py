"""eed: smooth an image along its edges and hardly across them, until texture is gone and shape is left.

One sees the drawing, then the cue with ``steps`` = 256, 4096.
"""

from gallery.shared import save, thing

from cuebench.cues import eed

image, _ = thing()
save(__file__, image, *(eed(image, steps=value) for value in (256, 4096)))
