"""texture_judgements: people and identified textures

Draw the agreement of people with the identified textures. Drawn from observers whose bias is known, on drawn
stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import judged, picture_of

from cuebench.reports.draw import draw

run, answers = judged()
picture = draw("texture_judgements", run, {"answers": str(answers)})
picture.save(picture_of(__file__))
