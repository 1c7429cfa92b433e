"""texture_judgements: people and identified textures.

Draw the agreement of people with the identified textures. Drawn from a model of grey levels, to which pictures of
one grey are shown and two people judge: it shows how the figure looks, and says nothing about networks.
"""

from gallery.shared import judged, picture_of

from cuebench.reports.draw import draw

run, answers = judged()
picture = draw("texture_judgements", run, {"answers": str(answers)})
picture.save(picture_of(__file__))
