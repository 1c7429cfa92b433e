"""texture_agreement_classes: textures of natural adversarial images, by class.

Draw the share of both textures in every class, those with the most images of the true class's texture first. Drawn
from a model of grey levels, to which pictures of one grey are shown: it shows how the figure looks, and says
nothing about networks.
"""

from gallery.shared import greys, picture_of

from cuebench.reports.draw import draw

picture = draw("texture_agreement_classes", greys())
picture.save(picture_of(__file__))
