"""calibration: what comes back of a planted weight.

Draw measured against planted values, or the coverage of intervals.
"""

from gallery.shared import picture_of

from cuebench.reports.draw import draw

picture = draw("calibration")
picture.save(picture_of(__file__))
