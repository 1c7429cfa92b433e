"""tav_layers: texture association by layer.

Draw the mean of the strongest association of each texture, layer by layer. Drawn from a model of grey levels, to
which pictures of one grey are shown: it shows how the figure looks, and says nothing about networks.
"""

from gallery.shared import greys, picture_of

from cuebench.reports.draw import draw

picture = draw("tav_layers", greys())
picture.save(picture_of(__file__))
