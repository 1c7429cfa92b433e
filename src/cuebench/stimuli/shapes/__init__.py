"""Novel closed shapes: smooth, angular, concave and with holes; nothing that a network was trained to name.

>>> from cuebench.stimuli.shapes import mask, names
>>> mask("dax", 64).shape
(64, 64)
>>> len(names()) >= 16
True

Any two of them differ by at least ``MIN_DISTANCE`` however one of them is turned, mirrored or scaled; see ``distance``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

from cuebench.errors import did_you_mean
from cuebench.stimuli.shapes._drawings import SHAPES
from cuebench.stimuli.shapes._outline import Mask
from cuebench.stimuli.shapes._outline import mask as _filled

VERSION = 1
"""A change of any pixel is a new version: pictures of two versions must never be mixed."""
MIN_DISTANCE = 0.20
"""The smallest distance of two shapes that is promised; the test measures all pairs."""
_GRID, _TURNS = 96, 24


def names(kind: str = "") -> list[str]:
    """Return the names of all shapes in their own order, or of one kind: smooth, angular, concave, holes."""
    return [name for name, shape in SHAPES.items() if kind in ("", shape.kind)]


def kind(name: str) -> str:
    """Return what kind of shape it is."""
    return SHAPES[_known(name)].kind


@lru_cache(maxsize=256)
def mask(name: str, size: int = 224) -> Mask:
    """Return a shape as coverage 0 to 255, size × size (read-only); the same bytes on every machine."""
    filled = _filled(SHAPES[_known(name)].parts, size)
    filled.flags.writeable = False
    return filled


def distance(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> float:
    """Return how different two masks are as shapes: 1 − the best overlap over position, size, rotation and mirroring.

    Both are moved to their centroid and scaled to the same area; overlap is intersection over union, the best of 24
    rotations of the second mask and of its mirror image. 0: the same shape; 1: no common point.
    """
    target = _normal(np.asarray(first) > 127)
    turned = (
        _normal(m, turn)
        for m in (np.asarray(second) > 127, (np.asarray(second) > 127)[:, ::-1])
        for turn in range(_TURNS)
    )
    best = max((target & other).sum() / (target | other).sum() for other in turned)
    return float(1 - best)


def _normal(inside: np.ndarray[Any, Any], turn: int = 0) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the mask centred, scaled to a quarter of the grid's area and turned by ``turn`` of 24 steps."""
    y, x = np.nonzero(inside)
    scale = np.sqrt(len(x)) / (_GRID / 2)
    angle = 2 * np.pi * turn / _TURNS
    a, b = scale * np.cos(angle), scale * np.sin(angle)
    middle = (_GRID - 1) / 2
    # Pillow asks where each pixel of the result comes from.
    coefficients = (
        a,
        -b,
        x.mean() + 0.5 - a * (middle + 0.5) + b * (middle + 0.5),
        b,
        a,
        y.mean() + 0.5 - (a + b) * (middle + 0.5),
    )
    image = Image.fromarray((inside * 255).astype(np.uint8))
    turned = image.transform((_GRID, _GRID), Image.Transform.AFFINE, coefficients, Image.Resampling.NEAREST)
    return np.asarray(turned) > 127


def _known(name: str) -> str:
    if name not in SHAPES:
        raise did_you_mean("shape", name, SHAPES)
    return name
