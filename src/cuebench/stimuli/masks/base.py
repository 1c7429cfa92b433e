"""The contract of segmenters: their form, and the checks of a mask."""

from __future__ import annotations

from collections.abc import Callable

from cuebench.arrays import Array
from cuebench.errors import UserError

Segmenter = Callable[[Array, str], Array]
"""``segment(image, label) -> mask``: uint8 H×W×3 and the name of the class → bool H×W."""


class BadSource(UserError):
    """An image or a mask that no cue can be made of."""


def checked(mask: Array) -> Array:
    """Return the mask; refuse one that is empty or fills the image."""
    if not mask.any():
        raise BadSource("the mask is empty")
    if mask.all():
        raise BadSource("the mask fills the whole image: it has no outline")
    return mask
