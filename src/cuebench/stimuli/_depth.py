"""Sixteen bits in each colour: do the samples use their range?

Pillow reduces colour of 16 bits to 8 while it decodes, so a file that holds 8, 10 or 12 bits in a wider type becomes
black. The test of the pixels that are left is cheap; only of a dark picture are the samples themselves read.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from cuebench.arrays import Array

DARKEST = 1 / 16
"""A deep picture whose brightest pixel is not above this share of white is refused: it holds 8, 10 or 12 bits in a
wider type, and would turn black without a word."""
SIXTEEN = 65535
_COLOURS = {"RGB": 3, "RGBA": 3, "RGBX": 3}
"""Mode that Pillow reduces to → its colours, which come before the transparency."""
_LOW_BYTES = {"LA;16B": "RGBA"}
"""How samples are unpacked → how their low bytes are, where it is not the same with the other order of bytes: grey and
transparency of 16 bits are four bytes, the second of which is the low one of grey."""


class Tiles(NamedTuple):
    """What Pillow knows of a picture before it decodes it: how the samples are packed, and where."""

    mode: str
    packed: Sequence[Any]

    @classmethod
    def of(cls, image: Image.Image) -> Tiles:
        """Return them; decoding forgets them."""
        return cls(image.mode, tuple(getattr(image, "tile", ())))

    @property
    def white(self) -> int:
        """The largest value that a sample can have, where Pillow reduces it to 8 bits; otherwise 0."""
        if self.mode not in _COLOURS or not self.packed:
            return 0
        first = _arguments(self.packed[0])
        if self.packed[0][0] in ("ppm", "ppm_plain"):
            return int(first[1]) if len(first) > 1 and int(first[1]) > 255 else 0
        return SIXTEEN if ";16" in str(first[0]) else 0


def too_dark(brightest: float, white: float) -> str:
    """Return why a deep picture is not shown; empty where its pixels are black, or use the range of their type."""
    if not 0 < brightest <= white * DARKEST:
        return ""
    return f"its brightest pixel is {brightest:g} of {white:g}, it would be shown as black: save it with 8 bits"


def reduced_to_black(data: bytes, image: Image.Image, tiles: Tiles) -> str:
    """Return why a decoded picture of 16-bit colour is not shown; empty for all others.

    Parameters
    ----------
    data : bytes
        The file.
    image : Image
        The picture, decoded.
    tiles : Tiles
        Of the picture before it was decoded.
    """
    white = tiles.white
    if not white:
        return ""
    colours = np.asarray(image)[..., : _COLOURS[tiles.mode]]
    if colours.max(initial=0) > np.ceil(255 * DARKEST):
        return ""
    samples = _ppm_samples(data, image, tiles) if image.format == "PPM" else _samples(data, image, tiles, colours)
    return too_dark(float(samples.max(initial=0)), white)


def _samples(data: bytes, image: Image.Image, tiles: Tiles, high: Array) -> Array:
    """Return the samples: their high bytes are known, their low ones are decoded with the other order of bytes."""
    again = Image.open(io.BytesIO(data), formats=(image.format or "PNG",))
    other = [(tile[0], tile[1], tile[2], _with_low_bytes(tile[3])) for tile in tiles.packed]
    again.tile = [type(tile)(*parts) for tile, parts in zip(tiles.packed, other)]
    again.load()
    low = np.asarray(again)[..., 1:2] if "LA;16B" in _arguments(tiles.packed[0]) else np.asarray(again)[..., :3]
    return high.astype(np.int64) * 256 + low


def _with_low_bytes(arguments: Any) -> Any:
    first = arguments if isinstance(arguments, str) else arguments[0]
    orders = str.maketrans("BLN", "LBB" if sys.byteorder == "little" else "LBL")
    kind, _, order = first.partition(";16")
    other = _LOW_BYTES.get(first, f"{kind};16{order.translate(orders)}")
    return other if isinstance(arguments, str) else (other, *arguments[1:])


def _ppm_samples(data: bytes, image: Image.Image, tiles: Tiles) -> Array:
    kind, _, place, _ = tiles.packed[0]
    if kind == "ppm":
        return np.frombuffer(data, ">u2", count=image.width * image.height * 3, offset=place)
    return np.array(re.sub(rb"#[^\r\n]*", b" ", data[place:]).split(), dtype=np.int64)


def _arguments(tile: Any) -> tuple[Any, ...]:
    return (tile[3],) if isinstance(tile[3], str) else tuple(tile[3] or ())
