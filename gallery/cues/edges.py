"""edges: return the edges of the image's luminance.

One sees the drawing, then the cue with ``method`` = canny, sobel.
"""

from gallery.shared import save, thing

from cuebench.cues import edges

image, _ = thing()
save(__file__, image, *(edges(image, method=value) for value in ("canny", "sobel")))
