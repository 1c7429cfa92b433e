"""Masks and textures of the user for novel objects, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.arrays import Pixels
from cuebench.errors import UserError, all_problems
from cuebench.observers.preprocess import LARGEST_SIDE
from cuebench.stimuli.image_files import read_rgb
from cuebench.stimuli.readers.scan import IMAGE_SUFFIXES
from cuebench.stimuli.sources.novel_object import PIXELS


def masks_of(folder: Path) -> dict[str, Pixels]:
    """Read black-on-white masks, brought to 224 × 224: coverage 0 to 255; the error lists all that are not binary."""

    def read(image: Image.Image) -> Pixels | str:
        if max(image.size) > LARGEST_SIDE:
            return f"{image.width}×{image.height} pixels; at most {LARGEST_SIDE:,} on each side"
        grey = np.asarray(image.convert("L"))
        levels = np.unique(grey)
        if levels.tolist() == [0, 255]:
            return _square(255 - grey)
        shown = ", ".join(str(v) for v in levels[:4]) + (" …" if len(levels) > 4 else "")
        return f"not binary: {len(levels)} grey levels ({shown}); expected 0 and 255"

    return _read_all("masks", folder, read, "black (0) is the object, white (255) the rest")


def photographs_of(folder: Path) -> dict[str, Pixels]:
    """Read pictures of textures, at least 224 pixels on each side."""

    def read(image: Image.Image) -> Pixels | str:
        pixels = np.asarray(image)
        if min(pixels.shape[:2]) >= PIXELS:
            return pixels
        return f"{pixels.shape[1]}×{pixels.shape[0]} pixels; at least {PIXELS} on each side"

    hint = "a patch that is larger than a stimulus is needed; pictures of twice that size give different patches"
    return _read_all("textures", folder, read, hint)


def _read_all(what: str, folder: Path, read: Callable[[Image.Image], Pixels | str], hint: str) -> dict[str, Pixels]:
    """Return name → pixels of every image of a folder; what ``read`` refuses is reported at once."""
    usable: dict[str, Pixels] = {}
    problems = []
    for path in sorted(p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES):
        try:
            result = read(read_rgb(path))
        except UserError as error:
            raise UserError(f"{path}: {error.message}", error.hint) from None
        if isinstance(result, str):
            problems.append(f"{path.name}: {result}")
        else:
            usable[path.stem] = result
    if len(usable) < 2 and not problems:
        problems.append(f"{len(usable)} usable images; two or more are needed")
    if problems:
        raise all_problems(f"{what} in {folder}", problems, hint)
    return usable


def _square(cover: Pixels) -> Pixels:
    """Pad to a square and resize to the size of a stimulus, antialiased."""
    height, width = cover.shape
    side = max(height, width)
    padded = np.zeros((side, side), np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    padded[top : top + height, left : left + width] = cover
    return np.asarray(Image.fromarray(padded).resize((PIXELS, PIXELS), Image.Resampling.BILINEAR))
