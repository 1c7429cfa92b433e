"""The originals of a decomposition: every image cut to one size and written as PNG, its mask beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.errors import UserError, all_problems
from cuebench.stimuli.cue_files import read_labels, write_image
from cuebench.stimuli.decomposition.classes import Classes
from cuebench.stimuli.decomposition.cue_list import ORIGINAL
from cuebench.stimuli.render import Unreadable, cut_square, decode, square
from cuebench.types import Stimulus, StimulusSet

MASKS = "masks"


def write_originals(
    images: StimulusSet,
    home: Path,
    size: int,
    resize: int,
    classes: Classes | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write ``original/<id>.png`` and, for a segmentation set, ``masks/<id>.png``; files that are there are kept.

    Parameters
    ----------
    images : StimulusSet
        As read from the source; with ``mask`` where there are masks.
    home : Path
        Folder of the set.
    size, resize : int
        Shorter side to ``resize``, then the centre ``size`` × ``size``; size 0: the image as it is.
    classes : Classes, optional
        Coding of the masks.
    progress : callable, optional
        ``progress(done, total)``.

    Raises
    ------
    UserError
        With every image that cannot be read, every mask of another size, every mask with unknown values.
    """
    todo = [s for s in images if not _done(s, home, Path(images.root))]

    def write(stimulus: Stimulus) -> str:
        try:
            return _write(stimulus, Path(images.root), home, size, resize, classes)
        except UserError as error:
            return error.message

    kept = len(images) - len(todo)
    problems = []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for done, problem in enumerate(pool.map(write, todo), start=kept + 1):
            problems += [problem] if problem else []
            if progress:
                progress(done, len(images))
    if problems:
        raise all_problems(f"{images.root}", problems, "repair or remove these files, or correct the classes file")


def cut(images: StimulusSet, stimulus: Stimulus, size: int, resize: int) -> Array:
    """Return an image as it will be written."""
    try:
        pixels = np.asarray(decode(Path(images.root), stimulus))
    except Unreadable as error:
        raise UserError(error.message, "repair or remove the file") from None
    return square(pixels, size=size, resize=resize) if size else pixels


def target(home: Path, stimulus: Stimulus, part: str = ORIGINAL) -> Path:
    """Return the file of an image in a part of the set."""
    return home / part / f"{stimulus.id}.png"


def _done(stimulus: Stimulus, home: Path, root: Path) -> bool:
    results = [target(home, stimulus), *([target(home, stimulus, MASKS)] if stimulus.mask else [])]
    inputs = [root / stimulus.path, *([root / stimulus.mask] if stimulus.mask else [])]
    if not all(p.is_file() for p in results):
        return False
    return min(p.stat().st_mtime_ns for p in results) >= max(p.stat().st_mtime_ns for p in inputs)


def _write(stimulus: Stimulus, root: Path, home: Path, size: int, resize: int, classes: Classes | None) -> str:
    try:
        pixels = np.asarray(decode(root, stimulus))
    except Unreadable as error:
        return error.message
    if stimulus.mask and classes is not None:
        mask = read_labels(root / stimulus.mask)
        if mask.shape != pixels.shape[:2]:
            both = f"{pixels.shape[1]}×{pixels.shape[0]}, its mask {mask.shape[1]}×{mask.shape[0]}"
            return f"{stimulus.path} is {both}"
        if unknown := classes.unknown(mask):
            known = sorted({*classes.ids, *classes.ignore})
            shown = ", ".join(map(str, known[:40])) + (f" … {known[-1]}" if len(known) > 40 else "")
            return f"{stimulus.mask} holds unknown ids {unknown[:8]}; known: {shown}"
        labels = classes.positions(mask)
        # Cut as the image is, each pixel taking the nearest label.
        labels = cut_square(labels, size, resize, Image.Resampling.NEAREST) if size else labels
        write_image(target(home, stimulus, MASKS), labels)
    write_image(target(home, stimulus), square(pixels, size=size, resize=resize) if size else pixels)
    return ""


def write_residuals(ids: Sequence[str], home: Path, shape: str, residual: str) -> None:
    """Write tex.EED = image − EED + ½ from the files of both; a file that is newer than both is kept."""

    def write(name: str) -> None:
        plain, smooth, result = (home / part / f"{name}.png" for part in (ORIGINAL, shape, residual))
        if result.is_file() and result.stat().st_mtime_ns >= max(p.stat().st_mtime_ns for p in (plain, smooth)):
            return
        a, b = (np.asarray(Image.open(p), np.int16) for p in (plain, smooth))
        write_image(result, np.clip(a - b + 128, 0, 255).astype(np.uint8))

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(write, ids))
