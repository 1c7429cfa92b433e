"""Which pixels of a mask file are the object: one rule for the masks of `cue` and of `make`."""

from __future__ import annotations

import numpy as np
from PIL import Image

from cuebench.arrays import Array

HALF = 127
"""Pixels above it are the object: those of an edge that was smoothed, or blurred by JPEG, fall to the nearer side."""
_FEW = 0.01
"""Share of the pixels up to which dark greys are no sign of anything."""


def object_pixels(mask: Image.Image) -> Array:
    """Return the object of a mask, bool H×W.

    The object is what is opaque, where parts are transparent; otherwise what is white. Of a mask of black and one other
    value it is that value, and of a palette with colours it is every index but 0, as in VOC.

    Raises
    ------
    ValueError
        Numbers of classes cannot be told from greys, nor can values of 16 bits whose white is not known.
    """
    if mask.has_transparency_data:
        alpha = np.asarray(mask.convert("RGBA").getchannel("A"))
        if alpha.min() < alpha.max():
            return alpha > HALF
    if mask.mode == "P" and not _is_grey(mask):
        return np.asarray(mask) != 0
    deep = mask.mode in ("I", "F") or mask.mode.startswith("I;16")
    values = np.asarray(mask if deep else mask.convert("L"))
    levels = np.unique(values)
    if len(levels) == 2 and levels[0] == 0:
        return values != 0
    if deep and len(levels) > 1:
        raise ValueError("16 bits or more in a channel; save it with 8")
    dark, light = np.count_nonzero((values > 0) & (values <= HALF)), np.count_nonzero((values > HALF) & (values < 255))
    # An edge has dark greys and light ones. Numbers of classes are dark ones only, even where 255 is beside them.
    if 0 < levels[-1] <= HALF or (dark > 4 * light and dark > _FEW * values.size):
        few = f"at most {levels[-1]}" if levels[-1] <= HALF else f"mostly dark greys ({dark:,} pixels; {light:,} light)"
        raise ValueError(
            f"its values are {few}: white (255) is the object; "
            "numbers of classes, as in a trimap, are not read as masks"
        )
    return values > HALF


def _is_grey(mask: Image.Image) -> bool:
    """Tell whether the colours that a palette picture uses are greys: then it is a grey picture in another form."""
    colours = mask.convert("RGB").getcolors(256) or []
    return all(len(set(colour)) == 1 for _, colour in colours if isinstance(colour, tuple))
