"""texture_agreement: what the usual texture of a class is worth.

Draw the shares of all observers with 95 % intervals; panels without any score are left out. Drawn from a model of
grey levels, to which pictures of one grey are shown: it shows how the figure looks, and says nothing about
networks.
"""

from gallery.shared import greys, picture_of

from cuebench.reports.draw import draw

picture = draw("texture_agreement", greys())
picture.save(picture_of(__file__))
