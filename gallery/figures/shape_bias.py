"""shape_bias: shape bias class by class.

Draw the share of shape decisions in each class and over all classes. Drawn from observers whose bias is known, on
drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("shape_bias", planted("cue_conflict"))
picture.save(picture_of(__file__))
