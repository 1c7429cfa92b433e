"""layer_profile: shape bias by layer.

Draw where in the network shape wins. Drawn from numbers of three layers that are made up: it shows how the figure
looks, and says nothing about models.
"""

from gallery.shared import layers, picture_of

from cuebench.reports.draw import draw

picture = draw("layer_profile", layers())
picture.save(picture_of(__file__))
