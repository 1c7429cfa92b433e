"""consistency_matrix: error consistency of all pairs.

Draw a square for each pair of observers; people with each other lie on the diagonal. Drawn from observers whose
bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("consistency_matrix", planted("human_alignment"))
picture.save(picture_of(__file__))
