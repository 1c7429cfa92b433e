"""Textures that flow: stone, wood, hair, cloud and everything that was once liquid."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import mix, palette, ramp
from cuebench.stimuli.drawing.fields import fold, smooth, tone


def marbled(c: Canvas) -> Array:
    """Polished marble: veins that wander through cloudy stone."""
    u, _ = c.frame()
    drift = c.fractal(1.9, 90)
    t = u / c.pick(40, 80) + c.pick(0.7, 1.3) * drift + 0.12 * c.fractal(1.5, 30)
    vein = np.abs(np.sin(np.pi * t)) ** c.pick(0.35, 0.7)
    fine = np.abs(c.fractal(1.7, 45))
    stops = palette(c.rng, 4, chroma=(0.005, 0.08), light=(0.25, 0.96), spread=80)
    stone = np.clip(0.2 + 0.62 * vein + 0.2 * tone(c.fractal(1.8, 60)) - 0.2 * np.exp(-((fine / 0.1) ** 2)), 0, 1)
    return ramp(stone, stops if c.chance(0.7) else stops[::-1])


def wood(c: Canvas) -> Array:
    """A sawn board: rings cut lengthwise, fine pores, now and then a knot."""
    u, v = c.frame(c.rng.uniform(-0.25, 0.25) + (np.pi / 2 if c.chance(0.5) else 0))
    t = u + 7 * c.noise(30, 150)
    if c.chance(0.6):
        kx, ky = c.rng.uniform(-70, 70, 2)
        r = np.hypot(c.x - kx, (c.y - ky) * 0.7)
        t = t + c.pick(14, 30) * np.exp(-((r / c.pick(24, 45)) ** 2))
    ring = t / c.pick(7, 17) + 0.35 * c.streaks(t, v, 20, 200)
    saw = ring - np.floor(ring)
    early = np.where(saw < 0.82, saw / 0.82, (1 - saw) / 0.18)
    pores = c.streaks(t, v, 0.9, 26)
    stops = palette(c.rng, 4, hue=(40, 78), chroma=(0.04, 0.11), light=(0.26, 0.84), spread=30)
    shade = 0.82 - 0.5 * early**2 - 0.2 * smooth(pores, 0.62, 0.95) + 0.1 * tone(c.noise(50))
    return c.lit(ramp(np.clip(shade, 0, 1), stops), pores * -0.5, ambient=0.6)


def fur(c: Canvas) -> Array:
    """Soft hair that lies in one direction and parts into tufts."""
    u, v = c.frame(warp=c.pick(5, 12), reach=32)
    tuft = c.streaks(u + 3 * c.noise(9), v, c.pick(7, 13), c.pick(24, 40))
    hair = 0.5 * c.streaks(u + 2 * tuft, v, 1.5, 17) + 0.5 * c.streaks(u - 2 * tuft, v, 2.6, 26)
    stops = palette(c.rng, 5, hue=(25, 100), chroma=(0.005, 0.1), light=(0.16, 0.92), spread=30)
    patch = 0.32 * (tone(1.6 * c.noise(34)) - 0.5) * float(c.chance(0.6))
    shade = np.clip(0.12 + 0.62 * hair + 0.3 * tuft + patch - 0.05, 0, 1)
    return c.lit(ramp(smooth(shade, 0.08, 0.98), stops), tuft * 6 + hair * 2.2, ambient=0.5)


def fibrous(c: Canvas) -> Array:
    """Loose fibres lying across each other in all directions, like felt or handmade paper."""
    stops = palette(c.rng, 4, hue=(40, 120), chroma=(0.01, 0.09), light=(0.25, 0.92), spread=40)
    image = ramp(0.22 + 0.2 * tone(c.fractal(1.2, 25)), stops)
    height = np.zeros(c.size, np.float32)
    for k in range(7):
        u, v = c.frame(warp=c.pick(5, 10), reach=24)
        thread = c.streaks(u, v, c.pick(2.6, 4.2), c.pick(60, 120))
        body = smooth(thread, 0.74, 0.9)
        below = image * (1 - 0.22 * smooth(thread, 0.55, 0.75))[..., None]
        image = mix(body * 0.85, below, ramp(0.45 + 0.08 * k * body, stops))
        height = np.maximum(height * 0.9, body * 2)
    return c.lit(image, height, ambient=0.45)


def grass(c: Canvas) -> Array:
    """A lawn seen from above: blades of many greens leaning here and there."""
    stops = palette(c.rng, 5, hue=(105, 145), chroma=(0.05, 0.15), light=(0.2, 0.88), spread=40)
    image = ramp(0.06 + 0.12 * tone(c.noise(3)), stops)
    width, lean = c.pick(2.4, 4.6), c.rng.uniform(0, 2 * np.pi)
    for k in range(5):
        u, v = c.frame(lean + c.rng.uniform(-0.75, 0.75), warp=c.pick(2, 5), reach=20)
        i = np.floor(u / width).astype(np.int32)
        length = width * c.pick(10, 17)
        w = v / length + c.table(0, 1)[i % 4096]
        j = np.floor(w).astype(np.int32)
        key = (i % 64) * 64 + j % 64
        t, a = w - j, u / width - i - 0.5
        half = 0.46 * np.sqrt(np.clip(t * (1 - t) * 4, 0, 1)) * (1 - 0.55 * t) * c.table(0.45, 1)[key]
        blade = c.inside((np.abs(a) - half) * width) * (c.table()[key] < 0.62)
        shade = np.clip(0.12 + 0.13 * k + 0.3 * t + c.table(-0.12, 0.16)[key] + 0.22 * a / 0.5, 0, 1)
        image = mix(blade, image * 0.93, ramp(shade, stops))
    return image


def bark(c: Canvas) -> Array:
    """The trunk of an old tree: long rough plates between deep furrows."""
    u, v = c.frame(c.rng.uniform(-0.2, 0.2), warp=c.pick(3, 6), reach=16)
    rough = c.fractal(1.3, 22)
    size = c.pick(13, 24)
    plate = c.cells(u + 1.5 * rough, v / c.pick(2.2, 3.6), size, jitter=0.45)
    ridge = smooth(plate.border + 0.5 * rough, 0, size * 0.3)
    stops = palette(c.rng, 4, hue=(35, 95), chroma=(0.01, 0.07), light=(0.12, 0.76), spread=35)
    flakes = c.streaks(u, v, 2.6, 14)
    image = ramp(np.clip(0.1 + 0.5 * ridge + 0.22 * flakes + 0.1 * rough, 0, 1), stops)
    return c.lit(image, ridge * size * 0.3 + flakes * 1.6 + rough * 0.8, ambient=0.38)


def cloudy(c: Canvas) -> Array:
    """Soft clouds, or wool, or smoke."""
    field = c.fractal(c.pick(2.1, 2.6), c.pick(45, 90), 3)
    puff = np.abs(c.fractal(2.3, 34, 3))
    billow = tone(0.8 * field + 0.5 * puff - 0.3)
    stops = palette(c.rng, 4, chroma=(0.02, 0.1), light=(0.45, 0.97), spread=50)
    return c.lit(ramp(smooth(billow, 0.1, 0.9), stops), billow * 13, ambient=0.75)


def granite(c: Canvas) -> Array:
    """Grains of several minerals packed at random."""
    size = c.pick(3.6, 8)
    u, v = c.frame(warp=size * 0.5, reach=size * 0.7)
    grain = c.cells(u, v, size, jitter=0.48)
    stops = palette(c.rng, 5, hue=(0, 110), chroma=(0.003, 0.06), light=(0.24, 0.9), spread=60)[c.rng.permutation(5)]
    share = np.sort(c.rng.random(4))
    kind = np.searchsorted(0.1 + 0.8 * share, c.table())[grain.key]
    tint = 1 + 0.1 * c.noise(0.8) + 0.08 * c.table(-1, 1)[grain.key]
    return np.asarray(stops[kind] * tint[..., None], np.float32)


def camouflage(c: Canvas) -> Array:
    """Large blots of a few dull colours, one over the other."""
    colours = palette(c.rng, 4, hue=(50, 150) if c.chance(0.6) else (0, 360), chroma=(0.02, 0.07), light=(0.22, 0.8))
    colours = colours[c.rng.permutation(4)]
    image: Array = np.broadcast_to(colours[0], (*c.size, 3))
    stretch, turn = c.pick(1.0, 2.2), c.rng.uniform(0, np.pi)
    for k, share in zip((1, 2, 3), (0.0, 0.45, 0.8)):
        size = c.pick(9, 18)
        field = c.noise(size * stretch, size, turn) + 0.12 * c.noise(2.5)
        image = mix(smooth(field, share - 0.06, share + 0.06), image, colours[k])
    return image * (1 + 0.035 * c.noise(0.7))[..., None]


def smeared(c: Canvas) -> Array:
    """Thick paint dragged by a brush or a knife."""
    u, v = c.frame(warp=c.pick(8, 20), reach=45)
    bristle = c.streaks(u, v, 1.6, 90)
    stroke = c.streaks(u, v, c.pick(9, 16), 130)
    stops = palette(c.rng, 5, chroma=(0.05, 0.16), light=(0.25, 0.94), spread=190)
    image = ramp(np.clip(0.72 * smooth(stroke, 0.1, 0.9) + 0.28 * bristle, 0, 1), stops)
    return c.lit(image, bristle * 2.2 + stroke * 4, ambient=0.5, gloss=0.22, shine=20)


def wrinkled(c: Canvas) -> Array:
    """Crumpled paper: flat facets between sharp creases."""
    height = np.zeros(c.size, np.float32)
    for largest, weight in ((c.pick(40, 66), 1.0), (c.pick(22, 30), 0.6), (12, 0.35)):
        height += weight * largest * 0.19 * np.abs(c.noise(largest * 0.28, largest * 0.5, c.rng.uniform(0, np.pi)))
    light = palette(c.rng, 2, chroma=(0.003, 0.1), light=(0.62, 0.9), spread=20)
    image = mix(tone(c.noise(40)), light[0], light[1])
    return c.lit(image, height + 0.1 * c.noise(0.8), ambient=0.32, gloss=0.04)


def sandy(c: Canvas) -> Array:
    """Wind ripples in sand, grain by grain."""
    period, turn = c.pick(15, 34), c.rng.uniform(0, np.pi)
    ripple = c.waves(period, 0.16, turn, 0.16)
    grain = c.noise(0.55)
    stops = palette(c.rng, 4, hue=(50, 90), chroma=(0.02, 0.09), light=(0.4, 0.92), spread=25)
    image = ramp(np.clip(0.5 + 0.13 * ripple + 0.13 * grain, 0, 1), stops)
    return c.lit(image, tone(0.9 * ripple) * period * 0.3 + grain * 0.35, ambient=0.45)


def stained(c: Canvas) -> Array:
    """Water stains and rust: rings with dark rims that overlap."""
    stops = palette(c.rng, 4, hue=(25, 95), chroma=(0.02, 0.11), light=(0.32, 0.92), spread=50)
    image: Array = ramp(0.75 + 0.13 * tone(c.fractal(1.4, 40)), stops)
    for _ in range(4):
        blot = c.noise(c.pick(13, 30)) + 0.16 * c.fractal(1.4, 14) - c.pick(0.2, 0.9)
        body, rim = smooth(blot, -0.05, 0.3), np.exp(-((blot / 0.085) ** 2))
        image = mix(0.28 * body + 0.5 * rim, image, stops[int(c.rng.integers(0, 3))])
    return image


def agate(c: Canvas) -> Array:
    """Cut agate: thin bands that follow each other round hollow centres."""
    field = c.noise(c.pick(30, 48)) + 0.08 * c.fractal(1.6, 26)
    t = (field + 3) * c.pick(5, 11)
    bands = c.streaks(t, np.zeros_like(t), 1.0, 1.0) * 0.65 + 0.35 * fold(t * 0.5)
    stops = palette(c.rng, 6, chroma=(0.03, 0.14), light=(0.25, 0.95), spread=130)
    return ramp(np.clip(bands + 0.03 * c.noise(1.0), 0, 1), stops)
