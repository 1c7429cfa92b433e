"""Procedural textures that look like a material or a coat; each function returns n × n × 3 in [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft
from scipy.spatial import cKDTree

from cuebench.arrays import Floats

Array = Floats
Rng = np.random.Generator
Colour = tuple[float, float, float]


# ---- building blocks -------------------------------------------------------------------------------------------------


def _noise(rng: Rng, n: int, sigma: float) -> Array:
    """Smooth noise with zero mean and unit variance; ``sigma`` is the blur in pixels."""
    # In the frequency domain: the blur costs the same for every sigma, and wraps around by itself.
    gain = np.exp(-2 * (np.pi * sigma * np.fft.fftfreq(n)) ** 2)
    field = fft.irfft2(fft.rfft2(rng.standard_normal((n, n))) * gain[:, None] * gain[None, : n // 2 + 1], s=(n, n))
    return (field - field.mean()) / field.std()


def _waves(rng: Rng, n: int, period: float, spread: float, angle: float | None = None, narrow: float = 0.3) -> Array:
    """Band-pass noise of a given period (pixels): a labyrinth, or stripes where ``angle`` is given."""
    f = np.fft.fftfreq(n)
    fy, fx = np.meshgrid(f, f, indexing="ij")
    radius = np.hypot(fx, fy)
    gain = np.exp(-0.5 * ((radius - 1 / period) / (spread / period)) ** 2)
    if angle is not None:
        turn = np.angle(np.exp(2j * (np.arctan2(fy, fx) - angle))) / 2
        gain = gain * np.exp(-0.5 * (turn / narrow) ** 2)
    field = fft.ifft2(fft.fft2(rng.standard_normal((n, n))) * gain).real
    return (field - field.mean()) / field.std()


def _grid(rng: Rng, n: int, warp: float = 0.0, turn: float = 0.0) -> tuple[Array, Array]:
    """Pixel coordinates with a random phase, turned (degrees) and gently warped (pixels)."""
    y, x = np.meshgrid(np.arange(n, dtype=float), np.arange(n, dtype=float), indexing="ij")
    a = np.deg2rad(turn)
    x, y = x * np.cos(a) - y * np.sin(a), x * np.sin(a) + y * np.cos(a)
    x, y = x + rng.uniform(0, n), y + rng.uniform(0, n)
    if warp:
        x, y = x + warp * _noise(rng, n, n / 10), y + warp * _noise(rng, n, n / 10)
    return x, y


def _cells(points: Array, x: Array, y: Array) -> tuple[Array, Array, np.ndarray[Any, Any]]:
    """Distance to the nearest and second nearest point, and which one is nearest."""
    distance, index = cKDTree(points).query(np.stack([x.ravel(), y.ravel()], 1), k=2)
    return distance[:, 0].reshape(x.shape), distance[:, 1].reshape(x.shape), index[:, 0].reshape(x.shape)


def _hexagons(size: float, left: float, top: float, right: float, bottom: float) -> Array:
    """Centres of a hexagonal grid that covers a box."""
    rows = np.arange(top - size, bottom + size, size * 0.866)
    columns = np.arange(left - size, right + 2 * size, size)
    return np.array([(c + (k % 2) * size / 2, r) for k, r in enumerate(rows) for c in columns])


def _scatter(rng: Rng, n: int, distance: float) -> Array:
    """Return irregular points over the image and a margin, no two nearer than about ``distance``."""
    points = _hexagons(distance * 1.25, -distance, -distance, n + distance, n + distance)
    return points + rng.uniform(-0.36, 0.36, points.shape) * distance


def _mix(share: Array, low: Colour | Array, high: Colour | Array) -> Array:
    """Blend two colours: share 0 gives ``low``, 1 gives ``high``."""
    s = np.clip(share, 0, 1)[..., None]
    return np.asarray(low) * (1 - s) + np.asarray(high) * s


def _step(field: Array, softness: float = 0.12) -> Array:
    """Soft threshold at 0."""
    return 0.5 + 0.5 * np.tanh(field / softness)


def _tint(rng: Rng, colour: Colour, amount: float = 0.05) -> Colour:
    """Move a colour a little."""
    r, g, b = np.clip(np.asarray(colour) + rng.uniform(-amount, amount, 3), 0, 1)
    return float(r), float(g), float(b)


# ---- textures --------------------------------------------------------------------------------------------------------


def zebra(rng: Rng, n: int) -> Array:
    """Black and white stripes that fork and bend."""
    stripes = _waves(rng, n, n / rng.uniform(8, 11), 0.16, angle=rng.uniform(-0.5, 0.5), narrow=0.22)
    coat = _mix(_step(stripes + 0.15, 0.25), (0.07, 0.06, 0.06), _tint(rng, (0.87, 0.84, 0.78), 0.03))
    return coat + 0.025 * _noise(rng, n, 1.0)[..., None]


def honeycomb(rng: Rng, n: int) -> Array:
    """Hexagonal wax cells."""
    size = n / rng.uniform(9, 13)
    x, y = _grid(rng, n, warp=size * 0.1, turn=rng.uniform(0, 60))
    near, second, who = _cells(_hexagons(size, x.min(), y.min(), x.max(), y.max()), x, y)
    wall = _step(0.13 * size - (second - near), 0.05 * size)
    depth = rng.uniform(0.2, 0.75, who.max() + 1)[who] + 0.5 * (near / size)
    cell = _mix(depth, _tint(rng, (0.42, 0.20, 0.03)), _tint(rng, (0.90, 0.60, 0.12)))
    return _mix(wall, cell, _tint(rng, (0.98, 0.82, 0.42))) + 0.02 * _noise(rng, n, 1.2)[..., None]


def chainlink_fence(rng: Rng, n: int) -> Array:
    """Diagonal wire mesh in front of a blurred lawn."""
    size = n / rng.uniform(5.0, 6.5)
    u, v = _grid(rng, n, turn=45 + rng.uniform(-4, 4))
    image = _mix(0.5 + 0.3 * _noise(rng, n, n / 7), _tint(rng, (0.24, 0.34, 0.16)), _tint(rng, (0.62, 0.68, 0.52)))
    for line in (u, v):
        offset = np.abs(line % size - size / 2)
        shade = _mix(offset / (0.05 * size), (0.90, 0.91, 0.92), (0.38, 0.39, 0.41))
        image = _mix(_step(0.042 * size - offset, 0.012 * size), image, shade)
    # Where two wires hook into each other the mesh has a small knot.
    knot = np.hypot(u % size - size / 2, v % size - size / 2)
    return _mix(0.8 * _step(0.085 * size - knot, 0.02 * size), image, (0.62, 0.63, 0.65))


def crossword(rng: Rng, n: int) -> Array:
    """Grid of white squares, some black, some with a letter stroke."""
    cells = int(rng.integers(9, 13))
    size = n / cells
    x, y = _grid(rng, n)
    column, row = (x // size).astype(int), (y // size).astype(int)
    black = rng.random((64, 64)) < 0.2
    u, v = x % size / size, y % size / size
    line = np.minimum(np.minimum(u, 1 - u), np.minimum(v, 1 - v)) < 0.05
    angle, has = rng.uniform(0, np.pi, (64, 64)), rng.random((64, 64)) < 0.35
    a = angle[row % 64, column % 64]
    stroke = (np.abs((u - 0.5) * np.cos(a) + (v - 0.5) * np.sin(a)) < 0.05) & (np.hypot(u - 0.5, v - 0.5) < 0.28)
    ink = black[row % 64, column % 64] | line | (stroke & has[row % 64, column % 64])
    return _mix(ink.astype(float), _tint(rng, (0.87, 0.86, 0.80), 0.02), (0.06, 0.06, 0.07))


def corn(rng: Rng, n: int) -> Array:
    """Rows of yellow kernels."""
    size = n / rng.uniform(9, 12)
    x, y = _grid(rng, n, warp=size * 0.2, turn=rng.uniform(-12, 12))
    column = np.floor(x / size)
    u, v = x / size % 1 - 0.5, (y / size * 1.15 + 0.5 * (column % 2)) % 1 - 0.5
    bump = np.clip(1 - (np.abs(2 * u) ** 3 + np.abs(2 * v) ** 3), 0, 1) ** 0.45
    tone = rng.uniform(-0.08, 0.08, (97, 97))[column.astype(int) % 97, np.floor(y / size * 1.15).astype(int) % 97]
    kernel = _mix(bump + tone, _tint(rng, (0.52, 0.33, 0.04)), _tint(rng, (0.98, 0.83, 0.25)))
    shine = np.exp(-((u + 0.12) ** 2 + (v + 0.15) ** 2) / 0.012)
    return kernel + 0.3 * (shine * bump)[..., None]


def strawberry(rng: Rng, n: int) -> Array:
    """Red flesh with yellow seeds in pits."""
    size = n / rng.uniform(8, 10)
    x, y = _grid(rng, n, warp=size * 0.15, turn=rng.uniform(-15, 15))
    points = _hexagons(size, x.min(), y.min(), x.max(), y.max())
    points = points + rng.uniform(-0.08, 0.08, points.shape) * size
    _, index = cKDTree(points).query(np.stack([x.ravel(), y.ravel()], 1))
    dx, dy = x - points[index, 0].reshape(n, n), y - points[index, 1].reshape(n, n)
    seed = np.hypot(dx / 0.75, dy / 1.25) / size
    flesh = _mix(
        0.5 + 0.2 * _noise(rng, n, n / 8), _tint(rng, (0.72, 0.05, 0.06), 0.04), _tint(rng, (0.90, 0.14, 0.12), 0.04)
    )
    pit = flesh * (1 - 0.45 * np.exp(-((seed / 0.22) ** 2)))[..., None]
    shine = np.exp(-(((dx + 0.3 * size) ** 2 + (dy + 0.32 * size) ** 2) / (0.12 * size) ** 2))
    return _mix(_step(0.11 - seed, 0.02), pit, _tint(rng, (0.93, 0.78, 0.36))) + 0.22 * shine[..., None]


def window_screen(rng: Rng, n: int) -> Array:
    """Fine dark wire mesh before a bright blur."""
    size = n / rng.uniform(26, 34)
    x, y = _grid(rng, n, turn=rng.uniform(-3, 3))
    wire = np.maximum(np.cos(2 * np.pi * x / size), np.cos(2 * np.pi * y / size))
    back = _mix(0.5 + 0.3 * _noise(rng, n, n / 6), _tint(rng, (0.45, 0.52, 0.48)), _tint(rng, (0.80, 0.84, 0.84)))
    return _mix(_step(wire - 0.72, 0.12), back, (0.16, 0.16, 0.17))


def jigsaw_puzzle(rng: Rng, n: int) -> Array:
    """Interlocking pieces over a colourful picture."""
    size = n / rng.uniform(5, 6.5)
    x, y = _grid(rng, n)
    picture = np.stack([0.5 + 0.22 * _noise(rng, n, n / 9) for _ in range(3)], 2)
    edge = np.zeros((n, n))
    for a, b in ((x, y), (y, x)):
        row = np.round(a / size).astype(int)
        u, d = b / size % 1 - 0.5, a / size - row
        side = np.where(rng.random((89, 89)) < 0.5, 1, -1)[row % 89, np.floor(b / size).astype(int) % 89]
        knob = np.abs(np.hypot(u, d - 0.14 * side) - 0.12)
        neck = np.where((np.abs(u) < 0.075) & (d * side < 0.1), 1.0, np.abs(d))
        knob = np.where((d * side < 0.045) & (np.abs(u) < 0.09), 1.0, knob)
        edge = np.maximum(edge, _step(0.016 - np.minimum(neck, knob), 0.008))
    return _mix(0.85 * edge, picture, (0.05, 0.05, 0.05))


def tile_roof(rng: Rng, n: int) -> Array:
    """Overlapping rows of curved clay tiles."""
    size = n / rng.uniform(7, 9)
    x, y = _grid(rng, n, warp=size * 0.05)
    row = np.floor(y / size)
    u, v = (x / size + 0.5 * (row % 2)) % 1 - 0.5, y / size % 1
    column = np.floor(x / size + 0.5 * (row % 2)).astype(int)
    tone = rng.uniform(-0.12, 0.12, (97, 97))[row.astype(int) % 97, column % 97]
    arch = np.cos(np.pi * u)
    clay = _mix(
        0.15 + 0.75 * arch * (0.55 + 0.45 * v) + tone, _tint(rng, (0.30, 0.10, 0.05)), _tint(rng, (0.84, 0.44, 0.27))
    )
    shadow = _step(0.12 - v - 0.12 * (1 - arch), 0.05)
    return _mix(0.8 * shadow, clay, (0.12, 0.05, 0.03)) + 0.03 * _noise(rng, n, 1.2)[..., None]


def knitted_wool(rng: Rng, n: int) -> Array:
    """Columns of knitted stitches in thick wool."""
    size = n / rng.uniform(8, 10)
    x, y = _grid(rng, n, warp=size * 0.12)
    u, v = x / size % 1 - 0.5, (y / size * 1.4 + 1.1 * np.abs(x / size % 1 - 0.5)) % 1 - 0.5
    leg = np.clip(1 - (v / 0.46) ** 2 - ((np.abs(u) - 0.25) / 0.27) ** 4, 0, 1) ** 0.5
    twist = 0.5 + 0.5 * np.sin(2 * np.pi * (3 * v + 4 * np.abs(u)))
    base = np.asarray(_tint(rng, (0.70, 0.62, 0.52), 0.18))
    return _mix(leg * (0.8 + 0.2 * twist), 0.22 * base, 1.1 * base) + 0.05 * _noise(rng, n, 0.8)[..., None]
