"""A pen that draws antialiased silhouettes in unit coordinates: x and y from −1 to 1, y pointing down."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from cuebench.arrays import Floats

SUPERSAMPLING = 4
Point = tuple[float, float]
Array = Floats


@dataclass(frozen=True)
class Pose:
    """How a shape lies in the image: turned (degrees), scaled, sheared, mirrored, moved (unit coordinates)."""

    turn: float = 0.0
    scale: float = 0.85
    stretch: float = 1.0
    shear: float = 0.0
    mirror: bool = False
    move: Point = (0.0, 0.0)

    @property
    def matrix(self) -> Array:
        """2 × 2 matrix: first stretch, shear and mirror, then scale and turn."""
        a = np.deg2rad(self.turn)
        turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        form = np.array([[-self.stretch if self.mirror else self.stretch, self.shear], [0.0, 1.0 / self.stretch]])
        return self.scale * turn @ form


class Pen:
    """Collects filled outlines; ``cut=True`` takes away instead of adding."""

    def __init__(self, size: int, pose: Pose) -> None:
        self._size = size * SUPERSAMPLING
        self._pose = pose
        self._image = Image.new("L", (self._size, self._size), 0)
        self._draw = ImageDraw.Draw(self._image)

    def polygon(self, points: Sequence[Point], cut: bool = False) -> None:
        """Fill the polygon through ``points``."""
        xy = np.asarray(points, dtype=np.float64) @ self._pose.matrix.T + np.array(self._pose.move)
        flat = ((xy + 1) / 2 * self._size).ravel().tolist()
        self._draw.polygon(flat, fill=0 if cut else 255)

    def curve(self, points: Sequence[Point], cut: bool = False) -> None:
        """Fill the smooth closed curve through ``points``."""
        self.polygon(smooth(points), cut)

    def mirrored(self, right: Sequence[Point], curved: bool = False) -> None:
        """Fill a shape given by its right half, from top to bottom."""
        half = open_smooth(right) if curved else list(right)
        self.polygon([*half, *((-x, y) for x, y in reversed(half))])

    def ellipse(self, x: float, y: float, rx: float, ry: float, cut: bool = False, turn: float = 0.0) -> None:
        """Fill an ellipse around (x, y)."""
        t, a = np.linspace(0, 2 * np.pi, 96, endpoint=False), np.deg2rad(turn)
        u, v = rx * np.cos(t), ry * np.sin(t)
        self.polygon(list(zip(x + u * np.cos(a) - v * np.sin(a), y + u * np.sin(a) + v * np.cos(a))), cut)

    def box(self, left: float, top: float, right: float, bottom: float, cut: bool = False) -> None:
        """Fill an axis-parallel rectangle."""
        self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], cut)

    def stroke(self, points: Sequence[Point], width: float, cut: bool = False, curved: bool = True) -> None:
        """Draw a line of constant width with round ends."""
        line = np.asarray(open_smooth(points) if curved else points, dtype=np.float64)
        for (x0, y0), (x1, y1) in itertools.pairwise(line):
            length = max(float(np.hypot(x1 - x0, y1 - y0)), 1e-9)
            nx, ny = -(y1 - y0) / length * width / 2, (x1 - x0) / length * width / 2
            self.polygon([(x0 + nx, y0 + ny), (x1 + nx, y1 + ny), (x1 - nx, y1 - ny), (x0 - nx, y0 - ny)], cut)
        for x, y in line:
            self.ellipse(float(x), float(y), width / 2, width / 2, cut)

    def mask(self) -> Array:
        """Return the coverage of each pixel, 0 to 1."""
        small = self._image.reduce(SUPERSAMPLING)
        return np.asarray(small, dtype=np.float64) / 255.0


def smooth(points: Sequence[Point], steps: int = 12) -> list[Point]:
    """Return a closed Catmull–Rom curve through ``points``."""
    p = np.asarray(points, dtype=np.float64)
    return _segments(np.roll(p, 1, 0), p, np.roll(p, -1, 0), np.roll(p, -2, 0), steps)


def open_smooth(points: Sequence[Point], steps: int = 12) -> list[Point]:
    """Return an open Catmull–Rom curve from the first to the last point."""
    p = np.asarray(points, dtype=np.float64)
    padded = np.concatenate([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    curve = _segments(padded[:-3], padded[1:-2], padded[2:-1], padded[3:], steps)
    return [*curve, (float(p[-1, 0]), float(p[-1, 1]))]


def _segments(a: Array, b: Array, c: Array, d: Array, steps: int) -> list[Point]:
    t = np.linspace(0, 1, steps, endpoint=False)[None, :, None]
    a, b, c, d = (q[:, None, :] for q in (a, b, c, d))
    curve = 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
    return [(float(x), float(y)) for x, y in curve.reshape(-1, 2)]
