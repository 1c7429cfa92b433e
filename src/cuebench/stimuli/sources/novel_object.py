"""A novel object: one of the novel shapes, filled with a fresh patch of a texture, at some size and place.

``novel_object?shape=dax&texture=scaly&size=0.4&position=random&version=s1t1``. A texture *instance* is a large field,
drawn once; each stimulus takes another patch of it, so that two stimuli share the texture but no pixel. All steps after
the texture are whole-number arithmetic: the same bytes on every machine that draws the same field.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np
from PIL import Image, ImageColor

from cuebench.arrays import Pixels
from cuebench.errors import UserError, did_you_mean
from cuebench.stimuli.drawing import novel_shapes, textures

VERSION = f"s{novel_shapes.VERSION}t{textures.VERSION}n"
PIXELS = 224
FIELD = 512
"""Side of the field that patches are cut from: a patch of 224 pixels has 83,521 places in it."""
BACKGROUNDS = ("white", "grey", "noise")
SHAPES: tuple[str, ...] = tuple(n for k in ("smooth", "angular", "concave", "holes") for n in novel_shapes.names(k)[:4])
"""The sixteen shapes of experiment 3, four of each kind."""
TEXTURES: tuple[str, ...] = (
    "bricks", "cells", "foam", "fur", "grass", "honeycombed", "knitted", "leaves",
    "marbled", "paisley", "pebbles", "scaly", "striped", "veined", "wood", "woven",
)  # fmt: skip
"""The sixteen textures of experiment 3: structures that differ in kind, not in degree."""
COLOURS: Mapping[str, str] = {
    "red": "#d6302f", "orange": "#e8871e", "yellow": "#e6c81e", "green": "#3a9d3a",
    "cyan": "#2bb3b3", "blue": "#2f5fd6", "purple": "#8a3fc4", "pink": "#e06aa8",
}  # fmt: skip
"""Fills of the colour matches: objects of one plain colour."""


def draw(
    *,
    seed: int,
    shape: str | Pixels,
    texture: str | Pixels,
    version: str = VERSION,
    size: float = 1.0,
    position: str = "centre",
    background: str = "white",
    colour: bool = True,
    series: int = 0,
    pixels: int = PIXELS,
) -> Pixels:
    """Draw a stimulus.

    Parameters
    ----------
    seed : int
        Of the patch, the place and the noise: another for each stimulus.
    shape : str or array
        Name of a novel shape, or a mask (coverage 0 to 255).
    texture : str or array
        Name of a procedural texture, a plain colour ``#rrggbb``, or a field of H×W×3 to cut patches from.
    version : str
        Of the drawings; part of the recipe, so that stored answers to other drawings are never taken for these.
    size : float
        In (0, 1]: the whole picture, shape and texture, is shrunk to this part of the width, by the nearest pixel.
    position : {"centre", "random"}
        Where the shrunk picture stands: in the middle (aligned) or anywhere inside (unaligned).
    background : {"white", "grey", "noise"}
        What is around it.
    colour : bool
        False: the same texture in grey.
    series : int
        Another number is another instance of every texture.
    pixels : int
        Width and height of the picture.

    Returns
    -------
    uint8 array, pixels × pixels × 3
    """
    _check(version, size, position, background)
    rng = np.random.default_rng(seed)
    cover = novel_shapes.mask(shape, pixels) if isinstance(shape, str) else _fitted(shape, pixels)
    source = field(texture, series, colour, max(FIELD, pixels)) if isinstance(texture, str) else texture
    return compose(cover, _patch(source, pixels, rng), rng, size=size, position=position, background=background)


def compose(
    cover: Pixels, patch: Pixels, rng: np.random.Generator, *, size: float, position: str, background: str
) -> Pixels:
    """Fill the shape with the patch, shrink, place: out = (m·patch + (255 − m)·background) / 255, rounded."""
    whole = len(cover)
    side = math.ceil(size * whole - 1e-9)  # .2 · 224 = 44.8 → 45, as published
    room = whole - side
    top, left = rng.integers(room + 1, size=2) if position == "random" else (room // 2, room // 2)
    if background == "noise":
        out = np.repeat(rng.integers(64, 193, size=(whole, whole, 1), dtype=np.uint8), 3, axis=2)
    else:
        out = np.full((whole, whole, 3), 255 if background == "white" else 128, np.uint8)
    m, inner = (_nearest(cover, side), _nearest(patch, side)) if room else (cover, patch)
    window = out[top : top + side, left : left + side]
    weight = m[..., None].astype(np.uint16)
    # At most 255 · 255 + 127: fits 16 bits.
    window[...] = (weight * inner + (255 - weight) * window + 127) // 255
    return out


@lru_cache(maxsize=64)
def field(texture: str, series: int = 0, colour: bool = True, side: int = FIELD) -> Pixels:
    """Return the field of a texture instance, from which patches are cut; drawn once in each process."""
    if texture.startswith("#"):
        return np.broadcast_to(np.array(ImageColor.getrgb(texture), np.uint8), (side, side, 3))
    # crc32, not hash(): the same in every process. Each texture has a stream of its own, so a subset changes nothing.
    rng = np.random.default_rng([series, zlib.crc32(texture.encode()), 0])
    return textures.texture(texture, size=(side, side), rng=rng, colour=colour)


def recipe(shape: str, texture: str, **options: Any) -> str:
    """Return the recipe of a stimulus, with the version of the drawings in it."""
    chosen = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
    return f"novel_object?{urlencode({'shape': shape, 'texture': texture, **chosen, 'version': VERSION})}"


def seed_of(text: str, series: int = 0) -> int:
    """Return the seed of a stimulus by its name: the same on every machine, another for each stimulus."""
    return zlib.crc32(f"{series}|{text}".encode())


def _check(version: str, size: float, position: str, background: str) -> None:
    if version != VERSION:
        raise UserError(
            f"novel object of version {version!r}: this cuebench draws version {VERSION!r}",
            "make the stimulus set again, or use the cuebench that made it",
        )
    if not 0 < size <= 1:
        raise UserError(f"size {size!r}", "accepted: above 0, up to 1 (published: 0.2, 0.4, 0.6, 0.8, 1.0)")
    if position not in ("centre", "random"):
        raise did_you_mean("position", str(position), ("centre", "random"))
    if background not in BACKGROUNDS:
        raise did_you_mean("background", str(background), BACKGROUNDS)


def _patch(source: Pixels, side: int, rng: np.random.Generator) -> Pixels:
    height, width = source.shape[:2]
    if min(height, width) < side:
        raise UserError(f"a texture of {width}×{height} pixels is too small for patches of {side}×{side}")
    top, left = (int(rng.integers(length - side + 1)) for length in (height, width))
    return source[top : top + side, left : left + side]


def _nearest(pixels: Pixels, side: int) -> Pixels:
    # As published: every pixel of the small picture is one of the large picture.
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.NEAREST))


def _shrunk(pixels: Pixels, side: int) -> Pixels:
    # Pillow shrinks 8-bit pictures in whole numbers, antialiased.
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BILINEAR))


def _fitted(cover: Pixels, side: int) -> Pixels:
    plane = cover[..., 0] if cover.ndim == 3 else cover
    return plane if plane.shape == (side, side) else _shrunk(np.ascontiguousarray(plane), side)


SOURCE = draw
