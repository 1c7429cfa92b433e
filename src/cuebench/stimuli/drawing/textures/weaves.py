"""Textures of threads and wires that pass over and under each other."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import mix, palette, ramp
from cuebench.stimuli.drawing.fields import fold, smooth, tone


def woven(c: Canvas) -> Array:
    """Basket weave: flat strands over one, under one."""
    size = c.pick(11, 28)
    u, v = c.frame(warp=c.pick(0.02, 0.08) * size, reach=40)
    i, j = np.floor(u / size).astype(np.int32), np.floor(v / size).astype(np.int32)
    a, b = u / size - i - 0.5, v / size - j - 0.5
    upright = (i + j) % 2 == 0
    across, along = np.where(upright, a, b), np.where(upright, b, a)
    strand = np.where(upright, i * 7 + 3, j * 13 + 1000) % 4096
    width = c.pick(0.42, 0.49)
    body = np.sqrt(np.clip(1 - (across / width) ** 2, 0, 1))
    height = body * (0.5 + 0.5 * np.cos(np.pi * along)) * size * 0.34
    fibre = c.streaks(np.where(upright, u, v), np.where(upright, v, u), 1.1, 26)
    stops = palette(c.rng, 4, hue=(40, 110), chroma=(0.02, 0.11), light=(0.22, 0.88), spread=60)
    shade = 0.28 + 0.3 * fibre + 0.38 * c.table()[strand]
    gap = smooth(width - np.abs(across), 0, 0.09)
    image = ramp(np.clip(shade, 0, 1), stops) * (0.25 + 0.75 * gap * smooth(0.62 - np.abs(along), 0, 0.3))[..., None]
    return c.lit(image, height + 0.3 * fibre, ambient=0.42, gloss=0.1)


def knitted(c: Canvas) -> Array:
    """Columns of stitches in wool, each a small V."""
    size = c.pick(12, 28)
    u, v = c.frame(c.rng.uniform(-0.5, 0.5), warp=c.pick(0.05, 0.16) * size, reach=40)
    a = u / size - np.floor(u / size) - 0.5
    b = v / size * c.pick(1.2, 1.6) + 0.95 * np.abs(a)
    row = np.floor(b)
    b = b - row - 0.5
    leg = np.sqrt(np.clip(1 - (b / 0.5) ** 2 - ((np.abs(a) - 0.25) / 0.27) ** 4, 0, 1))
    twist = 0.5 + 0.5 * np.sin(2 * np.pi * (2.6 * b + 4.5 * np.abs(a)))
    fuzz = c.noise(0.7)
    colours = palette(c.rng, 3, chroma=(0.02, 0.14), light=(0.25, 0.85), spread=30)
    if c.chance(0.4):
        other = palette(c.rng, 3, chroma=(0.02, 0.14), light=(0.25, 0.85), spread=30)
        period = int(c.rng.integers(2, 7))
        which = (row.astype(np.int32) % (2 * period) < period).astype(np.float32)
        wool = mix(which, ramp(0.3 + 0.6 * leg, colours), ramp(0.3 + 0.6 * leg, other))
    else:
        wool = ramp(np.clip(0.25 + 0.6 * leg + 0.1 * twist, 0, 1), colours)
    wool = wool * (0.3 + 0.7 * smooth(leg, 0, 0.55) + 0.07 * fuzz)[..., None]
    return c.lit(wool, leg * size * 0.26 + twist * leg * 0.8 + 0.2 * fuzz, ambient=0.5)


def denim(c: Canvas) -> Array:
    """Twill: fine diagonal ribs of dark and light threads, worn in places."""
    thread = c.pick(2.6, 4.6)
    u, v = c.frame(c.rng.uniform(-0.2, 0.2), warp=c.pick(0.2, 0.8), reach=30)
    lean = float(c.rng.choice([-1, 1])) * c.pick(1.0, 2.0)
    rib = 0.5 + 0.5 * np.cos(2 * np.pi * (u + lean * v / 2) / (2 * thread))
    slub = 0.6 * c.streaks(u, v, thread, 40) + 0.4 * c.streaks(v, u, thread, 25)
    worn = tone(c.fractal(1.6, 60))
    hue = (235, 275) if c.chance(0.6) else (0, 360)
    stops = palette(c.rng, 4, hue=hue, chroma=(0.02, 0.08), light=(0.22, 0.88), spread=20)
    image = ramp(np.clip(0.45 * rib + 0.3 * slub + 0.35 * worn - 0.08, 0, 1), stops)
    return c.lit(image, rib * thread * 0.3 + slub, ambient=0.5)


def meshed(c: Canvas) -> Array:
    """Wire netting with diamond openings before a blurred scene."""
    size = c.pick(18, 40)
    u, v = c.frame(np.pi / 4 + c.rng.uniform(-0.2, 0.2), warp=c.pick(0.1, 0.9), reach=70)
    stops = palette(c.rng, 4, chroma=(0.03, 0.12), light=(0.25, 0.85), spread=90)
    image = ramp(tone(c.noise(20)), stops)
    wire = palette(c.rng, 1, chroma=(0.0, 0.04), light=(0.2, 0.8))[0]
    radius = size * c.pick(0.05, 0.09)
    height = np.zeros(c.size, np.float32)
    for k, (w, t) in enumerate(((u, v), (v, u))):
        bend = 0.35 * radius * np.sin(2 * np.pi * t / (2 * size) + k * np.pi)
        gap = np.abs((w + bend) / size - np.round((w + bend) / size)) * size
        over = np.sin(np.pi * (np.round(w / size) + t / size)) * (-1) ** k
        body = np.sqrt(np.clip(radius**2 - gap**2, 0, None))
        level = np.where(body > 0, body + radius * (1 + over), 0)
        image = mix(c.inside(gap - radius) * ((level >= height) | (body == 0)), image, wire)
        height = np.maximum(height, level)
    return c.lit(image, np.where(height > 0, height, 0) * 0.8, ambient=0.55, gloss=0.2)


def lacelike(c: Canvas) -> Array:
    """White lace: rosettes with petals in a net of fine threads."""
    size = c.pick(34, 60)
    u, v = c.frame(warp=c.pick(0.2, 1.2))
    cells = c.cells(u, v, size, aspect=0.866)
    r, angle = cells.centre / size, np.arctan2(cells.dy, cells.dx)
    petals = int(c.rng.integers(5, 10))
    bloom = np.abs(np.cos(petals / 2 * angle + 3 * c.table()[cells.key]))
    ring = np.abs(r - (0.16 + 0.2 * bloom))
    mesh = c.cells(u, v, c.pick(5, 7), aspect=0.866)
    thread = np.maximum.reduce(
        [
            c.inside((ring - 0.026) * size),
            c.inside((np.abs(r - 0.11) - 0.03) * size),
            c.inside((r - 0.045) * size),
            c.inside(cells.border - size * 0.03) * 0.9,
            smooth(r, 0.30, 0.36) * c.inside(mesh.border - 0.55) * 0.85,
            smooth(0.16 + 0.17 * bloom - r, 0, 0.03) * smooth(r, 0.1, 0.14) * smooth(fold(angle * 12), 0.3, 0.6) * 0.7,
        ]
    )
    back, front = palette(c.rng, 2, chroma=(0.01, 0.1), light=(0.2, 0.95), spread=200)
    image = mix(thread, back * (1 + 0.06 * c.noise(25))[..., None], front)
    return c.lit(np.asarray(image, np.float32), thread * 1.1 + 0.15 * c.noise(0.8), ambient=0.6)


def braided(c: Canvas) -> Array:
    """Thick plaits side by side, three strands in each."""
    size = c.pick(26, 52)
    u, v = c.frame(warp=c.pick(0.02, 0.07) * size, reach=60)
    column = np.floor(u / size)
    a = u / size - column - 0.5
    t = v / (size * c.pick(1.1, 1.5)) + 0.37 * column
    stops = palette(c.rng, 4, chroma=(0.02, 0.12), light=(0.2, 0.86), spread=50)
    image = np.broadcast_to(stops[0] * 0.5, (*c.size, 3)).astype(np.float32)
    height = np.zeros(c.size, np.float32)
    fibre = c.streaks(u, v, 1.2, 9)
    for k in range(3):
        phase = 2 * np.pi * (t + k / 3)
        gap = (a - 0.25 * np.sin(phase)) / 0.2
        body = np.sqrt(np.clip(1 - gap**2, 0, 1))
        level = np.where(body > 0, body * 0.16 + 0.14 * (1 + np.cos(2 * phase)), 0) * size
        twist = 0.5 + 0.5 * np.sin(14 * a * np.sign(np.cos(phase)) + 26 * t)
        strand = ramp(np.clip(0.2 + 0.45 * body + 0.2 * twist + 0.2 * fibre, 0, 1), stops)
        image = np.where((level > height)[..., None], strand * (0.35 + 0.65 * smooth(body, 0, 0.5))[..., None], image)
        height = np.maximum(height, level)
    return c.lit(image, height * 0.7 + 0.3 * fibre, ambient=0.5, gloss=0.12)


def interlaced(c: Canvas) -> Array:
    """Knotwork: ribbons that turn, and pass over and under each other without end."""
    size = c.pick(20, 40)
    u, v = c.frame(warp=c.pick(0.1, 0.8))
    i, j = np.floor(u / size).astype(np.int32), np.floor(v / size).astype(np.int32)
    a, b = u / size - i, v / size - j
    key = (i % 64) * 64 + j % 64
    flip = (c.table() < 0.5)[key]
    crossing = (c.table() < c.pick(0.35, 0.75))[key]
    side = np.where(flip, 1 - a, a)
    # Two quarter circles round opposite corners, or two straight ribbons that cross: all end where the next begin.
    arc = np.abs(np.minimum(np.abs(np.hypot(side, b) - 0.5), np.abs(np.hypot(1 - side, 1 - b) - 0.5)))
    over, under = np.where(flip, np.abs(a - 0.5), np.abs(b - 0.5)), np.where(flip, np.abs(b - 0.5), np.abs(a - 0.5))
    half = c.pick(0.14, 0.22)
    hidden = over < half + 0.07
    gap = np.where(crossing, np.where(hidden, over, under), arc)
    body = np.sqrt(np.clip(1 - (gap / half) ** 2, 0, 1))
    shadow = np.where(crossing & ~hidden, smooth(over, half, half + 0.22), 1)
    rim = c.inside((np.abs(gap - half) - 0.035) * size)
    ground, band, edge = palette(c.rng, 3, chroma=(0.02, 0.14), light=(0.2, 0.9), spread=140)[[0, 2, 1]]
    image = mix(c.inside((gap - half) * size), ground * (1 + 0.08 * c.fractal(1.2, 12))[..., None], band)
    image = mix(np.maximum(rim, 0.6 * c.inside((gap - half * 0.2) * size)), image, edge)
    return c.lit(image * (0.4 + 0.6 * shadow)[..., None], body * size * 0.13, ambient=0.5, gloss=0.15)


def gauzy(c: Canvas) -> Array:
    """Thin open cloth: loose threads that wander, with folds where it doubles."""
    thread = c.pick(4.0, 7.5)
    u, v = c.frame(warp=c.pick(0.8, 2.6), reach=22)
    u, v = u + 0.7 * c.noise(5), v + 0.7 * c.noise(5)
    cover = np.zeros(c.size, np.float32)
    for w, t in ((u, v), (v, u)):
        thick = 0.1 + 0.16 * c.streaks(w, t, thread, 35)
        gap = np.abs(w / thread - np.round(w / thread)) - thick
        cover = np.maximum(cover, c.inside(gap * thread) * (0.65 + 0.35 * c.streaks(w, t, thread, 8)))
    folds = tone(1.2 * c.noise(26, 9, c.rng.uniform(0, np.pi)))
    back, front = palette(c.rng, 2, chroma=(0.01, 0.08), light=(0.3, 0.95), spread=40)
    image = mix(np.clip(cover * (0.55 + 0.6 * folds) + 0.3 * folds**3, 0, 1), back, front)
    return c.lit(image, folds * 9, ambient=0.6)
