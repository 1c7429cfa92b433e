"""texture_of: which texture a model sees in one image.

``cuebench texture-of IMAGE`` makes such a card from a run of texture association; here the result is written by hand.
"""

from gallery.shared import picture_of, thing
from PIL import Image

from cuebench.analyses.texture_of import TextureOf, Tie
from cuebench.registry import figures

textures = (Tie("striped", 0.62), Tie("zigzagged", 0.2), Tie("woven", 0.05))
classes = (Tie("zebra", 0.7), Tie("bicycle", 0.15), Tie("tiger", 0.05))
result = TextureOf("a network", "striped", 0.62, textures, classes, classes, "bicycle", None, "it looks striped")
texture_of = figures.get("texture_of")
texture_of(result, Image.fromarray(thing("bicycle")[0])).save(picture_of(__file__))
