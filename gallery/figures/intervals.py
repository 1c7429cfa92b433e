"""intervals: headline with intervals and tie groups.

Draw the headline with its intervals and tie groups. Drawn from observers whose bias is known, on drawn stimuli: it
shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("intervals", planted("cue_conflict"))
picture.save(picture_of(__file__))
