"""tav_layers: texture association by layer

Draw the mean of the strongest association of each texture, layer by layer. Drawn from observers whose bias is
known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import greys, picture_of

from cuebench.reports.draw import draw

picture = draw("tav_layers", greys())
picture.save(picture_of(__file__))
