"""profile: the headlines of all protocols.

Draw the headline of every protocol for every observer. Drawn from observers whose bias is known, on drawn stimuli:
it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("profile", planted("cue_conflict", "refined_bias", "triplets"))
picture.save(picture_of(__file__))
