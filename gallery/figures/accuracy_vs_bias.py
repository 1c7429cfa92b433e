"""accuracy_vs_bias: accuracy against bias.

Draw the headline of one protocol against that of another. Drawn from eight networks that do not exist: it shows how
the figure looks, and says nothing about models.
"""

from gallery.shared import models, picture_of

from cuebench.reports.draw import draw

picture = draw("accuracy_vs_bias", models())
picture.save(picture_of(__file__))
