"""corruption_robustness: relative robustness to contrast, high-pass, low-pass, noise and phase noise.

Observers whose bias is known answer drawn stimuli; one sees some of these, and the headline of each observer with its
interval. Where a protocol orders observers from texture to shape, the two ideal ones lie at its ends.
"""

from gallery.shared import examples, picture_of, planted

from cuebench import load
from cuebench.reports.draw import draw

run = planted("corruption_robustness")
print(load(run))
examples(__file__, run)
draw("intervals", run, {"protocol": "corruption_robustness"}).save(picture_of(__file__))
