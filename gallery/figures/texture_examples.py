"""texture_examples: photographs by identified texture.

Draw photographs with the same identified texture, the most textured first. Drawn from observers whose bias is
known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("texture_examples", planted("texture_association"))
picture.save(picture_of(__file__))
