"""triplet_sheet: example triplets.

Draw example trials, a row for each condition.
"""

from gallery.shared import picture_of

from cuebench.reports.draw import draw

picture = draw("triplet_sheet")
picture.save(picture_of(__file__))
