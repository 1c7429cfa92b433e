"""Read an object: its pixels, and its mask from an alpha channel, a mask file or a COCO annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.stimuli.image_files import read_picture
from cuebench.stimuli.masks.base import BadSource, checked
from cuebench.stimuli.object_mask import HALF, object_pixels
from cuebench.stimuli.refined_bias.sources import Source

_DEEP = ("I;16", "I;16B", "I;16L", "I", "F")


def load(source: Source) -> tuple[Array, Array | None]:
    """Return the image (uint8 H×W×3) and its mask (bool H×W); None where there is none.

    Raises
    ------
    BadSource
        The file is not an image, or would be shown wrongly (CMYK, 16 bits, animated), or the mask does not fit.
    """
    image = open_image(source.path)
    rgb = np.asarray(image.convert("RGB"))
    mask = _mask(source, image)
    if mask is None:
        return rgb, None
    if mask.shape != rgb.shape[:2]:
        raise BadSource(f"the mask has {mask.shape[1]}×{mask.shape[0]} pixels, the image {rgb.shape[1]}×{rgb.shape[0]}")
    return rgb, checked(mask)


def open_image(path: Path) -> Image.Image:
    """Open an image of eight bits."""
    try:
        image = read_picture(path)
    except UserError as error:
        raise BadSource(error.message.removeprefix(f"{path.name}: ")) from None
    if image.mode == "CMYK":
        raise BadSource("a CMYK file: its colours depend on a printer; save it as RGB")
    if image.mode in _DEEP:
        raise BadSource(f"16 bits or more in a channel (mode {image.mode}); save it with 8")
    return image.convert("RGBA") if "transparency" in image.info or image.mode in ("LA", "PA") else image.copy()


def _mask(source: Source, image: Image.Image) -> Array | None:
    if source.annotation is not None:
        return coco_mask(source.annotation, image.height, image.width)
    if source.mask is not None:
        try:
            mask = read_picture(source.mask)
        except UserError as error:
            raise BadSource(f"its mask {error.message}") from None
        try:
            return object_pixels(mask)
        except ValueError as error:
            raise BadSource(f"its mask {source.mask.name}: {error}") from None
    return np.asarray(image.getchannel("A")) > HALF if image.mode == "RGBA" else None


def coco_mask(annotation: Mapping[str, Any], height: int, width: int) -> Array:
    """Return the mask of a COCO annotation: polygons, or run lengths (a list, or COCO's compressed string)."""
    shape = annotation["segmentation"]
    if isinstance(shape, list):
        return _polygons(shape, height, width)
    if not isinstance(shape, Mapping) or "counts" not in shape or "size" not in shape:
        raise BadSource("the segmentation is neither polygons nor run lengths")
    counts = shape["counts"]
    try:
        runs = decompress(counts) if isinstance(counts, (str, bytes)) else [int(c) for c in counts]
        rows, columns = (int(v) for v in shape["size"])
    except (TypeError, ValueError, IndexError, OverflowError):
        raise BadSource("its run lengths cannot be read") from None
    if (rows, columns) != (height, width):
        raise BadSource(f"the mask has {columns}×{rows} pixels, the image {width}×{height}")
    if min(runs, default=0) < 0 or sum(runs) != rows * columns:
        raise BadSource(f"its run lengths cover {sum(runs)} pixels, its size says {rows * columns}")
    values = np.arange(len(runs)) % 2 == 1
    return np.repeat(values, runs).reshape(columns, rows).T


def _polygons(polygons: Sequence[Sequence[float]], height: int, width: int) -> Array:
    canvas = Image.new("1", (width, height))
    pen = ImageDraw.Draw(canvas)
    for polygon in polygons:
        if not isinstance(polygon, list) or not all(_is_coordinate(v) for v in polygon):
            raise BadSource("a polygon that is no list of numbers")
        if len(polygon) < 6 or len(polygon) % 2:
            raise BadSource(f"a polygon of {len(polygon)} numbers; it needs pairs, at least three")
        pen.polygon([(float(x), float(y)) for x, y in zip(polygon[::2], polygon[1::2])], fill=1)
    return np.asarray(canvas)


def _is_coordinate(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e6


def decompress(text: str | bytes) -> list[int]:
    """Return the run lengths of COCO's string.

    Each character holds five bits, low ones first; a sixth says that more follow. From the fourth run on, a number is
    the difference to the run before the last.

    >>> decompress("044")
    [0, 4, 4]
    """
    data = text.encode() if isinstance(text, str) else text
    runs: list[int] = []
    at = 0
    while at < len(data):
        value, shift, more = 0, 0, True
        while more:
            bits = data[at] - 48
            value |= (bits & 31) << shift
            more, shift, at = bool(bits & 32), shift + 5, at + 1
            if shift > 60:
                raise ValueError("a number without an end")
            if not more and bits & 16:
                value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    return runs
