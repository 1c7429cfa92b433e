"""texturedness: texturedness.

Draw the mean texturedness of all observers with 95 % intervals. Drawn from a model of grey levels, to which
pictures of one grey are shown: it shows how the figure looks, and says nothing about networks.
"""

from gallery.shared import greys, picture_of

from cuebench.reports.draw import draw

picture = draw("texturedness", greys())
picture.save(picture_of(__file__))
