"""silhouette: return the object's silhouette: only the outline of the mask is left of the image.

One sees the drawing, then what is left of it.
"""

from gallery.shared import save, thing

from cuebench.cues import silhouette

image, mask = thing()
save(__file__, image, silhouette(image, mask=mask))
