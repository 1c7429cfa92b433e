"""distorted_predictions: distorted predictions.

Draw how many answers are right among all classes, and how many a restricted label space adds (Fig. I). Drawn from
observers whose bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("distorted_predictions", planted("cue_conflict", "refined_bias"))
picture.save(picture_of(__file__))
