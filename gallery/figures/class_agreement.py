"""class_agreement: cue conflict against pure cues.

Draw Kendall's τ between each outcome of cue conflict and each pure cue, as Fig. 3b of Kim et al. 2026. Drawn from
simulated answers of three models and two people to drawings: it shows how the figure looks.
"""

from gallery.shared import answered, picture_of

from cuebench.reports.draw import draw

picture = draw("class_agreement", answered())
picture.save(picture_of(__file__))
