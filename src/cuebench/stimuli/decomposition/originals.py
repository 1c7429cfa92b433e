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
from cuebench.stimuli.image_files import read_picture
from cuebench.stimuli.input_log import InputLog, digests
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
    root, log = Path(images.root), InputLog(home)
    inputs = {target(home, s): [root / path for path in (s.path, s.mask) if path] for s in images}
    hashes = digests(inputs)
    todo = []
    for s in images:
        result = target(home, s)
        results = [result, *([target(home, s, MASKS)] if s.mask else [])]
        if log.is_current(results, inputs[result], hashes[result]):
            log.add(result, hashes[result])
        else:
            todo.append(s)

    def write(stimulus: Stimulus) -> str:
        try:
            return _write(stimulus, root, home, size, resize, classes)
        except UserError as error:
            return error.message

    kept = len(images) - len(todo)
    problems = []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for done, (stimulus, problem) in enumerate(zip(todo, pool.map(write, todo)), start=kept + 1):
            problems += [problem] if problem else []
            if not problem:
                log.add(target(home, stimulus), hashes[target(home, stimulus)])
            if progress:
                progress(done, len(images))
    log.finish()
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
    """Write tex.EED = image − EED + ½ from the files of both; a file that was made of the same two is kept."""
    log = InputLog(home / residual)
    inputs = {home / residual / f"{n}.png": [home / part / f"{n}.png" for part in (ORIGINAL, shape)] for n in ids}
    hashes = digests(inputs)

    def write(result: Path) -> None:
        plain, smooth = inputs[result]
        if log.is_current([result], [plain, smooth], hashes[result]):
            return
        a, b = (np.asarray(read_picture(p), np.int16) for p in (plain, smooth))
        write_image(result, np.clip(a - b + 128, 0, 255).astype(np.uint8))

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for result, _ in zip(inputs, pool.map(write, inputs)):
            log.add(result, hashes[result])
    log.finish()
