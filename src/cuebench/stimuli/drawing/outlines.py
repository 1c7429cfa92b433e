"""From control points to a mask: closed outlines, curves through points, and how a shape lies in a picture.

A shape is a sequence of parts in [−1, 1]² (x to the right, y down). Each part is filled, or cut out of what was filled
before. ``disc``, ``brush`` and ``curve`` use sums, products and quotients only, and without a pose every corner is
rounded to a whole number of the fine grid, so that such a mask has the same bits on every machine. ``ellipse`` and
``line`` use sines and square roots.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from cuebench.arrays import Floats, Pixels

Point = tuple[float, float]

FINE = 4
"""Fine pixels along a pixel: 17 levels of coverage at an edge."""
FILL = 0.92
"""Without a pose, the unit of the control points is this part of half the picture's width: shapes keep clear of the
border."""
STEPS = 24
"""Straight pieces between two control points of a curve."""
_ELLIPSE = 96  # corners of an ellipse


class Part(NamedTuple):
    """A closed outline in [−1, 1]², filled, or cut out of what was filled before."""

    points: tuple[Point, ...]
    cut: bool = False


@dataclass(frozen=True)
class Pose:
    """Position of a shape in the picture: turned (degrees), scaled, sheared, mirrored, moved (unit coordinates)."""

    turn: float = 0.0
    scale: float = 0.85
    stretch: float = 1.0
    shear: float = 0.0
    mirror: bool = False
    move: Point = (0.0, 0.0)

    @property
    def matrix(self) -> Floats:
        """2 × 2 matrix: first stretch, shear and mirror, then scale and turn."""
        a = np.deg2rad(self.turn)
        turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        form = np.array([[-self.stretch if self.mirror else self.stretch, self.shear], [0.0, 1.0 / self.stretch]])
        return self.scale * turn @ form


# --- outlines -----------------------------------------------------------------------------------------------------


def polygon(*points: Point, cut: bool = False) -> Part:
    """Return straight edges between the points."""
    return Part(points, cut)


def box(left: float, top: float, right: float, bottom: float, cut: bool = False) -> Part:
    """Return an axis-parallel rectangle."""
    return Part(((left, top), (right, top), (right, bottom), (left, bottom)), cut)


def curve(*points: Point, cut: bool = False, steps: int = STEPS) -> Part:
    """Return a smooth closed curve through the points."""
    return Part(tuple(spline(points, closed=True, steps=steps)), cut)


def mirrored(*right: Point, steps: int = STEPS) -> Part:
    """Return a symmetric outline given by its right half, a smooth curve from top to bottom."""
    half = spline(right, closed=False, steps=steps)
    return Part((*half, *((-x, y) for x, y in reversed(half))))


def disc(x: float, y: float, rx: float, ry: float = 0.0, cut: bool = False) -> Part:
    """Return an upright ellipse; its points come from a rational circle, which needs no sine."""
    quarter = np.linspace(0, 1, 17)[:-1]
    c, s = (1 - quarter**2) / (1 + quarter**2), 2 * quarter / (1 + quarter**2)
    circle = [(c, s), (-s, c), (-c, -s), (s, -c)]
    tall = ry or rx
    return Part(tuple((x + rx * float(a), y + tall * float(b)) for u, v in circle for a, b in zip(u, v)), cut)


def ellipse(x: float, y: float, rx: float, ry: float, cut: bool = False) -> Part:
    """Return an upright ellipse with corners at equal angles."""
    t = np.linspace(0, 2 * np.pi, _ELLIPSE, endpoint=False)
    u, v = rx * np.cos(t), ry * np.sin(t)
    return Part(tuple((x + float(a), y + float(b)) for a, b in zip(u, v)), cut)


def brush(*points: Point, width: float | Sequence[float], cut: bool = False) -> list[Part]:
    """Return a thick smooth line through the points, made of discs; ``width`` may change along it."""
    path = np.array(spline(points, closed=False))
    widths = [width] * len(points) if isinstance(width, float | int) else list(width)
    thick = np.interp(np.linspace(0, len(points) - 1, len(path)), np.arange(len(points)), widths)
    return [disc(float(x), float(y), float(w) / 2, cut=cut) for (x, y), w in zip(path, thick)]


def line(*points: Point, width: float, curved: bool = True, steps: int = STEPS) -> list[Part]:
    """Return a line of constant width with round ends: a rectangle for each piece, an ellipse at each corner."""
    path = spline(points, closed=False, steps=steps) if curved else points
    pieces = []
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        length = max(float(np.hypot(x1 - x0, y1 - y0)), 1e-9)
        nx, ny = -(y1 - y0) / length * width / 2, (x1 - x0) / length * width / 2
        pieces.append(Part(((x0 + nx, y0 + ny), (x1 + nx, y1 + ny), (x1 - nx, y1 - ny), (x0 - nx, y0 - ny))))
    return [*pieces, *(ellipse(x, y, width / 2, width / 2) for x, y in path)]


def spline(points: Sequence[Point], *, closed: bool, steps: int = STEPS) -> list[Point]:
    """Return a Catmull–Rom curve through the points: closed, or from the first to the last point."""
    p = np.array(points, np.float64)
    ends = (p[-1:], p[:2]) if closed else (2 * p[:1] - p[1:2], 2 * p[-1:] - p[-2:-1])
    around = np.concatenate([ends[0], p, ends[1]])
    t = (np.arange(steps) / steps)[:, None]
    pieces = [
        0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - a - 3 * c + d) * t * t * t)
        for a, b, c, d in zip(around, around[1:], around[2:], around[3:])
    ]
    if not closed:
        pieces.append(p[-1:])
    return [(float(x), float(y)) for x, y in np.concatenate(pieces)]


# --- masks --------------------------------------------------------------------------------------------------------


def coverage(parts: Sequence[Part], size: int, pose: Pose | None = None) -> Pixels:
    """Fill the parts in order and return how much of each pixel is covered.

    Parameters
    ----------
    parts : sequence of Part
        Outlines in [−1, 1]².
    size : int
        Width and height in pixels.
    pose : Pose, optional
        How the shape lies in the picture. Default: upright in the middle, corners rounded to the fine grid.

    Returns
    -------
    uint8 array, size × size
        0: outside; 255: inside.
    """
    side = size * FINE
    fine = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(fine)
    for part in parts:
        if pose is None:
            half = side / 2
            corners = [(round(half + half * FILL * x), round(half + half * FILL * y)) for x, y in part.points]
        else:
            placed = np.asarray(part.points, np.float64) @ pose.matrix.T + np.array(pose.move)
            corners = ((placed + 1) / 2 * side).ravel().tolist()
        pen.polygon(corners, fill=0 if part.cut else 1)
    # Whole numbers: of 16 fine pixels, so many are covered.
    count = np.asarray(fine, np.uint32).reshape(size, FINE, size, FINE).sum(axis=(1, 3))
    return ((count * 255 + FINE * FINE // 2) // (FINE * FINE)).astype(np.uint8)
