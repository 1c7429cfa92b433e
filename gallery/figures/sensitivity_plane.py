"""sensitivity_plane: sensitivity to shape and to texture.

Draw the shape axis against the texture axis. Drawn from observers whose bias is known, on drawn stimuli: it shows
how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("sensitivity_plane", planted("refined_bias"))
picture.save(picture_of(__file__))
