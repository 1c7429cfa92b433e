"""agreement_matrix: error consistency of all pairs.

Draw the error consistency of all pairs. Drawn from observers whose bias is known, on drawn stimuli: it shows how
the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("agreement_matrix", planted("cue_conflict"))
picture.save(picture_of(__file__))
