"""corruption_curves: robustness to corruptions.

Draw the quality at every level, mildest first, one panel for each corruption. Drawn from observers whose bias is
known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("corruption_curves", planted("corruption_robustness"))
picture.save(picture_of(__file__))
