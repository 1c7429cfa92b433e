"""tav_bars: strongest texture associations.

Draw the pairs with the largest TAV as bars, with their 95 % intervals over pictures. Drawn from observers whose
bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("tav_bars", planted("texture_association"))
picture.save(picture_of(__file__))
