"""triplet_curves: triplet shape bias.

Draw shape bias over the conditions of the three experiments, with dashed lines for random initialisations. Drawn
from observers whose bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("triplet_curves", planted("triplets"))
picture.save(picture_of(__file__))
