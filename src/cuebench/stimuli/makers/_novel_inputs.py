"""A user's own masks and textures for novel objects, checked before anything is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.arrays import Pixels
from cuebench.errors import UserError, all_problems
from cuebench.stimuli.readers.scan import IMAGE_SUFFIXES
from cuebench.stimuli.sources.novel_object import PIXELS


def masks_of(folder: Path) -> dict[str, Pixels]:
    """Read black-on-white masks, brought to 224 × 224: coverage 0 to 255. All that are not binary are named at once."""
    found, problems = {}, []
    for path in _images(folder):
        grey = np.asarray(_opened(path).convert("L"))
        levels = np.unique(grey)
        if len(levels) != 2 or levels.tolist() != [0, 255]:
            shown = ", ".join(str(v) for v in levels[:4]) + (" …" if len(levels) > 4 else "")
            problems.append(f"{path.name}: not binary: {len(levels)} grey levels ({shown}); expected 0 and 255")
        else:
            found[path.stem] = _square(255 - grey)
    _report("masks", folder, problems + _too_few(found, problems), "black (0) is the object, white (255) the rest")
    return found


def photographs_of(folder: Path) -> dict[str, Pixels]:
    """Read pictures of textures, at least 224 pixels on each side."""
    found, problems = {}, []
    for path in _images(folder):
        pixels = np.asarray(_opened(path).convert("RGB"))
        if min(pixels.shape[:2]) < PIXELS:
            problems.append(f"{path.name}: {pixels.shape[1]}×{pixels.shape[0]} pixels; at least {PIXELS} on each side")
        else:
            found[path.stem] = pixels
    hint = "a patch that is larger than a stimulus is needed; pictures of twice that size give different patches"
    _report("textures", folder, problems + _too_few(found, problems), hint)
    return found


def _images(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES)


def _opened(path: Path) -> Image.Image:
    try:
        with Image.open(path) as image:
            image.load()
            return image
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UserError(f"{path} cannot be decoded: {error}") from None


def _too_few(found: dict[str, Pixels], problems: list[str]) -> list[str]:
    return [f"{len(found)} usable images; two or more are needed"] if len(found) < 2 and not problems else []


def _report(what: str, folder: Path, problems: list[str], hint: str) -> None:
    if problems:
        raise all_problems(f"{what} in {folder}", problems, hint)


def _square(cover: Pixels) -> Pixels:
    """Pad to a square and bring to the size of a stimulus, antialiased."""
    height, width = cover.shape
    side = max(height, width)
    padded = np.zeros((side, side), np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    padded[top : top + height, left : left + width] = cover
    return np.asarray(Image.fromarray(padded).resize((PIXELS, PIXELS), Image.Resampling.BILINEAR))
