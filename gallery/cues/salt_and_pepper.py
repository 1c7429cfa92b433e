"""salt_and_pepper: lower the contrast, then set a part of the pixels to white or black, each with half the
probability.

One sees the drawing, then the cue with ``probability`` = 0.1, 0.35, 0.8.
"""

from gallery.shared import save, thing

from cuebench.cues import salt_and_pepper

image, _ = thing()
save(__file__, image, *(salt_and_pepper(image, probability=value) for value in (0.1, 0.35, 0.8)))
