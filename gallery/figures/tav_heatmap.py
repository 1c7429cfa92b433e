"""tav_heatmap: texture association.

Draw the strongest part of the association matrix. Drawn from observers whose bias is known, on drawn stimuli: it
shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("tav_heatmap", planted("texture_association"))
picture.save(picture_of(__file__))
