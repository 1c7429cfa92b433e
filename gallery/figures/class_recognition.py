"""class_recognition: recognition by class.

Draw the accuracy of models (bars) and people (diamonds) for every class, as Fig. 4 and 7 of Kim et al. 2026. Drawn
from simulated answers of three models and two people to drawings: it shows how the figure looks.
"""

from gallery.shared import answered, picture_of

from cuebench.reports.draw import draw

picture = draw("class_recognition", answered())
picture.save(picture_of(__file__))
