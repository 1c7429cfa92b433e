"""Textures of dots: printed, punched, raised and sunk."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import accents, mix, palette, ramp, rgb
from cuebench.stimuli.drawing.fields import smooth, tone, turned


def polka_dotted(c: Canvas) -> Array:
    """Large round dots of one size in even rows on plain cloth."""
    spacing = c.pick(22, 58)
    u, v = c.frame(warp=c.pick(0.2, 1.5))
    cells = c.cells(u, v, spacing, aspect=0.5 if c.chance(0.5) else 0.866, stagger=0.5)
    ground, dot = palette(c.rng, 2, chroma=(0.03, 0.16), light=(0.3, 0.92), spread=260)[c.rng.permutation(2)]
    cover = c.inside(cells.centre - spacing * c.pick(0.2, 0.31))
    return mix(cover, ground, dot) * (1 + 0.03 * c.noise(0.7))[..., None]


def dotted(c: Canvas) -> Array:
    """Many small dots of uneven size, scattered as by a pen or a brush."""
    spacing = c.pick(7, 15)
    u, v = c.frame()
    cells = c.cells(u, v, spacing, jitter=0.4)
    crowd = tone(c.noise(c.pick(25, 50)))
    radius = spacing * (0.08 + 0.16 * c.table()[cells.key] + 0.18 * crowd)
    ground, dot = palette(c.rng, 2, chroma=(0.01, 0.14), light=(0.22, 0.94), spread=160)[c.rng.permutation(2)]
    return mix(c.inside(cells.centre - radius), ground + 0.015 * c.noise(3)[..., None], dot)


def flecked(c: Canvas) -> Array:
    """Tweed or terrazzo-like cloth: short flecks of other colours in a mottled ground."""
    size = c.pick(1.3, 2.8)
    stops = palette(c.rng, 3, chroma=(0.01, 0.07), light=(0.35, 0.72))
    turn = c.rng.uniform(0, np.pi)
    image = ramp(tone(0.8 * c.noise(0.9) + 0.5 * c.fractal(1.2, 40)), stops)
    for fleck in accents(c.rng, 4, chroma=(0.05, 0.16), light=(0.2, 0.95)):
        field = c.noise(size * c.pick(1.2, 3.0), size, turn + c.rng.uniform(-0.5, 0.5))
        image = mix(smooth(field, 1.55, 1.9), image, fleck)
    return image


def freckled(c: Canvas) -> Array:
    """Soft round spots of many sizes that run into each other, as on skin, eggs or a trout."""
    ground, spot = palette(c.rng, 2, hue=(20, 90), chroma=(0.03, 0.1), light=(0.36, 0.9), spread=60)[::-1]
    image = np.asarray(ground + 0.03 * c.fractal(1.4, 50)[..., None], np.float32)
    for spacing, strength in ((c.pick(26, 46), 0.7), (c.pick(11, 18), 0.85), (c.pick(5, 7), 0.6)):
        u, v = c.frame(warp=spacing * 0.08, reach=spacing * 0.3)
        cells = c.cells(u, v, spacing, jitter=0.45)
        big = c.table(-0.12, 0.36)[cells.key]
        cover = c.inside(cells.centre - spacing * big, soft=spacing * 0.05)
        image = mix(strength * cover * c.table(0.4, 1)[cells.key], image, spot)
    return image


def sprinkled(c: Canvas) -> Array:
    """Coloured sugar sprinkles on icing, this way and that."""
    spacing = c.pick(15, 30)
    ground = palette(c.rng, 1, chroma=(0.02, 0.09), light=(0.7, 0.93))[0]
    colours = accents(c.rng, 6, chroma=(0.1, 0.19), light=(0.45, 0.85))
    image = np.broadcast_to(ground, (*c.size, 3)) + 0.012 * c.noise(5)[..., None]
    height = np.zeros(c.size, np.float32)
    length, radius = spacing * c.pick(0.26, 0.4), spacing * c.pick(0.09, 0.14)
    for _ in range(2):
        u, v = c.frame()
        angle, kind = c.table(0, np.pi), c.rng.integers(0, len(colours), 64 * 64)
        for site in c.sites(u, v, spacing, jitter=0.35):
            a, b = turned(site.dx, site.dy, angle[site.key])
            gap = np.hypot(np.maximum(np.abs(a) - length, 0), b) - radius
            cover = c.inside(gap)
            image = mix(0.3 * c.inside(gap - radius * 0.5, soft=radius * 0.7), image, image * 0.55)
            image = mix(cover, image, colours[kind[site.key]])
            height = np.where(cover > 0.5, np.sqrt(np.maximum(-gap * (2 * radius + gap), 0)), height)
    return c.lit(image, height, ambient=0.5, gloss=0.35, shine=40)


def perforated(c: Canvas) -> Array:
    """A metal sheet with rows of round holes."""
    spacing = c.pick(12, 30)
    u, v = c.frame(warp=c.pick(0.05, 0.6), reach=80)
    cells = c.cells(u, v, spacing, aspect=0.866 if c.chance(0.6) else 1.0, stagger=float(c.rng.choice([0.5, 0.0])))
    radius = spacing * c.pick(0.24, 0.36)
    hole = c.inside(cells.centre - radius)
    brushed = c.noise(0.5, 14, c.rng.uniform(0, np.pi))
    dark, light = palette(c.rng, 2, chroma=(0.003, 0.06), light=(0.1, 0.78), spread=30)
    sheet = np.asarray(light * (1 + 0.05 * brushed + 0.06 * c.noise(60))[..., None], np.float32)
    rim = smooth(cells.centre, radius * 0.98, radius * 1.22)
    image = c.lit(sheet, rim * 1.8, ambient=0.4, gloss=0.15)
    # Light falls through the hole from one side: the far wall of the sheet is seen inside it.
    along = (cells.dx * np.cos(c.light) + cells.dy * np.sin(c.light)) / radius
    return mix(hole, image, mix(smooth(along, 0.45, 1.0), dark * 0.6, light * 0.5))


def studded(c: Canvas) -> Array:
    """Round metal studs on leather."""
    spacing = c.pick(18, 38)
    u, v = c.frame(warp=c.pick(0.05, 1.0))
    cells = c.cells(u, v, spacing, aspect=c.pick(0.8, 1.0), stagger=float(c.rng.choice([0.5, 0.0])))
    radius = spacing * c.pick(0.24, 0.36)
    leather = palette(c.rng, 2, chroma=(0.01, 0.1), light=(0.14, 0.42), spread=20)
    metal = rgb(c.pick(0.68, 0.82), c.pick(0.004, 0.09), c.rng.uniform(60, 110))
    inside = np.maximum(radius**2 - cells.centre**2, 0)
    grain = c.fractal(1.0, 6)
    stud = c.inside(cells.centre - radius)
    contact = smooth(cells.centre, radius * 0.85, radius * 1.5)
    ground = mix(tone(grain), leather[0], leather[1]) * (0.45 + 0.55 * contact)[..., None]
    image = mix(stud, ground, np.asarray(metal))
    return c.lit(image, np.sqrt(inside) * 0.75 + 0.35 * grain * (1 - stud), ambient=0.3, gloss=0.55, shine=30)


def bubbly(c: Canvas) -> Array:
    """Round bubbles of many sizes, clear inside, with a bright rim and a highlight."""
    deep, water, bright = palette(c.rng, 3, chroma=(0.02, 0.13), light=(0.25, 0.85), spread=50)
    image = mix(tone(c.noise(45)), deep, water)
    for spacing in (c.pick(34, 62), c.pick(20, 28), c.pick(11, 16)):
        u, v = c.frame()
        size = c.table(0.16, 0.47)
        for site in c.sites(u, v, spacing, jitter=0.32):
            radius = spacing * size[site.key]
            r = np.hypot(site.dx, site.dy) / radius
            body = c.inside((r - 1) * radius)
            along = (site.dx * np.cos(c.light) + site.dy * np.sin(c.light)) / radius
            rim = smooth(r, 0.66, 1.0) * (0.45 + 0.4 * along)
            spot = np.exp(-12 * ((site.dx / radius + 0.45 * np.cos(c.light)) ** 2))
            spot = spot * np.exp(-12 * (site.dy / radius + 0.45 * np.sin(c.light)) ** 2)
            share = body * np.clip(0.08 + rim + 0.85 * spot, 0, 1)
            image = mix(body * 0.35 * smooth(r, 0.75, 1) * (along < 0), image, deep)
            image = mix(share, image, np.minimum(bright * 1.15, 1))
    return image


def pitted(c: Canvas) -> Array:
    """A rough surface full of hollows, like pumice or worn concrete."""
    stops = palette(c.rng, 4, hue=(20, 110), chroma=(0.004, 0.06), light=(0.32, 0.84), spread=30)
    height = np.zeros(c.size, np.float32)
    for spacing in (c.pick(24, 40), c.pick(10, 16)):
        u, v = c.frame(warp=spacing * 0.14, reach=spacing * 0.2)
        cells = c.cells(u, v, spacing, jitter=0.42)
        radius = spacing * c.table(0.05, 0.44)[cells.key]
        height -= smooth(radius - cells.centre, 0, spacing * 0.18) * radius * 0.75
    rough = c.fractal(1.3, 25)
    shade = np.clip(0.72 + 0.05 * height + 0.13 * rough, 0, 1)
    return c.lit(ramp(shade, stops), height + 0.8 * rough, ambient=0.38)


def bumpy(c: Canvas) -> Array:
    """Close round bumps, as on orange peel or a basketball."""
    spacing = c.pick(9, 24)
    u, v = c.frame(warp=spacing * 0.15)
    cells = c.cells(u, v, spacing, jitter=c.pick(0.08, 0.3), aspect=0.866)
    edge = smooth(cells.border, 0, spacing * 0.42)
    stops = palette(c.rng, 3, chroma=(0.04, 0.16), light=(0.35, 0.85), spread=35)
    colour = ramp(0.25 + 0.55 * edge + 0.2 * c.table()[cells.key], stops)
    return c.lit(colour, edge * spacing * 0.3 + 0.12 * c.noise(0.8), ambient=0.38, gloss=0.28, shine=30)
