"""A patch of a procedural texture: ``texture?name=striped&version=1`` draws variant ``seed`` of it."""

from __future__ import annotations

import zlib
from typing import Any
from urllib.parse import urlencode

import numpy as np

from cuebench.arrays import Pixels
from cuebench.errors import UserError
from cuebench.stimuli.drawing.textures import VERSION, texture

SIZE = 256
"""Pixels: as large as those of the Prompted Textures Dataset, so that resize-256-and-crop leaves them as they are."""


def draw(
    *,
    seed: int,
    name: str,
    version: int = VERSION,
    size: int = SIZE,
    colour: bool = True,
    scale: float = 1.0,
    series: int = 0,
) -> Pixels:
    """Draw a square patch.

    Parameters
    ----------
    seed : int
        Number of the variant. Each texture has a stream of its own, so a subset of textures changes nothing.
    name : str
        One of ``cuebench.stimuli.drawing.textures.names()``.
    version : int
        Of the drawings; part of the recipe, so that stored answers to older drawings are never taken for these.
    size, colour, scale
        As in ``texture``.
    series : int
        Another number is another set of variants.

    Returns
    -------
    uint8 array, size × size × 3
    """
    if version != VERSION:
        raise UserError(
            f"texture {name!r} of version {version}: this cuebench draws version {VERSION}",
            "make the stimulus set again, or use the cuebench that made it",
        )
    return texture(name, size=(size, size), rng=generator(name, seed, series), colour=colour, scale=scale)


def generator(name: str, variant: int, series: int = 0) -> np.random.Generator:
    """Return the random stream of a variant; crc32, not hash(), because it is the same in every process."""
    return np.random.default_rng([series, zlib.crc32(name.encode()), variant])


def recipe(name: str, **options: Any) -> str:
    """Return the recipe of a texture, with the version of the drawings in it."""
    chosen = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
    return f"texture?{urlencode({'name': name, 'version': VERSION, **chosen})}"


SOURCE = draw
