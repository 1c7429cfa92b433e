"""Fields of numbers that textures are made of: thresholds, waves, tiles, and periodic noise on a square."""

from __future__ import annotations

import numpy as np
from scipy import fft

from cuebench.arrays import Array, Floats

Rng = np.random.Generator


def unit(field: Array) -> Array:
    """Return a field with mean 0 and variance 1."""
    return np.asarray((field - field.mean()) / max(float(field.std()), 1e-12))


def sample(tile: Array, x: Array, y: Array) -> Array:
    """Read a periodic tile between its pixels, with smooth weights."""
    height, width = tile.shape[:2]
    i, j = np.floor(y), np.floor(x)
    b, a = y - i, x - j
    b, a = b * b * (3 - 2 * b), a * a * (3 - 2 * a)
    i0, j0 = i.astype(np.int32) % height, j.astype(np.int32) % width
    i1, j1 = (i0 + 1) % height, (j0 + 1) % width
    top, bottom = tile[i0, j0] * (1 - a) + tile[i0, j1] * a, tile[i1, j0] * (1 - a) + tile[i1, j1] * a
    return np.asarray(top * (1 - b) + bottom * b)


def smooth(field: Array, low: float = 0.0, high: float = 1.0) -> Array:
    """Return the smooth step from 0 at ``low`` to 1 at ``high``."""
    t = np.clip((field - np.float32(low)) / np.float32(high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t))


def tone(field: Array) -> Array:
    """Map a field of mean 0 and variance 1 to [0, 1], even in the middle."""
    return np.asarray(0.5 + 0.5 * np.tanh(np.float32(0.75) * field))


def fold(phase: Array) -> Array:
    """Triangle wave of period 1: 0 at whole numbers, 1 half-way."""
    return np.asarray(2 * np.abs(phase - np.round(phase)))


def turned(dx: Array, dy: Array, angle: Array) -> tuple[Array, Array]:
    """Turn offsets into the frame of an element that points along ``angle``."""
    c, s = np.cos(angle), np.sin(angle)
    return dx * c + dy * s, dy * c - dx * s


def step(field: Floats, softness: float = 0.12) -> Floats:
    """Return a soft threshold at 0: 0 where the field is far below, 1 where it is far above."""
    return 0.5 + 0.5 * np.tanh(field / softness)


# ---- on a square of n × n pixels ---------------------------------------------------------------------------------


def noise(rng: Rng, n: int, blur: float) -> Floats:
    """Return smooth periodic noise with mean 0 and variance 1; ``blur`` is in pixels."""
    # In the frequency domain the blur costs the same for every width, and wraps around by itself.
    gain = np.exp(-2 * (np.pi * blur * np.fft.fftfreq(n)) ** 2)
    spectrum = fft.rfft2(rng.standard_normal((n, n)))
    return unit(fft.irfft2(spectrum * gain[:, None] * gain[None, : n // 2 + 1], s=(n, n)))


def waves(rng: Rng, n: int, period: float, spread: float, angle: float, narrow: float = 0.3) -> Floats:
    """Return periodic band-pass noise: stripes of a period (pixels) that fork, at a right angle to ``angle``."""
    f = np.fft.fftfreq(n)
    fy, fx = np.meshgrid(f, f, indexing="ij")
    gain = np.exp(-0.5 * ((np.hypot(fx, fy) - 1 / period) / (spread / period)) ** 2)
    turn = np.angle(np.exp(2j * (np.arctan2(fy, fx) - angle))) / 2
    gain = gain * np.exp(-0.5 * (turn / narrow) ** 2)
    return unit(fft.ifft2(fft.fft2(rng.standard_normal((n, n))) * gain).real)


def grid(rng: Rng, n: int, warp: float = 0.0, turn: float = 0.0) -> tuple[Floats, Floats]:
    """Return pixel coordinates x and y with a random phase, turned (degrees) and gently warped (pixels)."""
    y, x = np.meshgrid(np.arange(n, dtype=float), np.arange(n, dtype=float), indexing="ij")
    a = np.deg2rad(turn)
    x, y = x * np.cos(a) - y * np.sin(a), x * np.sin(a) + y * np.cos(a)
    x, y = x + rng.uniform(0, n), y + rng.uniform(0, n)
    if warp:
        x, y = x + warp * noise(rng, n, n / 10), y + warp * noise(rng, n, n / 10)
    return x, y


def hexagons(size: float, x: Floats, y: Floats) -> Floats:
    """Return the centres of a hexagonal grid that covers the coordinates, number × 2."""
    rows = np.arange(y.min() - size, y.max() + size, size * 0.866)
    columns = np.arange(x.min() - size, x.max() + 2 * size, size)
    return np.array([(c + (k % 2) * size / 2, r) for k, r in enumerate(rows) for c in columns])
