"""Convert any picture to eight bits of red, green and blue: nothing is clipped, nothing invisible becomes black.

Pictures of eight bits without transparency, which all published stimuli are, are converted by Pillow's
``convert("RGB")``.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from cuebench.arrays import Pixels

_SIXTEEN = 65535
_LARGEST = {"I": 2**31 - 1, "F": 1.0}
"""Mode → white. Pixels of 32 bits use their whole range, floating-point ones 0 to 1; every mode I;16… is of 16 bits."""
DARKEST = 1 / 16
"""A deep picture whose brightest pixel is not above this share of white is refused: it holds 8, 10 or 12 bits in a
wider type, and would turn black without a word."""
_WIDENED = {"PNG", "PPM"}
"""Formats of 16 bits that some versions of Pillow open as 32."""


def to_rgb(image: Image.Image) -> Image.Image:
    """Return a loaded image as RGB: transparent parts on white, deep pixels scaled by the range of their type.

    Raises
    ------
    ValueError
        Deep pixels outside the range of their type, or in a small part of it: what they mean cannot be known.
    """
    if image.mode in _LARGEST or image.mode.startswith("I;16"):
        return Image.fromarray(_eight_bits(image)).convert("RGB")
    if image.has_transparency_data:
        layers = image.convert("RGBA")
        if layers.getchannel("A").getextrema() != (255, 255):
            return Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers).convert("RGB")
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Pixels:
    sixteen = image.mode.startswith("I;16") or (image.mode == "I" and image.format in _WIDENED)
    white = _SIXTEEN if sixteen else _LARGEST[image.mode]
    values = np.asarray(image).astype(np.float64) / white
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"pixels of mode {image.mode} must lie between 0 and {white:g}")
    if 0 < values.max(initial=0) <= DARKEST:
        brightest = f"{values.max() * white:g} of {white:g}"
        raise ValueError(f"its brightest pixel is {brightest}, it would be shown as black: save it with 8 bits")
    return np.rint(values * 255).astype(np.uint8)
