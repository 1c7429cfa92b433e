"""The canvas that textures are drawn on: coordinates, noise, lattices and light. Lengths are pixels at scale 1."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from cuebench.arrays import Array
from cuebench.stimuli.drawing.fields import sample, unit

Rng = np.random.Generator
TABLE = 64
"""Rows and columns of a lattice after which its sites repeat their random numbers: further than anyone sees."""


class Site(NamedTuple):
    """A lattice site near each pixel: offset of the pixel from it, and its number in tables of random values."""

    dx: Array
    dy: Array
    key: Array


class Cells(NamedTuple):
    """The Voronoi cell of each pixel: offset from its site, distances to site and border, number of the site."""

    dx: Array
    dy: Array
    key: Array
    centre: Array
    border: Array


class Canvas:
    """A blank picture with its own random stream.

    Parameters
    ----------
    size : pair of int
        Height and width in pixels.
    rng : Generator
        Everything random comes from here, in the order of the calls.
    scale : float
        Size of the structure: 2 draws everything twice as large.
    """

    def __init__(self, size: tuple[int, int], rng: Rng, scale: float = 1.0) -> None:
        self.size, self.rng, self.scale = size, rng, float(scale)
        height, width = size
        self.y, self.x = np.meshgrid(
            (np.arange(height, dtype=np.float32) - height / 2) / self.scale,
            (np.arange(width, dtype=np.float32) - width / 2) / self.scale,
            indexing="ij",
        )
        self.light = rng.uniform(0, 2 * np.pi)

    # ---- random numbers ----------------------------------------------------------------------------------------

    def pick(self, low: float, high: float) -> float:
        """Draw a number; lengths are drawn so that each octave is equally likely."""
        if low > 0:
            return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))
        return float(self.rng.uniform(low, high))

    def chance(self, share: float) -> bool:
        """Decide with a probability."""
        return bool(self.rng.random() < share)

    def table(self, low: float = 0.0, high: float = 1.0) -> Array:
        """Return one uniform number for each lattice site, to be indexed by ``Site.key``."""
        return self.rng.uniform(low, high, TABLE * TABLE).astype(np.float32)

    # ---- coordinates ---------------------------------------------------------------------------------------------

    def frame(
        self, turn: float | None = None, *, warp: float = 0.0, reach: float = 45.0, shift: float = 900.0
    ) -> tuple[Array, Array]:
        """Return coordinates that are turned (radians; None: randomly), moved randomly and warped by smooth noise."""
        angle = self.rng.uniform(0, np.pi) if turn is None else turn
        c, s = np.float32(np.cos(angle)), np.float32(np.sin(angle))
        u = self.x * c + self.y * s + np.float32(self.rng.uniform(0, shift))
        v = self.y * c - self.x * s + np.float32(self.rng.uniform(0, shift))
        if warp:
            u, v = u + np.float32(warp) * self.noise(reach), v + np.float32(warp) * self.noise(reach)
        return u, v

    # ---- noise ---------------------------------------------------------------------------------------------------

    def noise(self, blur: float, across: float | None = None, turn: float = 0.0) -> Array:
        """Return smooth noise with mean 0 and variance 1; ``across`` blurs differently at a right angle to ``turn``."""
        fy, fx = _frequencies(*self._padded)
        a, b = blur * self.scale, (blur if across is None else across) * self.scale
        c, s = np.cos(turn), np.sin(turn)
        along, aside = fx * np.float32(c) + fy * np.float32(s), fy * np.float32(c) - fx * np.float32(s)
        return self._filtered(np.exp(np.float32(-2 * np.pi**2) * ((a * along) ** 2 + (b * aside) ** 2)))

    def fractal(self, slope: float = 1.6, largest: float = 80.0, smallest: float = 0.0) -> Array:
        """Return 1/f noise with mean 0 and variance 1 between two lengths."""
        fy, fx = _frequencies(*self._padded)
        squared = fx**2 + fy**2
        gain = (squared + np.float32((0.16 / (largest * self.scale)) ** 2)) ** np.float32(-slope / 2)
        if smallest:
            gain = gain * np.exp(np.float32(-2 * np.pi**2) * squared * (0.3 * smallest * self.scale) ** 2)
        return self._filtered(gain)

    def waves(self, period: float, width: float = 0.2, turn: float | None = None, narrow: float = 0.25) -> Array:
        """Return band-pass noise: a labyrinth, or stripes that fork at a right angle to ``turn``."""
        fy, fx = _frequencies(*self._padded)
        f = 1 / (period * self.scale)
        gain = np.exp(-0.5 * ((np.hypot(fx, fy) - f) / (width * f)) ** 2)
        if turn is not None:
            off = np.arctan2(fy, fx) - np.float32(turn)
            gain = gain * np.exp(-0.5 * (np.sin(off) / narrow) ** 2)
        return self._filtered(gain)

    @property
    def _padded(self) -> tuple[int, int]:
        height, width = (int(fft.next_fast_len(n + 8, real=True)) for n in self.size)
        return height, width

    def _filtered(self, gain: Array) -> Array:
        shape = self._padded
        gain.flat[0] = 0
        white = self.rng.standard_normal(shape, np.float32)
        field = fft.irfft2(fft.rfft2(white) * gain.astype(np.float32), s=shape)[: self.size[0], : self.size[1]]
        return np.asarray(unit(field), np.float32)

    def streaks(self, u: Array, v: Array, across: float, along: float) -> Array:
        """Return noise in [0, 1] that is drawn out along ``v`` and follows wherever the coordinates are warped."""
        tile = self.rng.random((256, 256), np.float32)
        return sample(tile, u / np.float32(across), v / np.float32(along))

    # ---- lattices ------------------------------------------------------------------------------------------------

    def sites(
        self,
        u: Array,
        v: Array,
        spacing: float,
        *,
        aspect: float = 1.0,
        jitter: float = 0.0,
        stagger: float = 0.5,
        rows: tuple[int, ...] = (-1, 0, 1),
        columns: tuple[int, ...] = (-1, 0, 1),
    ) -> Iterator[Site]:
        """Yield the sites of a lattice around each pixel, in a fixed order.

        ``aspect`` is the height of a row in units of ``spacing``, ``stagger`` moves each second row by that share of
        the spacing, ``jitter`` moves each site by up to that share.
        """
        jx, jy = self.table(-jitter, jitter), self.table(-jitter, jitter)
        a, b = u / np.float32(spacing), v / np.float32(spacing * aspect)
        jx, jy, high = jx * np.float32(spacing), jy * np.float32(spacing * aspect), np.float32(spacing * aspect)
        floor = np.floor(b)
        row0, in_column = floor.astype(np.intp), (b - floor - np.float32(0.5)) * high
        for dr in rows:
            row = row0 + dr
            moved = a - np.float32(stagger) * (row & 1).astype(np.float32)
            floor = np.floor(moved)
            column0, in_row = floor.astype(np.intp), (moved - floor - np.float32(0.5)) * np.float32(spacing)
            first, below = (row & (TABLE - 1)) * TABLE, in_column - np.float32(dr) * high
            for dc in columns:
                key = first + ((column0 + dc) & (TABLE - 1))
                dx = in_row - np.float32(dc * spacing)
                if jitter:
                    yield Site(dx - jx.take(key), below - jy.take(key), key)
                else:
                    yield Site(dx, below, key)

    def cells(self, u: Array, v: Array, spacing: float, **lattice: Any) -> Cells:
        """Return the Voronoi cells of a lattice, with the true distance to the border of the cell."""
        parts = list(self.sites(u, v, spacing, **lattice))
        nx, ny, nk = (a.copy() for a in parts[0])
        near = nx * nx + ny * ny
        for dx, dy, key in parts[1:]:
            squared = dx * dx + dy * dy
            closer = squared < near
            for old, new in ((nx, dx), (ny, dy), (nk, key), (near, squared)):
                np.copyto(old, new, where=closer)
        return Cells(nx, ny, nk, np.sqrt(near), _border(parts, nx, ny, near))

    # ---- edges and light -----------------------------------------------------------------------------------------

    def inside(self, distance: Array, soft: float = 0.0) -> Array:
        """Return 1 where a signed distance is negative, 0 where positive, with a border about one pixel wide."""
        width = np.float32(max(0.75 / self.scale, soft))
        return np.asarray(np.clip(0.5 - distance / (2 * width), 0, 1))

    def lit(self, image: Array, height: Array, *, ambient: float = 0.45, gloss: float = 0.0, shine: int = 24) -> Array:
        """Light a coloured surface of given height (in lengths) from the direction of the canvas."""
        gy, gx = np.gradient(height, np.float32(1 / self.scale))
        lx, ly, lz = (np.float32(n) for n in (0.75 * np.cos(self.light), 0.75 * np.sin(self.light), 0.66))
        inverse = 1 / np.sqrt(1 + gx * gx + gy * gy)
        diffuse = np.clip((lz - gx * lx - gy * ly) * inverse, 0, None) / lz
        out = image * (np.float32(ambient) + np.float32(1 - ambient) * diffuse)[..., None]
        if gloss:
            # Half-way vector between the light and the viewer, who looks straight down.
            norm = np.float32(1 / np.sqrt(2 + 2 * lz))
            half = np.clip(((1 + lz) - gx * lx - gy * ly) * inverse * norm, 0, 1)
            out = out + (np.float32(gloss) * half**shine)[..., None]
        return np.asarray(out, np.float32)


def _border(parts: list[Site], nx: Array, ny: Array, near: Array) -> Array:
    """Return the distance to the nearest bisector between a pixel's site and another one.

    With s the vector between the two sites, it is (d² − near) / 2|s|; comparing its square spares the square root.
    """
    least = np.full(near.shape, 1e12, np.float32)
    for dx, dy, _ in parts:
        sx, sy = dx - nx, dy - ny
        apart = sx * sx + sy * sy
        gain = dx * dx + dy * dy - near
        # The pixel's site itself has apart = 0: it is pushed out of reach.
        np.minimum(least, gain * gain / (apart + np.float32(1e-9)) + np.float32(1e12) * (apart < 1e-3), out=least)
    return np.asarray(np.sqrt(least) / 2)


@lru_cache(maxsize=8)
def _frequencies(height: int, width: int) -> tuple[Array, Array]:
    fy, fx = np.meshgrid(fft.fftfreq(height), fft.rfftfreq(width), indexing="ij")
    return fy.astype(np.float32), fx.astype(np.float32)
