"""confusion: confusions by shape and by texture.

Draw the share of the answers to each class, in the conflict trials. Drawn from observers whose bias is known, on
drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("confusion", planted("cue_conflict"))
picture.save(picture_of(__file__))
