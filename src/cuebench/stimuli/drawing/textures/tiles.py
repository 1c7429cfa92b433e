"""Textures of pieces laid side by side: tiles, bricks, scales and combs."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import accents, mix, palette, ramp
from cuebench.stimuli.drawing.fields import fold, smooth, tone


def chequered(c: Canvas) -> Array:
    """Squares of two colours in turn."""
    size = c.pick(11, 34)
    u, v = c.frame(warp=c.pick(0.1, 0.09 * size), reach=45)
    sides = [c.inside((fold(w / (2 * size)) - 0.5) * size) for w in (u, v)]
    cover = sides[0] + sides[1] - 2 * sides[0] * sides[1]
    dark, light = palette(c.rng, 2, chroma=(0.0, 0.15), light=(0.18, 0.93), spread=200)
    return mix(cover, dark, light) * (1 + 0.03 * c.noise(1.0) + 0.04 * c.noise(30))[..., None]


def grid(c: Canvas) -> Array:
    """Thin lines that cross at right angles."""
    size = c.pick(11, 34)
    u, v = c.frame(warp=c.pick(0.05, 0.06 * size), reach=60)
    width = size * c.pick(0.05, 0.12)
    gaps = [np.abs(w / size - np.round(w / size)) * size for w in (u, v)]
    line = c.inside(np.minimum(*gaps) - width)
    ground, ink = palette(c.rng, 2, chroma=(0.0, 0.12), light=(0.2, 0.93), spread=200)[c.rng.permutation(2)]
    back = ground * (1 + 0.05 * c.noise(25) + 0.02 * c.noise(1))[..., None]
    image = mix(line, np.asarray(back, np.float32), ink)
    return c.lit(image, line * width * c.pick(0.1, 0.8), ambient=0.5)


def bricks(c: Canvas) -> Array:
    """Courses of bricks, half a brick apart, in rough mortar."""
    length = c.pick(34, 64)
    height = length * c.pick(0.3, 0.45)
    u, v = c.frame(c.rng.uniform(-0.06, 0.06), warp=c.pick(0.3, 1.0), reach=14)
    row = np.floor(v / height)
    a = u / length + float(c.rng.choice([0.5, 0.33])) * row
    column = np.floor(a)
    key = (row.astype(np.int32) % 64) * 64 + column.astype(np.int32) % 64
    gap = np.minimum((0.5 - np.abs(a - column - 0.5)) * length, (0.5 - np.abs(v / height - row - 0.5)) * height)
    rough = c.fractal(1.2, 20)
    brick = smooth(gap + 0.35 * rough, 0.9, 2.6)
    stops = palette(c.rng, 4, hue=(15, 75), chroma=(0.03, 0.12), light=(0.3, 0.72), spread=30)
    clay = ramp(np.clip(c.table(0.1, 0.9)[key] + 0.13 * rough, 0, 1), stops)
    mortar = palette(c.rng, 1, hue=(40, 100), chroma=(0.004, 0.03), light=(0.55, 0.85))[0]
    image = mix(brick, np.asarray(mortar * (1 + 0.07 * rough)[..., None], np.float32), clay)
    return c.lit(image, brick * 2.6 + 0.7 * rough, ambient=0.42)


def mosaic(c: Canvas) -> Array:
    """Small stones of many colours set by hand, flowing in curves."""
    size = c.pick(9, 19)
    u, v = c.frame(warp=c.pick(2, 9), reach=45)
    cells = c.cells(u, v, size, jitter=0.13, stagger=float(c.rng.choice([0.0, 0.5])))
    stone = smooth(cells.border, size * 0.05, size * 0.13)
    zones = ramp(tone(c.noise(34)), accents(c.rng, 4, chroma=(0.05, 0.15), light=(0.4, 0.85)))
    glass = zones * c.table(0.68, 1.2)[cells.key][..., None]
    grout = palette(c.rng, 1, chroma=(0.0, 0.03), light=(0.25, 0.8))[0]
    tilt = cells.dx * c.table(-0.16, 0.16)[cells.key] + cells.dy * c.table(-0.16, 0.16)[cells.key]
    return c.lit(mix(stone, grout, glass), stone * (size * 0.1 + tilt), ambient=0.5, gloss=0.15)


def parquet(c: Canvas) -> Array:
    """Herringbone floor: blocks of wood at right angles."""
    width = c.pick(11, 20)
    u, v = c.frame(np.pi / 4 + c.rng.uniform(-0.12, 0.12))
    ratio = 4
    i, j = np.floor(u / width).astype(np.int32), np.floor(v / width).astype(np.int32)
    # Blocks of 1 × 4 unit squares; the diagonal number says to which block of which direction a square belongs.
    step = (i - j) % (2 * ratio)
    flat = step < ratio
    part = np.where(flat, step, 2 * ratio - 1 - step)
    key = np.where(flat, (i - part) * 57 + j * 131, i * 83 + (j - part) * 29 + 7) % 4096
    a, b = u / width - i, v / width - j
    along, across = np.where(flat, a, b) + part, np.where(flat, b, a)
    gap = np.minimum(0.5 - np.abs(across - 0.5), ratio / 2 - np.abs(along - ratio / 2)) * width
    grain = c.streaks(across * width + 37 * c.table(0, 9)[key], along * width + 11 * c.table(0, 9)[key], 1.4, 22)
    stops = palette(c.rng, 4, hue=(45, 80), chroma=(0.05, 0.11), light=(0.3, 0.82), spread=25)
    image = ramp(np.clip(0.55 * c.table()[key] + 0.45 * grain, 0, 1), stops)
    seam = smooth(gap, 0.1, 1.1)
    return c.lit(image * (0.35 + 0.65 * seam)[..., None], seam * 0.9, ambient=0.5, gloss=0.08)


def waffled(c: Canvas) -> Array:
    """Deep square pockets between ridges, baked or woven."""
    size = c.pick(17, 38)
    u, v = c.frame(warp=c.pick(0.02, 0.05) * size, reach=40)
    ridge = np.maximum(fold(u / size + 0.5), fold(v / size + 0.5))
    wall = smooth(ridge, c.pick(0.42, 0.55), c.pick(0.72, 0.85))
    rough = c.fractal(1.2, 18)
    stops = palette(c.rng, 4, hue=(45, 90), chroma=(0.05, 0.13), light=(0.3, 0.88), spread=35)
    image = ramp(np.clip(0.2 + 0.62 * wall + 0.09 * rough, 0, 1), stops)
    return c.lit(image, wall * size * 0.26 + 0.5 * rough, ambient=0.4, gloss=0.06)


def quilted(c: Canvas) -> Array:
    """Padded diamonds held by rows of stitches."""
    size = c.pick(24, 52)
    u, v = c.frame(np.pi / 4 + c.rng.uniform(-0.35, 0.35), warp=c.pick(0.3, 1.5))
    gaps = [np.abs(w / size - np.round(w / size)) * size for w in (u, v)]
    puff = np.sqrt(np.clip((1 - fold(u / size + 0.5) ** 2.4) * (1 - fold(v / size + 0.5) ** 2.4), 0, 1))
    period = c.pick(3.5, 5.5)
    dash = [c.inside(g - 0.55) * smooth(fold(w / period), 0.25, 0.5) for g, w in zip(gaps, (v, u))]
    base = palette(c.rng, 3, chroma=(0.02, 0.13), light=(0.28, 0.86), spread=25)
    creases = c.fractal(1.8, 16)
    image = ramp(np.clip(0.28 + 0.62 * puff, 0, 1), base)
    image = c.lit(image, puff * size * 0.27 + 0.35 * creases * (1 - 0.5 * puff), ambient=0.42, gloss=0.22, shine=16)
    return mix(np.maximum(*dash), image, palette(c.rng, 1, chroma=(0, 0.05), light=(0.6, 0.95))[0])


def honeycombed(c: Canvas) -> Array:
    """Hexagonal cells of wax, some full, some empty."""
    size = c.pick(15, 36)
    u, v = c.frame(warp=c.pick(0.02, 0.09) * size, reach=40)
    cells = c.cells(u, v, size, aspect=0.866, jitter=0.03)
    wall = c.inside(cells.border - size * c.pick(0.05, 0.1), soft=1.1)
    stops = palette(c.rng, 4, hue=(45, 90), chroma=(0.07, 0.15), light=(0.22, 0.88), spread=30)
    fill = c.table()[cells.key]
    bowl = np.clip(0.62 * fill + 0.5 * cells.centre / size, 0, 0.9)
    image = mix(wall, ramp(bowl, stops), stops[3])
    height = wall * size * 0.22 - (1 - wall) * (1 - fill) * smooth(cells.border, 0, size * 0.4) * size * 0.3
    return c.lit(image, height, ambient=0.42, gloss=0.3, shine=30)


def scaly(c: Canvas) -> Array:
    """Overlapping rounded scales in rows, as on a fish or a roof."""
    size = c.pick(14, 34)
    u, v = c.frame(c.rng.uniform(0, 2 * np.pi), warp=c.pick(0.03, 0.14) * size, reach=45)
    aspect = c.pick(0.5, 0.65)
    top = np.full(c.size, -1.0, np.float32)
    depth, key = np.zeros(c.size, np.float32), np.zeros(c.size, np.int32)
    # Rows are laid from the tail: the first row whose scale covers the pixel is on top.
    for site in c.sites(u, v, size, aspect=aspect, rows=(-2, -1, 0, 1), columns=(-1, 0, 1), jitter=0.02):
        r = np.hypot(site.dx, site.dy) / (0.62 * size)
        cover = (r < 1) & (top < 0)
        top, depth, key = np.where(cover, 1.0, top), np.where(cover, r, depth), np.where(cover, site.key, key)
    edge = smooth(depth, 0.8, 1.0)
    stops = palette(c.rng, 4, chroma=(0.03, 0.13), light=(0.22, 0.86), spread=80)
    shade = np.clip(0.75 - 0.55 * depth + 0.3 * (edge > 0.4) * (1 - edge) + c.table(-0.12, 0.12)[key], 0, 1)
    ribs = 0.05 * c.noise(0.8)
    image = ramp(np.clip(shade + ribs, 0, 1), stops)
    dome = np.sqrt(np.clip(1.02 - depth**2, 0, 1)) * size * 0.28
    return c.lit(image, dome, ambient=0.4, gloss=0.3, shine=20)
