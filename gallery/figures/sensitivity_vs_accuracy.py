"""sensitivity_vs_accuracy: sensitivity and performance.

Draw each sensitivity and the preference against accuracy and robustness (Fig. 8 and 9 of Kim et al. 2026). Drawn
from eight networks that do not exist: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import models, picture_of

from cuebench.reports.draw import draw

picture = draw("sensitivity_vs_accuracy", models())
picture.save(picture_of(__file__))
