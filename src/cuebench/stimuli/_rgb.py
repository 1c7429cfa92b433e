"""Convert any picture to eight bits of red, green and blue: nothing is clipped, nothing invisible becomes black.

Pictures of eight bits without transparency, which all published stimuli are, are converted by Pillow's
``convert("RGB")``.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from cuebench.arrays import Pixels
from cuebench.stimuli._depth import SIXTEEN, too_dark

WHITE = "white"

_LARGEST = {"I": 2**31 - 1, "F": 1.0}
"""Mode → white. Pixels of 32 bits use their whole range, floating-point ones 0 to 1; every mode I;16… is of 16 bits."""
_WIDENED = {"PNG", "PPM"}
"""Formats of 16 bits that some versions of Pillow open as 32."""


def to_rgb(image: Image.Image, background: str = WHITE) -> Image.Image:
    """Return a loaded image as RGB: transparent parts on a colour, deep pixels scaled by the range of their type.

    Raises
    ------
    ValueError
        Deep pixels outside the range of their type, or in a small part of it: what they mean cannot be known.
    """
    if _is_deep(image):
        return Image.fromarray(_eight_bits(image)).convert("RGB")
    layers = _layers(image)
    if layers is not None:
        return Image.alpha_composite(Image.new("RGBA", layers.size, background), layers).convert("RGB")
    return image.convert("RGB")


def is_plain(image: Image.Image) -> bool:
    """Tell whether a browser shows a loaded picture as `to_rgb` makes it: 8 bits, nothing transparent, no inks."""
    return image.mode != "CMYK" and not _is_deep(image) and _layers(image) is None


def has_transparent_parts(image: Image.Image) -> bool:
    """Tell whether what a loaded image is put on can be seen."""
    return not _is_deep(image) and _layers(image) is not None


def _is_deep(image: Image.Image) -> bool:
    return image.mode in _LARGEST or image.mode.startswith("I;16")


def _layers(image: Image.Image) -> Image.Image | None:
    """Return a picture with its transparency; None where nothing of it is transparent."""
    layers = image.convert("RGBA") if image.has_transparency_data else None
    return layers if layers is not None and layers.getchannel("A").getextrema() != (255, 255) else None


def _eight_bits(image: Image.Image) -> Pixels:
    sixteen = image.mode.startswith("I;16") or (image.mode == "I" and image.format in _WIDENED)
    white = SIXTEEN if sixteen else _LARGEST[image.mode]
    values = np.asarray(image).astype(np.float64) / white
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"pixels of mode {image.mode} must lie between 0 and {white:g}")
    if problem := too_dark(values.max(initial=0) * white, white):
        raise ValueError(problem)
    return np.rint(values * 255).astype(np.uint8)
