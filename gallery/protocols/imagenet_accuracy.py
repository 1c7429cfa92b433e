"""imagenet_accuracy: top-1 and top-5 accuracy on ImageNet photographs.

Observers whose bias is known answer drawn stimuli; one sees some of these, and the headline of each observer with its
interval. Where a protocol orders observers from texture to shape, the two ideal ones lie at its ends.
"""

from gallery.shared import examples, picture_of, planted

from cuebench import load
from cuebench.reports.draw import draw

run = planted("imagenet_accuracy")
print(load(run))
examples(__file__, run)
draw("intervals", run, {"protocol": "imagenet_accuracy"}).save(picture_of(__file__))
