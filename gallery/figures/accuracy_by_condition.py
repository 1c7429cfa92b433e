"""accuracy_by_condition: accuracy by condition.

Draw the accuracy of every observer in every condition. Drawn from observers whose bias is known, on drawn stimuli:
it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("accuracy_by_condition", planted("human_alignment"))
picture.save(picture_of(__file__))
