"""study_people: how often every single person was right.

``cuebench study analyse STUDY --out analysis.json`` writes the file that this is drawn from; here
simulated people answer.
"""

from gallery.shared import analysed_study, picture_of

from cuebench.reports.draw import draw

draw("study_people", analysed_study()).save(picture_of(__file__))
