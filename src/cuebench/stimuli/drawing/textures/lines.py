"""Textures of lines: bands, stripes, folds and layers."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import accents, mix, palette, ramp
from cuebench.stimuli.drawing.fields import fold, smooth, tone


def _profile(c: Canvas, t: Array, widths: tuple[float, float], colours: Array, length: float = 1200.0) -> Array:
    """Colour bands of random width along ``t``, with soft edges; neighbours never have the same colour."""
    fine = 4
    number = int(length / widths[0]) + 2
    edges = np.cumsum([c.pick(*widths) for _ in range(number)])
    steps = c.rng.integers(1, max(len(colours), 2), number)
    which = np.cumsum(steps) % len(colours)
    table = colours[which[np.searchsorted(edges, np.arange(int(length * fine)) / fine)]]
    kernel = np.ones(5) / 5
    table = np.stack([np.convolve(table[:, k], kernel, "same") for k in range(3)], 1).astype(np.float32)
    index = (t * fine).astype(np.int32) % len(table)
    return np.asarray(table[index])


def banded(c: Canvas) -> Array:
    """Broad bands of many widths and a few colours, side by side."""
    u, _ = c.frame(warp=c.pick(0.3, 5), reach=60)
    colours = palette(c.rng, int(c.rng.integers(3, 6)), chroma=(0.03, 0.15), light=(0.25, 0.92), spread=160)
    image = _profile(c, u, (c.pick(6, 12), c.pick(22, 48)), colours)
    return image * (1 + 0.035 * c.noise(1.2, 9, 0.3))[..., None]


def striped(c: Canvas) -> Array:
    """Stripes of two colours that take turns; some coats fork and bend like a zebra's."""
    period = c.pick(11, 34)
    dark, light = palette(c.rng, 2, chroma=(0.0, 0.12), light=(0.16, 0.92), spread=200)
    if c.chance(0.5):
        field = c.waves(period, 0.13, c.rng.uniform(0, np.pi), c.pick(0.08, 0.3)) + c.pick(-0.3, 0.3)
        cover = smooth(field, -0.22, 0.22)
    else:
        u, _ = c.frame(warp=c.pick(0.05, 0.25) * period, reach=50)
        cover = c.inside((c.pick(0.38, 0.62) - fold(u / period)) * period / 2)
    fabric = 1 + 0.03 * c.noise(0.8)
    return mix(cover, dark, light) * fabric[..., None]


def lined(c: Canvas) -> Array:
    """Thin lines drawn close together by hand, now thicker, now fainter."""
    period = c.pick(5, 13)
    u, v = c.frame(warp=c.pick(0.3, 3.0), reach=40)
    pressure = c.streaks(u, v, period, 30)
    ink = c.inside(np.abs(u / period - np.round(u / period)) * period - period * (0.06 + 0.17 * pressure))
    dark, light = palette(c.rng, 2, chroma=(0.01, 0.1), light=(0.2, 0.95))
    return mix(ink * (0.55 + 0.45 * pressure), light + 0.02 * c.noise(2)[..., None], dark)


def zigzagged(c: Canvas) -> Array:
    """Bands that turn sharply to and fro."""
    period, rows = c.pick(18, 52), int(c.rng.integers(2, 5))
    u, v = c.frame(c.rng.choice([0, np.pi / 2]) + c.rng.uniform(-0.3, 0.3), warp=c.pick(0.2, 2))
    t = v + fold(u / period) * period * c.pick(0.35, 0.9)
    colours = palette(c.rng, rows, chroma=(0.03, 0.16), light=(0.22, 0.93), spread=220)
    width = c.pick(7, 20)
    image = _profile(c, t, (width, width * 1.001) if c.chance(0.6) else (width * 0.5, width * 1.7), colours)
    return image * (1 + 0.045 * c.noise(0.6, 2.5, 0.4))[..., None]


def pleated(c: Canvas) -> Array:
    """Cloth or paper folded over and over: one side of each fold in the light, one in the shade."""
    period = c.pick(14, 40)
    u, v = c.frame(warp=c.pick(0.04, 0.16) * period, reach=60)
    t = u / period
    t = t + 0.16 * (c.streaks(t, v, 1.0, 160) - 0.5)
    rise = c.pick(0.25, 0.75)
    phase = t - np.floor(t)
    height = np.where(phase < rise, phase / rise, (1 - phase) / (1 - rise))
    shade = smooth(height, -0.1, 1.0)
    dark, middle, light = palette(c.rng, 3, chroma=(0.02, 0.14), light=(0.2, 0.9), spread=30)
    image = ramp(0.15 + 0.85 * shade, np.stack([dark, middle, light]))
    return c.lit(image, height * period * 0.34 + 0.15 * c.noise(0.9), ambient=0.4, gloss=0.06)


def grooved(c: Canvas) -> Array:
    """A plate with narrow channels cut side by side, and the marks of the tool along them."""
    period = c.pick(9, 26)
    u, v = c.frame(warp=c.pick(0.05, 1.2), reach=70)
    t = fold(u / period)
    cut = smooth(t, 0.30, 0.72)
    marks = c.streaks(u, v, 1.3, 45)
    dark, light = palette(c.rng, 2, chroma=(0.005, 0.08), light=(0.3, 0.8), spread=20)
    plate = mix(0.55 * cut + 0.45 * marks, dark, light)
    return c.lit(plate, cut * period * 0.42 + marks * 0.5, ambient=0.35, gloss=0.25, shine=18)


def crosshatched(c: Canvas) -> Array:
    """Pen strokes in several directions, laid closer where the drawing is darker."""
    dark, light = palette(c.rng, 2, chroma=(0.005, 0.08), light=(0.14, 0.95), spread=90)
    period, first = c.pick(5, 10), c.rng.uniform(0, np.pi)
    depth = c.noise(c.pick(28, 60))
    ink = np.zeros(c.size, np.float32)
    for k, level in enumerate((-0.9, -0.35, 0.25, 0.8)):
        u, v = c.frame(first + k * np.pi / 4 * 1.03 + c.rng.uniform(-0.08, 0.08), warp=0.8, reach=25)
        lane = u + 0.5 * c.streaks(u, v, period, 60) * period
        stroke = c.inside(np.abs(lane / period - np.round(lane / period)) * period - 0.12 * period)
        ink = np.maximum(ink, stroke * smooth(depth + c.streaks(u, v, period, 40) - 0.5, level - 0.25, level + 0.25))
    return mix(ink * 0.9, light + 0.015 * c.noise(1.5)[..., None], dark)


def stratified(c: Canvas) -> Array:
    """Layers of rock: rough, of uneven thickness, broken by weather."""
    u, v = c.frame(c.rng.uniform(-0.4, 0.4) + np.pi / 2, warp=c.pick(3, 9), reach=70)
    rough = c.fractal(1.5, 60)
    t = u + 2.2 * rough
    layers = c.streaks(t, v, c.pick(5, 9), 150) * 0.6 + c.streaks(t, v, 2.2, 70) * 0.4
    stops = palette(c.rng, 5, hue=(20, 85), chroma=(0.02, 0.09), light=(0.22, 0.86), spread=40)
    image = ramp(smooth(layers, 0.18, 0.82), stops)
    return c.lit(image * (1 + 0.05 * rough)[..., None], layers * 7 + rough * 1.2, ambient=0.42)


def wavy(c: Canvas) -> Array:
    """Even waves, one under the other, as on water or in combed sand."""
    period = c.pick(13, 30)
    u, v = c.frame(warp=c.pick(1, 5), reach=55)
    length, height = period * c.pick(2.6, 5.5), period * c.pick(0.25, 0.6)
    t = (v + height * np.sin(2 * np.pi * u / length + 0.8 * c.noise(60))) / period
    crest = (0.5 + 0.5 * np.sin(2 * np.pi * t)) ** c.pick(0.7, 1.6)
    stops = palette(c.rng, 4, chroma=(0.03, 0.14), light=(0.25, 0.92), spread=70)
    image = ramp(0.1 + 0.8 * crest + 0.07 * tone(c.fractal(1.2, 20)), stops)
    return c.lit(image, crest * period * 0.28, ambient=0.5, gloss=0.12)


def plaid(c: Canvas) -> Array:
    """Tartan: the same stripes across and along, mixed thread by thread."""
    u, v = c.frame(c.rng.choice([0.0, np.pi / 4]) + c.rng.uniform(-0.08, 0.08), warp=c.pick(0.2, 1.6))
    colours = accents(c.rng, 4, chroma=(0.05, 0.15), light=(0.22, 0.85))
    half = c.pick(26, 46)
    sett = (c.pick(1.6, 3.5), c.pick(12, 20))
    state = c.rng.bit_generator.state
    across = _profile(c, fold(u / (2 * half)) * half, sett, colours, 120)
    c.rng.bit_generator.state = state  # the same sequence of threads both ways is what makes it a tartan
    along = _profile(c, fold(v / (2 * half)) * half, sett, colours, 120)
    thread = c.pick(2.4, 3.6)
    twill = smooth(fold((u + v) / (2 * thread)), 0.35, 0.65)
    return mix(0.2 + 0.6 * twill, across, along) * (1 + 0.05 * c.noise(0.6))[..., None]
