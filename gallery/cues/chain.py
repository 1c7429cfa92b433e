"""chain: apply cues one after the other; floats are passed on, so nothing is rounded in between.

One sees the drawing, then what is left of it.
"""

from gallery.shared import save, thing

from cuebench.cues import chain

image, _ = thing()
save(__file__, image, chain(image))
