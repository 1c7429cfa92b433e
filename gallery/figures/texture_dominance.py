"""texture_dominance: textures in the classes of a model.

Draw the scatter by label and by prediction, one above the other. Drawn from observers whose bias is known, on drawn
stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("texture_dominance", planted("texture_association"))
picture.save(picture_of(__file__))
