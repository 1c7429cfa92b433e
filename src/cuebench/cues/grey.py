"""Luminance, and the grey level that the published corruptions use for borders and means."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import is_tensor

WEIGHTS = (0.2125, 0.7154, 0.0721)
"""Red, green and blue parts of luminance."""
MEAN_GREY = 0.4423
"""Mean grey level of the published corruption study: border of the low-pass, mean of the high-pass."""


def luminance(image: Array) -> Array:
    """Return H×W×1 luminance of an H×W×C image (or of each of a tensor); a grey image is returned as it is."""
    if image.shape[-1] == 1:
        return image
    if is_tensor(image):
        red, green, blue = WEIGHTS
        return image[..., :1] * red + image[..., 1:2] * green + image[..., 2:] * blue
    return image @ np.asarray(WEIGHTS, dtype=image.dtype)[:, None]


def as_grey(image: Array, keep_colour: bool) -> Array:
    """Return the image itself, or its luminance unless colour is to be kept."""
    return image if keep_colour else luminance(image)
