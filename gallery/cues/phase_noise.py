"""phase_noise: shift the phase of each spatial frequency by a random angle.

One sees the drawing, then the cue with ``width`` = 30.0, 90.0, 180.0.
"""

from gallery.shared import save, thing

from cuebench.cues import phase_noise

image, _ = thing()
save(__file__, image, *(phase_noise(image, width=value) for value in (30.0, 90.0, 180.0)))
