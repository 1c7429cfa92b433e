"""Textures of cells: living, dried, frozen, and the networks between them."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import mix, palette, ramp
from cuebench.stimuli.drawing.fields import smooth, tone


def cells(c: Canvas) -> Array:
    """Living tissue under the microscope: walls, sap and a nucleus in each cell."""
    size = c.pick(16, 36)
    u, v = c.frame(warp=size * 0.1, reach=size * 0.6)
    cell = c.cells(u, v, size, jitter=0.3)
    wall = c.inside(cell.border - size * c.pick(0.035, 0.07), soft=1.2)
    stops = palette(c.rng, 4, chroma=(0.05, 0.13), light=(0.3, 0.92), spread=70)
    sap = ramp(np.clip(0.55 + 0.2 * c.table()[cell.key] + 0.06 * c.fractal(1.2, 12), 0, 1), stops[1:])
    nx, ny = cell.dx - size * c.table(-0.12, 0.12)[cell.key], cell.dy - size * c.table(-0.12, 0.12)[cell.key]
    nucleus = np.hypot(nx, ny) - size * c.table(0.1, 0.17)[cell.key]
    image = mix(0.8 * c.inside(nucleus, soft=1.5), sap, stops[0])
    image = mix(0.35 * smooth(size * 0.16 - cell.border, 0, size * 0.16), image, stops[1])
    return mix(wall, image, stops[0] * 1.15)


def cracked(c: Canvas) -> Array:
    """Dried mud or old paint: plates torn apart by cracks, large and then small."""
    size = c.pick(30, 62)
    u, v = c.frame(warp=3.0, reach=9)
    rough = c.fractal(1.4, 30)
    large = c.cells(u, v, size, jitter=0.42)
    small = c.cells(u + 1.2 * rough, v, size * 0.42, jitter=0.42)
    width = size * c.pick(0.02, 0.05)
    first = smooth(large.border + 0.5 * rough, width * 0.4, width * 1.6)
    second = smooth(small.border + 0.3 * rough, width * 0.05, width * 0.6)
    stops = palette(c.rng, 4, hue=(30, 95), chroma=(0.01, 0.08), light=(0.18, 0.84), spread=30)
    plate = np.clip(0.62 + 0.2 * c.table(-1, 1)[large.key] * 0.6 + 0.09 * rough, 0, 1)
    image = mix(first * (0.45 + 0.55 * second), stops[0] * 0.7, ramp(plate, stops[1:]))
    curl = smooth(large.border, 0, size * 0.3) * size * -0.05
    return c.lit(image, first * size * 0.09 + second * 0.9 + curl + 0.5 * rough, ambient=0.42)


def foam(c: Canvas) -> Array:
    """Froth: polygons of air behind thin bright films, coarse and fine."""
    size = c.pick(15, 36)
    u, v = c.frame(warp=size * 0.12, reach=size)
    # Swelling moves the coordinates along a slope: bubbles are large on one side of it and small on the other.
    u, v = u + size * 0.4 * c.noise(45), v + size * 0.4 * c.noise(45)
    cell = c.cells(u, v, size, jitter=0.45)
    film = np.exp(-((cell.border / (size * c.pick(0.05, 0.09))) ** 2))
    stops = palette(c.rng, 3, chroma=(0.005, 0.08), light=(0.32, 0.97), spread=60)
    along = (cell.dx * np.cos(c.light) + cell.dy * np.sin(c.light)) / size
    dome = smooth(cell.border, 0, size * 0.36)
    shade = np.clip(0.52 + 0.55 * along - 0.18 * dome + 0.1 * c.table(-1, 1)[cell.key], 0, 1)
    image = mix(film, ramp(shade, stops), np.minimum(stops[2] * 1.1, 1))
    gx, gy = cell.dx / size + 0.17 * np.cos(c.light), cell.dy / size + 0.17 * np.sin(c.light)
    glint = np.exp(-(gx * gx + gy * gy) / 0.004)
    return image + (0.5 * glint)[..., None]


def reticulated(c: Canvas) -> Array:
    """A giraffe's coat: dark patches with soft edges in a pale net."""
    size = c.pick(26, 54)
    u, v = c.frame(warp=size * 0.07, reach=size * 0.25)
    cell = c.cells(u, v, size, jitter=0.36)
    ragged = cell.border + size * 0.025 * c.noise(3)
    patch = smooth(ragged, size * 0.045, size * 0.1)
    pale = palette(c.rng, 2, hue=(60, 100), chroma=(0.02, 0.09), light=(0.78, 0.95))
    dark = palette(c.rng, 3, hue=(30, 80), chroma=(0.05, 0.12), light=(0.25, 0.58), spread=25)
    hair = c.noise(0.6, 3.5, c.rng.uniform(0, np.pi))
    coat = ramp(np.clip(0.25 + 0.35 * c.table()[cell.key] + 1.1 * (0.4 - cell.border / size), 0, 1), dark)
    return mix(patch, mix(tone(c.noise(20)), pale[0], pale[1]), coat) * (1 + 0.05 * hair)[..., None]


def crystalline(c: Canvas) -> Array:
    """Facets of crystal, each with its own slope and glint."""
    size = c.pick(20, 46)
    u, v = c.frame()
    stops = palette(c.rng, 4, chroma=(0.02, 0.13), light=(0.22, 0.97), spread=70)
    shade = np.zeros(c.size, np.float32)
    for spacing, weight in ((size, 0.62), (size * 0.46, 0.38)):
        cell = c.cells(u, v, spacing, jitter=0.48)
        slope = cell.dx * c.table(-1.3, 1.3)[cell.key] + cell.dy * c.table(-1.3, 1.3)[cell.key]
        shade += weight * np.clip(c.table(0.1, 0.9)[cell.key] + slope / spacing, 0, 1)
        shade += weight * 0.3 * np.exp(-((cell.border / 1.1) ** 2))
    image = ramp(np.clip(shade, 0, 1), stops)
    return image + (0.35 * smooth(shade, 0.82, 1.05))[..., None]


def pebbles(c: Canvas) -> Array:
    """Rounded stones of many colours, packed on the ground."""
    size = c.pick(17, 38)
    u, v = c.frame(warp=size * 0.12, reach=size * 0.5)
    cell = c.cells(u, v, size, jitter=0.38, aspect=c.pick(0.75, 0.95))
    stone = smooth(cell.border - size * 0.02, 0, size * 0.3)
    dome = np.sqrt(np.clip(1 - (1 - stone) ** 2, 0, 1))
    stops = palette(c.rng, 6, hue=(20, 260), chroma=(0.004, 0.05), light=(0.32, 0.86), spread=120)
    grain = c.fractal(1.1, 14)
    which = np.clip(c.table()[cell.key] + 0.06 * grain, 0, 1)
    colour = ramp(which, stops[c.rng.permutation(6)]) * (1 + 0.06 * c.noise(0.8))[..., None]
    image = mix(smooth(stone, 0.02, 0.3), stops[0] * 0.25, np.asarray(colour, np.float32))
    return c.lit(image, dome * size * 0.36, ambient=0.4, gloss=0.12, shine=14)


def veined(c: Canvas) -> Array:
    """The skin of a leaf: veins that branch and close small fields."""
    size = c.pick(38, 64)
    u, v = c.frame(warp=4, reach=22)
    veins: Array = np.zeros(c.size, np.float32)
    for spacing, width, strength in ((size, 1.7, 1.0), (size * 0.38, 0.95, 0.7), (size * 0.16, 0.6, 0.38)):
        cell = c.cells(u, v, spacing, jitter=0.42)
        veins = np.maximum(veins, strength * np.exp(-((cell.border / (width * size / 50)) ** 2)))
    hue = (105, 155) if c.chance(0.6) else (20, 360)
    leaf = palette(c.rng, 3, hue=hue, chroma=(0.06, 0.13), light=(0.3, 0.9), spread=30)
    blade = ramp(np.clip(0.3 + 0.12 * tone(c.noise(30)) + 0.05 * c.noise(0.9), 0, 1), leaf)
    return c.lit(mix(veins * 0.9, blade, leaf[2]), -veins * 2.4, ambient=0.5, gloss=0.1)


def labyrinthine(c: Canvas) -> Array:
    """Winding ridges without end or direction, like brain coral."""
    period = c.pick(11, 28)
    field = c.waves(period, 0.14)
    ridge = tone(2.2 * field)
    stops = palette(c.rng, 4, chroma=(0.03, 0.14), light=(0.22, 0.9), spread=70)
    image = ramp(np.clip(0.08 + 0.84 * ridge + 0.04 * c.noise(0.8), 0, 1), stops)
    return c.lit(image, ridge * period * 0.34 + 0.2 * c.noise(0.9), ambient=0.42, gloss=0.12)


def leathery(c: Canvas) -> Array:
    """Hide: small flat pads between fine creases, with deeper folds."""
    size = c.pick(6.5, 13)
    u, v = c.frame(warp=size * 0.3, reach=size * 1.6)
    pad = c.cells(u, v, size, jitter=0.4, aspect=c.pick(0.7, 1.0))
    top = smooth(pad.border, 0, size * 0.24)
    folds = np.abs(c.noise(c.pick(9, 16), c.pick(18, 34), c.rng.uniform(0, np.pi)))
    crease = 1 - np.exp(-((folds / 0.16) ** 2))
    stops = palette(c.rng, 3, hue=(20, 75), chroma=(0.02, 0.1), light=(0.22, 0.68), spread=25)
    image = ramp(np.clip(0.15 + 0.42 * top + 0.2 * crease + 0.2 * tone(c.noise(30)), 0, 1), stops)
    return c.lit(image, top * size * 0.2 + crease * 1.8 + 0.1 * c.noise(0.8), ambient=0.38, gloss=0.2, shine=14)


def cobwebbed(c: Canvas) -> Array:
    """Spiders' threads: spokes from a few centres and sagging rings between them."""
    size = c.pick(85, 150)
    u, v = c.frame(warp=2, reach=25)
    stops = palette(c.rng, 3, chroma=(0.01, 0.08), light=(0.14, 0.5), spread=60)
    image = ramp(tone(c.noise(28)), stops)
    web = np.zeros(c.size, np.float32)
    for spacing in (size, size * 0.7):
        cell = c.cells(u, v, spacing, jitter=0.45)
        spokes = c.rng.integers(11, 19, 64 * 64)[cell.key]
        angle = np.arctan2(cell.dy, cell.dx) * spokes / (2 * np.pi) + 0.16 * c.noise(30)
        part = np.asarray(angle - np.round(angle), np.float32)  # signed distance to the nearest spoke
        r = cell.centre * (1 - 0.16 * np.cos(np.pi * part) ** 2) + 0.8 * c.noise(8)
        ring = c.pick(5, 9)
        arc = np.abs(part) * 2 * np.pi / spokes * cell.centre
        thread = np.maximum(c.inside(arc - 0.35), 0.75 * c.inside(np.abs(r / ring - np.round(r / ring)) * ring - 0.35))
        web = np.maximum(web, thread * tone(c.noise(18) + 0.9))
    dew = c.cells(u, v, 5, jitter=0.45)
    drops = c.inside(dew.centre - 0.9) * web * (c.table()[dew.key] > 0.6)
    return mix(np.clip(0.8 * web + drops, 0, 1), image, palette(c.rng, 1, chroma=(0, 0.02), light=(0.88, 0.97))[0])
