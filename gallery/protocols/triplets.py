"""triplets: developmental triplets: which match is more like the anchor.

Observers whose bias is known answer drawn stimuli; one sees some of these, and the headline of each observer with its
interval. Where a protocol orders observers from texture to shape, the two ideal ones lie at its ends.
"""

from gallery.shared import examples, picture_of, planted

from cuebench import load
from cuebench.reports.draw import draw

run = planted("triplets")
print(load(run))
examples(__file__, run)
draw("intervals", run, {"protocol": "triplets"}).save(picture_of(__file__))
