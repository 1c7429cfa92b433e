"""human_alignment: human alignment: like people on 17 out-of-distribution data sets.

Observers whose bias is known answer drawn stimuli; one sees some of these, and the headline of each observer with its
interval. Where a protocol orders observers from texture to shape, the two ideal ones lie at its ends.
"""

from gallery.shared import examples, picture_of, planted

from cuebench import load
from cuebench.reports.draw import draw

run = planted("human_alignment")
print(load(run))
examples(__file__, run)
draw("intervals", run, {"protocol": "human_alignment"}).save(picture_of(__file__))
