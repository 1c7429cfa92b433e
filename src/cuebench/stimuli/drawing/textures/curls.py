"""Textures of curls, leaves and feathers: shapes that turn, in great number."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import accents, mix, palette, ramp
from cuebench.stimuli.drawing.fields import fold, smooth, tone, turned


def swirly(c: Canvas) -> Array:
    """Paint stirred in many eddies."""
    u, v = c.frame()
    size = c.pick(42, 80)
    spins = c.table(2.2, 4.4) * np.where(c.table() < 0.5, 1, -1).astype(np.float32)
    for site in c.sites(u, v, size, jitter=0.3, aspect=0.866):
        # Wide enough to touch the next eddy, and gone where a fourth neighbour would begin.
        spin = spins[site.key] * np.exp(-(site.dx**2 + site.dy**2) / np.float32((size * 0.34) ** 2))
        a, b = turned(site.dx, site.dy, spin)
        u, v = u + a - site.dx, v + b - site.dy
    t = c.streaks(u, v, c.pick(9, 16), 70) + 0.25 * c.streaks(u, v, 3, 60)
    stops = palette(c.rng, 5, chroma=(0.04, 0.16), light=(0.22, 0.94), spread=170)
    return ramp(smooth(t, 0.15, 1.05), stops)


def spiralled(c: Canvas) -> Array:
    """Spirals side by side, each winding from its own centre."""
    size = c.pick(44, 96)
    u, v = c.frame(warp=c.pick(0.3, 2))
    cell = c.cells(u, v, size, jitter=c.pick(0.02, 0.3), aspect=0.866)
    hand = np.where(c.table() < c.pick(0.2, 1), 1.0, -1.0).astype(np.float32)[cell.key]
    gap = size * c.pick(0.09, 0.17)
    t = cell.centre / gap + hand * np.arctan2(cell.dy, cell.dx) / (2 * np.pi) + c.table()[cell.key]
    line = smooth(fold(t), c.pick(0.3, 0.5), 0.62)
    dark, light = palette(c.rng, 2, chroma=(0.02, 0.15), light=(0.2, 0.92), spread=200)
    other = palette(c.rng, 3, chroma=(0.03, 0.14), light=(0.25, 0.6), spread=120)
    ground = mix(c.table()[cell.key], dark, other[1])
    image = mix(line, ground, light)
    image = mix(c.inside(cell.border - 0.8), image, dark * 0.7)
    return c.lit(image, line * gap * 0.28, ambient=0.5, gloss=0.1)


def paisley(c: Canvas) -> Array:
    """Printed drops with a curled tip, an inner drop and a row of dots."""
    size = c.pick(42, 68)
    u, v = c.frame(warp=c.pick(0.2, 1.2))
    colours = accents(c.rng, 5, chroma=(0.05, 0.16), light=(0.28, 0.9))
    image = np.broadcast_to(colours[0], (*c.size, 3)).astype(np.float32)
    dots = c.cells(u, v, size * 0.16, aspect=0.866)
    image = mix(c.inside(dots.centre - size * 0.025), image, colours[3])
    base, flip = c.rng.uniform(0, 2 * np.pi), np.where(c.table() < 0.5, 1.0, -1.0)
    angle = (base + c.table(-0.5, 0.5) + np.where(flip > 0, 0, np.pi)).astype(np.float32)
    for site in c.sites(u, v, size, aspect=0.8, jitter=0.06):
        a, b = turned(site.dx / (0.92 * size), site.dy / (0.92 * size), angle[site.key])
        b = b * flip[site.key].astype(np.float32)
        # A circle drawn out to a tip that bends to one side.
        t = np.clip((a + 0.22) / 0.72, 0, 1)
        bend, half = 0.3 * t**2.2, 0.25 * np.sqrt(np.clip(1 - t, 0, 1)) * (1 - 0.25 * t)
        drop = np.where(a < -0.06, np.hypot(a + 0.06, b) - 0.235, (np.abs(b - bend) - half) * 0.9)
        drop = np.maximum(drop, (a - 0.46) * 0.5)
        ring = np.abs(drop + 0.075) - 0.012
        petals = np.hypot(a + 0.06, b) - (0.07 + 0.03 * np.cos(6 * np.arctan2(b, a + 0.06)))
        beads = np.maximum(np.abs(drop + 0.038) - 0.017, 0.35 - fold(np.arctan2(b - bend, a + 0.06) * 3.2))
        image = mix(c.inside(drop * size), image, colours[1])
        image = mix(c.inside((np.abs(drop) - 0.012) * size), image, colours[4])
        image = mix(c.inside(beads * size * 0.5), image, colours[3])
        image = mix(c.inside(ring * size), image, colours[2])
        image = mix(c.inside(petals * size), image, colours[4])
    return image * (1 + 0.03 * c.noise(0.7))[..., None]


def leaves(c: Canvas) -> Array:
    """Foliage: pointed leaves with a midrib, lying over each other."""
    size = c.pick(26, 48)
    hue = (100, 150) if c.chance(0.65) else (25, 110)
    stops = palette(c.rng, 5, hue=hue, chroma=(0.06, 0.14), light=(0.24, 0.9), spread=50)
    image: Array = ramp(0.1 * tone(c.noise(6)), stops)
    height = np.zeros(c.size, np.float32)
    for layer in range(2):
        u, v = c.frame()
        angle, tint, plump = c.table(0, 2 * np.pi), c.table(0.15, 0.75), c.table(0.3, 0.46)
        for site in c.sites(u, v, size, jitter=0.4):
            a, b = turned(site.dx / size, site.dy / size, angle[site.key])
            t = np.clip((a + 0.72) / 1.44, 0, 1)
            half = plump[site.key] * np.clip(np.sin(np.pi * t**0.8), 0, 1) ** 1.3
            gap = (np.abs(b) - half) * size * 0.8
            cover = c.inside(gap)
            side = np.where(b > 0, 0.1, -0.06)
            rib = np.exp(-((b / 0.022) ** 2)) + 0.4 * smooth(fold((a - 0.8 * np.abs(b)) * 8), 0.72, 1)
            shade = np.clip(tint[site.key] + side + 0.25 * rib + 0.1 * layer - 0.25 * np.exp(gap / 3), 0, 1)
            image = mix(0.45 * c.inside(gap - 3, soft=3), image, stops[0] * 0.5)
            image = mix(cover, image, ramp(shade, stops))
            height = np.where(cover > 0.5, np.sqrt(np.abs(b) + 0.01) * size * 0.3, height)
    return c.lit(image, height, ambient=0.6, gloss=0.1)


def feathered(c: Canvas) -> Array:
    """Plumage: rows of long feathers with a pale shaft, fine barbs and a coloured tip."""
    size = c.pick(34, 62)
    u, v = c.frame(c.rng.uniform(0, 2 * np.pi), warp=size * 0.08, reach=40)
    stops = palette(c.rng, 4, chroma=(0.02, 0.12), light=(0.18, 0.94), spread=90)
    free = np.ones(c.size, bool)
    shade, height = np.zeros(c.size, np.float32), np.zeros(c.size, np.float32)
    tilt, bars, tip = c.table(-0.35, 0.35), c.pick(0, 0.22), c.pick(-0.35, 0.35)
    for site in c.sites(u, v, size, aspect=0.5, jitter=0.08, rows=(-2, -1, 0, 1)):
        a, b = turned(site.dx / size, site.dy / size, tilt[site.key])
        side = np.abs(a)
        r = np.hypot(a / 0.52, (b + 0.3) / 1.05)
        here = free & (r < 0.95)
        barb = fold((b - 0.9 * side) * size / 3.1)
        shaft = np.exp(-((a / 0.03) ** 2))
        light = 0.4 + 0.3 * barb + 0.4 * shaft + tip * smooth(r, 0.7, 0.85) - 0.25 * smooth(r, 0.87, 0.95)
        light = light + bars * np.sin(16 * (b + 0.4 * side)) + np.where(a > 0, 0.06, -0.06)
        shade = np.where(here, light, shade)
        height = np.where(here, (1 - r**2) * size * 0.12 + barb * 0.7 + 2 * shaft, height)
        free &= ~here
    return c.lit(ramp(np.clip(shade, 0, 1), stops), height, ambient=0.55, gloss=0.06)


def frilly(c: Canvas) -> Array:
    """Ruffles: ribbons gathered into waves, row above row."""
    row, period = c.pick(20, 40), c.pick(11, 22)
    u, v = c.frame(c.rng.uniform(-0.4, 0.4), warp=2, reach=40)
    phase = u / period + 0.7 * c.noise(20)
    wave = np.sin(2 * np.pi * phase)
    t = v / row + 0.13 * wave + 0.1 * c.noise(16)
    depth = t - np.floor(t)
    flare = np.sin(2 * np.pi * phase + 0.9 * depth + 2.4 * np.floor(t)) * smooth(depth, 0.02, 0.8)
    stops = palette(c.rng, 4, chroma=(0.03, 0.14), light=(0.26, 0.94), spread=35)
    shade = np.clip(0.22 + 0.5 * depth + 0.24 * flare + 0.16 * smooth(depth, 0.9, 0.97), 0, 1)
    return c.lit(ramp(shade, stops), flare * period * 0.24 + depth * row * 0.16, ambient=0.5, gloss=0.06)
