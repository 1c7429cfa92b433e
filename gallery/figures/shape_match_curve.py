"""shape_match_curve: shape match behind stripes.

Draw how the shape match changes with the contrast of the stripes. Drawn from observers whose bias is known, on
drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("shape_match_curve", planted("striped_objects"))
picture.save(picture_of(__file__))
