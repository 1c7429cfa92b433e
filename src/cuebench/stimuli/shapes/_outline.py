"""From control points to a mask, in arithmetic that gives the same bits on every machine.

Curves are Catmull–Rom splines (sums and products only); every corner is rounded to a whole number of the fine grid
before anything is filled, and the fine mask is averaged in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

Point = tuple[float, float]
Points = Sequence[Point]
Mask = np.ndarray[Any, np.dtype[np.uint8]]

FINE = 4
"""Fine pixels along a pixel: 17 levels of coverage at an edge."""
FILL = 0.92
"""The part of the picture's half-width that the unit of the control points takes: shapes keep clear of the border."""
_STEPS = 24  # straight pieces between two control points of a curve


class Part(NamedTuple):
    """A closed outline in [−1, 1]² (x to the right, y down), filled, or cut out of what was filled before."""

    points: tuple[Point, ...]
    cut: bool = False


class Shape(NamedTuple):
    """A novel shape: what kind it is, and its parts in the order of drawing."""

    kind: str
    parts: tuple[Part, ...]


def polygon(*points: Point, cut: bool = False) -> Part:
    """Return straight edges between the points."""
    return Part(points, cut)


def curve(*points: Point, cut: bool = False) -> Part:
    """Return a smooth closed curve through the points."""
    return Part(tuple(_spline([*points], closed=True)), cut)


def stroke(*points: Point, width: float | Sequence[float], cut: bool = False) -> list[Part]:
    """Return a thick smooth line through the points, with round ends; ``width`` may change along it."""
    path = np.array(_spline([*points], closed=False))
    widths = [width] * len(points) if isinstance(width, float | int) else list(width)
    thick = np.interp(np.linspace(0, len(points) - 1, len(path)), np.arange(len(points)), widths)
    return [disc(float(x), float(y), float(w) / 2, cut=cut) for (x, y), w in zip(path, thick)]


def disc(x: float, y: float, rx: float, ry: float = 0.0, cut: bool = False) -> Part:
    """Return an ellipse; its points come from a rational circle, which needs no sine."""
    quarter = np.linspace(0, 1, 17)[:-1]
    c, s = (1 - quarter**2) / (1 + quarter**2), 2 * quarter / (1 + quarter**2)
    circle = [(c, s), (-s, c), (-c, -s), (s, -c)]
    tall = ry or rx
    return Part(tuple((x + rx * float(a), y + tall * float(b)) for u, v in circle for a, b in zip(u, v)), cut)


def mask(parts: Sequence[Part], size: int) -> Mask:
    """Fill the parts: coverage 0 to 255, size × size."""
    fine = Image.new("L", (size * FINE, size * FINE), 0)
    pen = ImageDraw.Draw(fine)
    half = size * FINE / 2
    for part in parts:
        grid = [(round(half + half * FILL * x), round(half + half * FILL * y)) for x, y in part.points]
        pen.polygon(grid, fill=0 if part.cut else 1)
    counted = np.asarray(fine, np.uint32).reshape(size, FINE, size, FINE).sum(axis=(1, 3))
    return ((counted * 255 + FINE * FINE // 2) // (FINE * FINE)).astype(np.uint8)


def _spline(points: list[Point], *, closed: bool) -> list[Point]:
    p = np.array(points, np.float64)
    around = (
        np.concatenate([p[-1:], p, p[:2]]) if closed else np.concatenate([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    )
    t = (np.arange(_STEPS) / _STEPS)[:, None]
    pieces = []
    for a, b, c, d in zip(around, around[1:], around[2:], around[3:]):
        pieces.append(
            0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - a - 3 * c + d) * t * t * t)
        )
    found = np.concatenate(pieces)
    if not closed:
        found = np.concatenate([found, p[-1:]])
    return [(float(x), float(y)) for x, y in found]
