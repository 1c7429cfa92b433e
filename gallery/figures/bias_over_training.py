"""bias_over_training: the bias of a network, epoch by epoch.

The file is what the callback ``BiasOverTraining`` writes; here its numbers are made up: one network learns to name
shapes, another one textures.
"""

import json

from gallery.shared import picture_of

from cuebench.reports.draw import draw

history = []
for epoch in range(9):
    learned = 1 - 0.6**epoch
    values = {"shapes/triplet_shape_bias": 0.4 + 0.5 * learned, "textures/triplet_shape_bias": 0.4 - 0.3 * learned}
    low, high = ({k: v + move for k, v in values.items()} for move in (-0.05, 0.05))
    history.append({"epoch": epoch, "values": values, "low": low, "high": high})
file = picture_of(__file__, ".json")
file.write_text(json.dumps(history))
draw("bias_over_training", file).save(picture_of(__file__))
