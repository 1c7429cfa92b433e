"""texture_confidence: confidence on pictures of textures.

Draw a histogram of top-1 confidence on texture pictures for each observer of a run. Drawn from observers whose bias
is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("texture_confidence", planted("texture_association"))
picture.save(picture_of(__file__))
