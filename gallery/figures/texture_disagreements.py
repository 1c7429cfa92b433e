"""texture_disagreements: people see another texture than TID

Draw photographs on which people and TID disagree, the most frequent pair of words first. Drawn from observers whose
bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import judged, picture_of

from cuebench.reports.draw import draw

run, answers = judged()
picture = draw("texture_disagreements", run, {"answers": str(answers)})
picture.save(picture_of(__file__))
