"""Textures of everyday things: a material or a coat; each function draws one, n × n × 3 in about [0, 1].

All are classes of ImageNet, so that classifiers can name them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from cuebench.arrays import Floats
from cuebench.errors import did_you_mean
from cuebench.stimuli.drawing.colour import blend, tint
from cuebench.stimuli.drawing.fields import grid, hexagons, noise, step, waves

Rng = np.random.Generator


def texture(name: str, rng: Rng, size: int) -> Floats:
    """Draw a texture of everyday things over a square.

    Parameters
    ----------
    name : str
        One of ``DRAWINGS``.
    rng : Generator
        Everything random comes from here.
    size : int
        Width and height in pixels.

    Returns
    -------
    array, size × size × 3
        In [0, 1]. Drawn at twice the size and averaged, so that edges are smooth.
    """
    if name not in DRAWINGS:
        raise did_you_mean("everyday texture", name, DRAWINGS)
    fine = np.clip(DRAWINGS[name](rng, 2 * size), 0, 1)
    return fine.reshape(size, 2, size, 2, 3).mean(axis=(1, 3))


def zebra(rng: Rng, n: int) -> Floats:
    """Black and white stripes that fork and bend."""
    stripes = waves(rng, n, n / rng.uniform(8, 11), 0.16, angle=rng.uniform(-0.5, 0.5), narrow=0.22)
    coat = blend(step(stripes + 0.15, 0.25), (0.07, 0.06, 0.06), tint(rng, (0.87, 0.84, 0.78), 0.03))
    return coat + 0.025 * noise(rng, n, 1.0)[..., None]


def honeycomb(rng: Rng, n: int) -> Floats:
    """Hexagonal wax cells."""
    size = n / rng.uniform(9, 13)
    x, y = grid(rng, n, warp=size * 0.1, turn=rng.uniform(0, 60))
    distance, index = cKDTree(hexagons(size, x, y)).query(np.stack([x.ravel(), y.ravel()], 1), k=2)
    near, second, nearest = (a.reshape(n, n) for a in (distance[:, 0], distance[:, 1], index[:, 0]))
    wall = step(0.13 * size - (second - near), 0.05 * size)
    depth = rng.uniform(0.2, 0.75, nearest.max() + 1)[nearest] + 0.5 * (near / size)
    cell = blend(depth, tint(rng, (0.42, 0.20, 0.03)), tint(rng, (0.90, 0.60, 0.12)))
    return blend(wall, cell, tint(rng, (0.98, 0.82, 0.42))) + 0.02 * noise(rng, n, 1.2)[..., None]


def chainlink_fence(rng: Rng, n: int) -> Floats:
    """Diagonal wire mesh in front of a blurred lawn."""
    size = n / rng.uniform(5.0, 6.5)
    u, v = grid(rng, n, turn=45 + rng.uniform(-4, 4))
    image = blend(0.5 + 0.3 * noise(rng, n, n / 7), tint(rng, (0.24, 0.34, 0.16)), tint(rng, (0.62, 0.68, 0.52)))
    for line in (u, v):
        offset = np.abs(line % size - size / 2)
        shade = blend(offset / (0.05 * size), (0.90, 0.91, 0.92), (0.38, 0.39, 0.41))
        image = blend(step(0.042 * size - offset, 0.012 * size), image, shade)
    # Where two wires hook into each other the mesh has a small knot.
    knot = np.hypot(u % size - size / 2, v % size - size / 2)
    return blend(0.8 * step(0.085 * size - knot, 0.02 * size), image, (0.62, 0.63, 0.65))


def crossword(rng: Rng, n: int) -> Floats:
    """Grid of white squares, some black, some with a letter stroke."""
    cells = int(rng.integers(9, 13))
    size = n / cells
    x, y = grid(rng, n)
    column, row = (x // size).astype(int), (y // size).astype(int)
    black = rng.random((64, 64)) < 0.2
    u, v = x % size / size, y % size / size
    line = np.minimum(np.minimum(u, 1 - u), np.minimum(v, 1 - v)) < 0.05
    angle, has = rng.uniform(0, np.pi, (64, 64)), rng.random((64, 64)) < 0.35
    a = angle[row % 64, column % 64]
    stroke = (np.abs((u - 0.5) * np.cos(a) + (v - 0.5) * np.sin(a)) < 0.05) & (np.hypot(u - 0.5, v - 0.5) < 0.28)
    ink = black[row % 64, column % 64] | line | (stroke & has[row % 64, column % 64])
    return blend(ink.astype(float), tint(rng, (0.87, 0.86, 0.80), 0.02), (0.06, 0.06, 0.07))


def corn(rng: Rng, n: int) -> Floats:
    """Rows of yellow kernels."""
    size = n / rng.uniform(9, 12)
    x, y = grid(rng, n, warp=size * 0.2, turn=rng.uniform(-12, 12))
    column = np.floor(x / size)
    u, v = x / size % 1 - 0.5, (y / size * 1.15 + 0.5 * (column % 2)) % 1 - 0.5
    bump = np.clip(1 - (np.abs(2 * u) ** 3 + np.abs(2 * v) ** 3), 0, 1) ** 0.45
    tone = rng.uniform(-0.08, 0.08, (97, 97))[column.astype(int) % 97, np.floor(y / size * 1.15).astype(int) % 97]
    kernel = blend(bump + tone, tint(rng, (0.52, 0.33, 0.04)), tint(rng, (0.98, 0.83, 0.25)))
    shine = np.exp(-((u + 0.12) ** 2 + (v + 0.15) ** 2) / 0.012)
    return kernel + 0.3 * (shine * bump)[..., None]


def strawberry(rng: Rng, n: int) -> Floats:
    """Red flesh with yellow seeds in pits."""
    size = n / rng.uniform(8, 10)
    x, y = grid(rng, n, warp=size * 0.15, turn=rng.uniform(-15, 15))
    points = hexagons(size, x, y)
    points = points + rng.uniform(-0.08, 0.08, points.shape) * size
    _, index = cKDTree(points).query(np.stack([x.ravel(), y.ravel()], 1))
    dx, dy = x - points[index, 0].reshape(n, n), y - points[index, 1].reshape(n, n)
    seed = np.hypot(dx / 0.75, dy / 1.25) / size
    flesh = blend(
        0.5 + 0.2 * noise(rng, n, n / 8), tint(rng, (0.72, 0.05, 0.06), 0.04), tint(rng, (0.90, 0.14, 0.12), 0.04)
    )
    pit = flesh * (1 - 0.45 * np.exp(-((seed / 0.22) ** 2)))[..., None]
    shine = np.exp(-(((dx + 0.3 * size) ** 2 + (dy + 0.32 * size) ** 2) / (0.12 * size) ** 2))
    return blend(step(0.11 - seed, 0.02), pit, tint(rng, (0.93, 0.78, 0.36))) + 0.22 * shine[..., None]


def window_screen(rng: Rng, n: int) -> Floats:
    """Fine dark wire mesh before a bright blur."""
    size = n / rng.uniform(26, 34)
    x, y = grid(rng, n, turn=rng.uniform(-3, 3))
    wire = np.maximum(np.cos(2 * np.pi * x / size), np.cos(2 * np.pi * y / size))
    back = blend(0.5 + 0.3 * noise(rng, n, n / 6), tint(rng, (0.45, 0.52, 0.48)), tint(rng, (0.80, 0.84, 0.84)))
    return blend(step(wire - 0.72, 0.12), back, (0.16, 0.16, 0.17))


def jigsaw_puzzle(rng: Rng, n: int) -> Floats:
    """Interlocking pieces over a colourful picture."""
    size = n / rng.uniform(5, 6.5)
    x, y = grid(rng, n)
    picture = np.stack([0.5 + 0.22 * noise(rng, n, n / 9) for _ in range(3)], 2)
    edge = np.zeros((n, n))
    for a, b in ((x, y), (y, x)):
        row = np.round(a / size).astype(int)
        u, d = b / size % 1 - 0.5, a / size - row
        side = np.where(rng.random((89, 89)) < 0.5, 1, -1)[row % 89, np.floor(b / size).astype(int) % 89]
        knob = np.abs(np.hypot(u, d - 0.14 * side) - 0.12)
        neck = np.where((np.abs(u) < 0.075) & (d * side < 0.1), 1.0, np.abs(d))
        knob = np.where((d * side < 0.045) & (np.abs(u) < 0.09), 1.0, knob)
        edge = np.maximum(edge, step(0.016 - np.minimum(neck, knob), 0.008))
    return blend(0.85 * edge, picture, (0.05, 0.05, 0.05))


def tile_roof(rng: Rng, n: int) -> Floats:
    """Overlapping rows of curved clay tiles."""
    size = n / rng.uniform(7, 9)
    x, y = grid(rng, n, warp=size * 0.05)
    row = np.floor(y / size)
    u, v = (x / size + 0.5 * (row % 2)) % 1 - 0.5, y / size % 1
    column = np.floor(x / size + 0.5 * (row % 2)).astype(int)
    tone = rng.uniform(-0.12, 0.12, (97, 97))[row.astype(int) % 97, column % 97]
    arch = np.cos(np.pi * u)
    clay = blend(
        0.15 + 0.75 * arch * (0.55 + 0.45 * v) + tone, tint(rng, (0.30, 0.10, 0.05)), tint(rng, (0.84, 0.44, 0.27))
    )
    shadow = step(0.12 - v - 0.12 * (1 - arch), 0.05)
    return blend(0.8 * shadow, clay, (0.12, 0.05, 0.03)) + 0.03 * noise(rng, n, 1.2)[..., None]


def knitted_wool(rng: Rng, n: int) -> Floats:
    """Columns of knitted stitches in thick wool."""
    size = n / rng.uniform(8, 10)
    x, y = grid(rng, n, warp=size * 0.12)
    u, v = x / size % 1 - 0.5, (y / size * 1.4 + 1.1 * np.abs(x / size % 1 - 0.5)) % 1 - 0.5
    leg = np.clip(1 - (v / 0.46) ** 2 - ((np.abs(u) - 0.25) / 0.27) ** 4, 0, 1) ** 0.5
    twist = 0.5 + 0.5 * np.sin(2 * np.pi * (3 * v + 4 * np.abs(u)))
    base = np.asarray(tint(rng, (0.70, 0.62, 0.52), 0.18))
    return blend(leg * (0.8 + 0.2 * twist), 0.22 * base, 1.1 * base) + 0.05 * noise(rng, n, 0.8)[..., None]


DRAWINGS: dict[str, Callable[[Rng, int], Floats]] = {
    draw.__name__: draw
    for draw in (
        zebra,
        honeycomb,
        chainlink_fence,
        crossword,
        corn,
        strawberry,
        window_screen,
        jigsaw_puzzle,
        tile_roof,
        knitted_wool,
    )
}
"""Name → the drawing of a texture."""
