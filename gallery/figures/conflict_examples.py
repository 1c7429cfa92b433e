"""conflict_examples: cue-conflict images by what decides the answer.

Draw images whose shape, whose texture, and neither of which decides the answers (Fig. 1b, 4a and G). Drawn from
observers whose bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("conflict_examples", planted("cue_conflict"))
picture.save(picture_of(__file__))
