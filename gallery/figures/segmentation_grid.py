"""segmentation_grid: predicted masks of one image and its cues.

Draw the predictions of all observers for one image. Drawn from observers whose bias is known, on drawn stimuli: it
shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("segmentation_grid", planted("cue_decomposition_segmentation"))
picture.save(picture_of(__file__))
