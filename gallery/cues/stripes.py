"""stripes: blend the image with a sine grating of random phase.

One sees the drawing, then the cue with ``contrast`` = 0.25, 0.5, 0.75.
"""

from cuebench_stripes.stripes import stripes
from gallery.shared import save, thing

image, _ = thing()
save(__file__, image, *(stripes(image, contrast=value) for value in (0.25, 0.5, 0.75)))
