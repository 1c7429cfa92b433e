"""contour_overlay: contours over cue-conflict images.

Draw structure over cue-conflict images: whose shape is it? (Fig. 3a and F of Kim et al. 2026) Drawn from observers
whose bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("contour_overlay", planted("cue_conflict"))
picture.save(picture_of(__file__))
