"""interior_patches: cover the image with patches cropped from the inside of the object only.

One sees the drawing, then the cue with ``grid`` = 8, 16, 32.
"""

from gallery.shared import save, thing

from cuebench.cues import interior_patches

image, mask = thing()
save(__file__, image, *(interior_patches(image, mask=mask, grid=value) for value in (8, 16, 32)))
