"""A patch of one basic colour: ``colour?name=red&version=1`` draws variant ``seed`` of it, without any texture.

The eleven basic colour terms of Berlin & Kay (1969). Each variant has its own lightness, chroma and hue inside the
range of its name, and light that falls off smoothly across the patch, as on a wall; nothing in it repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from cuebench.arrays import Pixels
from cuebench.errors import UserError, did_you_mean
from cuebench.stimuli.drawing.colour import rgb
from cuebench.stimuli.sources.texture import SIZE, generator

VERSION = 1


class Range(NamedTuple):
    """Lightness, chroma and hue (degrees) of the colours that go by one name, in OKLCH."""

    lightness: tuple[float, float]
    chroma: tuple[float, float]
    hue: tuple[float, float]


COLOURS: Mapping[str, Range] = {
    "black": Range((0.05, 0.22), (0.0, 0.012), (0, 360)),
    "white": Range((0.95, 1.0), (0.0, 0.01), (0, 360)),
    "grey": Range((0.45, 0.75), (0.0, 0.012), (0, 360)),
    "red": Range((0.48, 0.62), (0.18, 0.25), (20, 32)),
    "orange": Range((0.68, 0.78), (0.14, 0.19), (50, 66)),
    "yellow": Range((0.85, 0.95), (0.15, 0.22), (95, 108)),
    "green": Range((0.5, 0.72), (0.14, 0.22), (135, 155)),
    "blue": Range((0.42, 0.62), (0.14, 0.24), (250, 268)),
    "purple": Range((0.38, 0.55), (0.14, 0.24), (298, 315)),
    "pink": Range((0.74, 0.86), (0.09, 0.15), (345, 368)),
    "brown": Range((0.32, 0.46), (0.06, 0.1), (45, 65)),
}
"""Name → what is called by it."""


def draw(*, seed: int, name: str, version: int = VERSION, size: int = SIZE) -> Pixels:
    """Draw a square patch.

    Parameters
    ----------
    seed : int
        Number of the variant.
    name : str
        One of `COLOURS`.
    version : int
        Of the drawings; part of the recipe, so that stored answers to older drawings are never taken for these.
    size : int
        Width and height in pixels.

    Returns
    -------
    uint8 array, size × size × 3
    """
    if name not in COLOURS:
        raise did_you_mean("colour", name, COLOURS)
    if version != VERSION:
        raise UserError(f"colour {name!r} of version {version}: this cuebench draws version {VERSION}",
                        "make the stimulus set again, or use the cuebench that made it")  # fmt: skip
    rng = generator(name, seed)
    lightness, chroma, hue = (rng.uniform(*span) for span in COLOURS[name])
    angle, fall = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.06)
    y, x = np.mgrid[0:size, 0:size] / max(size - 1, 1) - 0.5
    light = np.clip(lightness + fall * (np.cos(angle) * x + np.sin(angle) * y), 0, 1)
    return np.rint(rgb(light, chroma, hue) * 255).astype(np.uint8)


def recipe(name: str, **options: Any) -> str:
    """Return the recipe of a colour, with the version of the drawings in it."""
    return f"colour?{urlencode({'name': name, 'version': VERSION, **options})}"


SOURCE = draw
