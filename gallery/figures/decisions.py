"""decisions: what every observer answered to one image.

Draw who answered what to one image, with the image where its file is still there. Drawn from observers whose bias
is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("decisions", planted("cue_conflict"))
picture.save(picture_of(__file__))
