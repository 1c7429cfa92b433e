"""accuracy_vs_consistency: accuracy against error consistency.

Draw one mark for each observer, and the bound of its error consistency above it. Drawn from observers whose bias is
known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("accuracy_vs_consistency", planted("human_alignment"))
picture.save(picture_of(__file__))
