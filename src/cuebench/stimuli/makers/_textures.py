"""Procedural textures that look like a material or a coat; each function returns n × n × 3 in [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree

Array = np.ndarray[Any, np.dtype[np.float64]]
Rng = np.random.Generator
Colour = tuple[float, float, float]


# ---- building blocks -------------------------------------------------------------------------------------------------


def _noise(rng: Rng, n: int, sigma: float) -> Array:
    """Smooth noise with zero mean and unit variance; ``sigma`` is the blur in pixels."""
    field = ndimage.gaussian_filter(rng.standard_normal((n, n)), sigma, mode="wrap")
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
    field = np.fft.ifft2(np.fft.fft2(rng.standard_normal((n, n))) * gain).real
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
    coat = _mix(_step(stripes + 0.15, 0.25), (0.07, 0.06, 0.06), _tint(rng, (0.94, 0.92, 0.88), 0.03))
    return coat + 0.025 * _noise(rng, n, 1.0)[..., None]


def tiger(rng: Rng, n: int) -> Array:
    """Thin black stripes on orange fur."""
    stripes = _waves(rng, n, n / rng.uniform(6, 8), 0.2, angle=rng.uniform(-0.3, 0.3), narrow=0.25)
    fur = _mix(0.5 + 0.25 * _noise(rng, n, n / 8), _tint(rng, (0.72, 0.40, 0.12)), _tint(rng, (0.93, 0.66, 0.30)))
    coat = _mix(_step(stripes - 0.75, 0.2), fur, (0.08, 0.05, 0.03))
    hair = ndimage.gaussian_filter(rng.standard_normal((n, n)), (0.7, 3.0), mode="wrap")
    return coat + 0.12 * hair[..., None]


def leopard(rng: Rng, n: int) -> Array:
    """Dark rosettes on a tawny coat."""
    size = n / rng.uniform(8, 10)
    x, y = _grid(rng, n, warp=size * 0.12)
    x, y = x - x.min(), y - y.min()
    near, _, who = _cells(_scatter(rng, int(max(x.max(), y.max())) + 1, size), x, y)
    broken = _noise(rng, n, size * 0.16) * 0.55
    ring = _step(0.16 * size - np.abs(near - 0.3 * size) + broken * 0.1 * size, 0.06 * size)
    fur = _mix(0.5 + 0.2 * _noise(rng, n, n / 7), _tint(rng, (0.80, 0.58, 0.30)), _tint(rng, (0.93, 0.78, 0.52)))
    inner = _mix(_step(0.3 * size - near, 0.05 * size) * 0.45, fur, (0.62, 0.38, 0.16))
    return _mix(ring * _step(broken + 0.9, 0.3), inner, (0.10, 0.06, 0.04)) + 0.03 * _noise(rng, n, 1.0)[..., None]


def dalmatian(rng: Rng, n: int) -> Array:
    """Black spots on white."""
    size = n / rng.uniform(6, 8)
    x, y = _grid(rng, n, warp=size * 0.1)
    x, y = x - x.min(), y - y.min()
    points = _scatter(rng, int(max(x.max(), y.max())) + 1, size)
    near, _, who = _cells(points, x, y)
    radius = rng.uniform(0.16, 0.40, len(points))[who] * size
    return _mix(_step(radius - near, 0.04 * size), _tint(rng, (0.95, 0.94, 0.92), 0.02), (0.07, 0.07, 0.08))


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
    """Diagonal wire mesh in front of foliage."""
    size = n / rng.uniform(6, 8)
    u, v = _grid(rng, n, warp=size * 0.03, turn=45 + rng.uniform(-3, 3))
    back = _mix(0.5 + 0.3 * _noise(rng, n, n / 12), _tint(rng, (0.20, 0.34, 0.12)), _tint(rng, (0.55, 0.66, 0.38)))
    image = back
    for line, along in ((u, v), (v, u)):
        offset = np.abs((line + 0.06 * size * np.sin(2 * np.pi * along / size)) % size - size / 2)
        shade = _mix(offset / (0.07 * size), (0.93, 0.94, 0.95), (0.45, 0.46, 0.48))
        image = _mix(_step(0.062 * size - offset, 0.015 * size), image, shade)
    return image


def stone_wall(rng: Rng, n: int) -> Array:
    """Rough field stones with dark joints."""
    size = n / rng.uniform(5, 7)
    x, y = _grid(rng, n, warp=size * 0.08)
    x, y = (x - x.min()) * 0.75, (y - y.min()) * 1.25
    points = _scatter(rng, int(max(x.max(), y.max())) + 1, size)
    near, second, who = _cells(points, x, y)
    rough = 0.10 * _noise(rng, n, 2.0) + 0.10 * _noise(rng, n, 6.0)
    grey = rng.uniform(0.38, 0.74, (len(points), 1)) + rng.uniform(-0.05, 0.05, (len(points), 3)) * [1, 0.4, -1]
    stone = grey[who] * (1.12 - 0.35 * (near / size)[..., None]) + rough[..., None]
    joint = _step(0.13 * size - (second - near) + 0.03 * size * _noise(rng, n, 2.0), 0.05 * size)
    return _mix(joint, stone, _tint(rng, (0.16, 0.14, 0.12)))


def brain_coral(rng: Rng, n: int) -> Array:
    """Winding ridges and valleys."""
    ridges = _waves(rng, n, n / rng.uniform(10, 13), 0.12)
    low, high = _tint(rng, (0.28, 0.20, 0.12)), _tint(rng, (0.80, 0.68, 0.42))
    light = ndimage.sobel(ridges, axis=0, mode="wrap")
    coral = _mix(0.5 + 0.42 * np.tanh(1.6 * ridges), low, high)
    return coral - 0.10 * np.tanh(light / light.std())[..., None] + 0.03 * _noise(rng, n, 1.2)[..., None]


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
    return _mix(ink.astype(float), _tint(rng, (0.97, 0.97, 0.95), 0.02), (0.06, 0.06, 0.07))


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


def ladybug(rng: Rng, n: int) -> Array:
    """Black dots on glossy red."""
    size = n / rng.uniform(4.5, 6)
    x, y = _grid(rng, n, turn=rng.uniform(0, 60))
    near, _, _ = _cells(_hexagons(size, x.min(), y.min(), x.max(), y.max()), x, y)
    shell = _mix(
        0.5 + 0.3 * _noise(rng, n, n / 6), _tint(rng, (0.72, 0.05, 0.03), 0.04), _tint(rng, (0.93, 0.20, 0.08), 0.04)
    )
    return _mix(_step(0.27 * size - near, 0.02 * size), shell, (0.05, 0.03, 0.03))


def chain_mail(rng: Rng, n: int) -> Array:
    """Interlinked steel rings."""
    size = n / rng.uniform(12, 15)
    x, y = _grid(rng, n, warp=size * 0.1)
    image = np.full((n, n, 3), 0.10)
    for shift in (0.0, 0.5):
        u, v = (x / size + shift) % 1 - 0.5, (y / size + shift) % 1 - 0.5
        ring = np.abs(np.hypot(u, v * 1.1) - 0.40)
        steel = _mix(0.55 - 0.9 * v - 2.5 * ring, (0.28, 0.29, 0.31), (0.95, 0.96, 0.98))
        image = _mix(_step(0.10 - ring, 0.03), image, steel)
    return image


def spider_web(rng: Rng, n: int) -> Array:
    """Pale threads, radial and round, on dark green."""
    x, y = _grid(rng, n)
    x, y = x - x.mean() + rng.uniform(-0.1, 0.1) * n, y - y.mean() + rng.uniform(-0.1, 0.1) * n
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    spokes = int(rng.integers(16, 22))
    phase = (angle / (2 * np.pi) * spokes) % 1 - 0.5
    sag = radius * (1 + 0.10 * (np.abs(phase) * 2) ** 2)
    ring = np.abs(sag / (n / 22) % 1 - 0.5) * n / 22
    spoke = np.abs(0.5 - np.abs(phase)) / spokes * 2 * np.pi * radius
    back = _mix(0.5 + 0.3 * _noise(rng, n, n / 6), (0.03, 0.06, 0.03), _tint(rng, (0.14, 0.22, 0.12)))
    return _mix(np.maximum(_step(n / 300 - ring, n / 400), _step(n / 260 - spoke, n / 400)), back, (0.88, 0.90, 0.90))


def basket(rng: Rng, n: int) -> Array:
    """Woven wicker."""
    size = n / rng.uniform(8, 11)
    x, y = _grid(rng, n, warp=size * 0.08)
    column, row = np.floor(x / size), np.floor(y / (size / 2))
    over = (column + row) % 2 == 0
    u, v = x / size % 1 - 0.5, y / (size / 2) % 1 - 0.5
    strand = np.cos(np.pi * v) ** 0.6 * np.where(over, np.cos(np.pi * u) ** 0.4, 0.25 + 0.5 * np.abs(u))
    fibre = ndimage.gaussian_filter(rng.standard_normal((n, n)), (0.7, 4.0), mode="wrap")
    return _mix(strand, _tint(rng, (0.20, 0.11, 0.04)), _tint(rng, (0.83, 0.62, 0.34))) + 0.25 * fibre[..., None]


def pomegranate(rng: Rng, n: int) -> Array:
    """Glossy red seeds packed together."""
    size = n / rng.uniform(9, 12)
    points = _scatter(rng, n, size)
    x, y = np.meshgrid(np.arange(n, dtype=float), np.arange(n, dtype=float))
    near, second, who = _cells(points, x, y)
    bump = np.clip((second - near) / (0.7 * size), 0, 1)
    tone = rng.uniform(-0.15, 0.15, len(points))[who]
    seeds = _mix(bump**0.7 + tone, _tint(rng, (0.22, 0.0, 0.03), 0.03), _tint(rng, (0.80, 0.06, 0.14), 0.04))
    dx, dy = x - points[who, 0], y - points[who, 1]
    return seeds + 0.55 * np.exp(-((dx + 0.14 * size) ** 2 + (dy + 0.16 * size) ** 2) / (0.08 * size) ** 2)[..., None]


def velvet_quilt(rng: Rng, n: int) -> Array:
    """Patchwork squares with stitched prints."""
    size = n / 4
    x, y = _grid(rng, n)
    column, row = np.floor(x / size).astype(int), np.floor(y / size).astype(int)
    palette = np.clip(rng.uniform(0.15, 0.95, (37, 37, 3)), 0, 1)
    ground = palette[row % 37, column % 37]
    u, v = x / size % 1 - 0.5, y / size % 1 - 0.5
    inner = (np.abs(u) + np.abs(v) < 0.5)[..., None]
    second = palette[(row + 5) % 37, (column + 3) % 37]
    patch = np.where(inner, second, ground)
    star = (np.maximum(np.abs(u), np.abs(v)) < 0.2)[..., None]
    patch = np.where(star, palette[(row + 9) % 37, (column + 7) % 37], patch)
    seam = np.minimum(0.5 - np.abs(u), 0.5 - np.abs(v))
    puff = 0.85 + 0.3 * np.sqrt(np.clip(seam * 3, 0, 1)) * 0.5
    return patch * puff[..., None] + 0.03 * _noise(rng, n, 1.0)[..., None]


def knit(rng: Rng, n: int) -> Array:
    """Columns of knitted stitches."""
    size = n / rng.uniform(11, 14)
    x, y = _grid(rng, n, warp=size * 0.15)
    u, v = x / size % 1, (y / size * 1.3 + 0.9 * np.abs(x / size % 1 - 0.5)) % 1
    stitch = np.abs(np.sin(np.pi * v)) ** 0.6 * (0.35 + 0.65 * np.abs(np.sin(2 * np.pi * u)) ** 0.5)
    base = _tint(rng, (0.75, 0.72, 0.62), 0.2)
    dark = tuple(0.35 * c for c in base)
    return _mix(stitch, (dark[0], dark[1], dark[2]), base) + 0.05 * _noise(rng, n, 0.9)[..., None]


def golf_ball(rng: Rng, n: int) -> Array:
    """White dimples."""
    size = n / rng.uniform(8, 10)
    x, y = _grid(rng, n, warp=size * 0.05, turn=rng.uniform(0, 60))
    points = _hexagons(size, x.min(), y.min(), x.max(), y.max())
    _, index = cKDTree(points).query(np.stack([x.ravel(), y.ravel()], 1))
    dx, dy = (x - points[index, 0].reshape(n, n)) / size, (y - points[index, 1].reshape(n, n)) / size
    inside = _step(0.42 - np.hypot(dx, dy), 0.04)
    shade = 0.90 + inside * (0.28 * (dx + dy) - 0.10)
    return shade[..., None] * np.array([1.0, 1.0, 0.98])
