"""Edge-enhancing diffusion of a folder: an estimate of the duration, and batches on a GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.registry import cues
from cuebench.stimuli.cue_files import Job, read_image, write_image

LONGEST = 24 * 3600.0
"""Longest estimate, in seconds, that is started unless the user sets ``hours``."""
BACKEND = {True: "cuda", False: "cpu"}
"""On a GPU or not → the backend of ``eed``."""
_MARKS = 4
WAITING = 4
"""Batches of images that may wait for others of their size."""


class _EnoughError(Exception):
    """Raised out of a calibration once the pace is known."""


def seconds_for(pixels: Array, options: Mapping[str, Any]) -> float:
    """Return how long an image takes on one core, from the pace of its first steps.

    The first report of progress is left out of the pace: it includes the time of compiling the kernels.
    """
    diffuse = cues.get("eed")
    marks: list[tuple[float, int, int]] = []

    def progress(done: int, total: int) -> None:
        marks.append((time.perf_counter(), done, total))
        if len(marks) >= _MARKS:
            raise _EnoughError

    start = time.perf_counter()
    with suppress(_EnoughError):
        diffuse(pixels, **{**options, "workers": 1}, progress=progress)
    if len(marks) < 2:  # a run so short that it reports once
        return time.perf_counter() - start
    (early, before, _), (late, after, total) = marks[0], marks[-1]
    return (late - early) * total / max(after - before, 1)


def check_duration(
    pixels: Array, number: int, options: Mapping[str, Any], workers: int, longest: float = LONGEST, batch: int = 1
) -> float:
    """Return the estimate in seconds; refuse what would take longer than ``longest``, before it is started.

    Parameters
    ----------
    pixels : array
        A typical image.
    number : int
        Images that are still to do.
    options : mapping
        Of ``eed``.
    workers : int
        Images that are made at once.
    longest : float
        Seconds; infinity: never refuse.
    batch : int
        Images that are diffused together (on a GPU); the pace is measured on so many.
    """
    if not number:
        return 0.0
    shown = np.repeat(pixels[None], batch, axis=0) if batch > 1 else pixels
    estimate = seconds_for(shown, options) * number / (max(1, min(workers, number)) * batch)
    if estimate > longest:
        size = f"{pixels.shape[1]}×{pixels.shape[0]}"
        raise UserError(
            f"edge-enhancing diffusion of {number:,} images ({size}) would take about {duration(estimate)} here "
            f"({workers} at once, {dict(options) or 'as published'})",
            "use the fast scheme (--set accuracy=45), fewer images (--count N), a machine with a GPU, or more workers; "
            "--set hours=0 starts it anyway",
        )
    return estimate


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(200000)
    '2.3 days'
    """
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.0f} seconds"


def on_gpu(device: str) -> bool:
    """Tell whether EED will run on a GPU: where there is a GPU, unless the user wants the CPU."""
    if device not in {"auto", "cpu", "cuda"}:
        raise UserError(f"device is {device!r}", "accepted: auto, cpu, cuda")
    if device == "cpu":
        return False
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return False
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda' is not available here", "use --set device=cpu")
    return bool(torch.cuda.is_available())


def diffuse_batches(
    jobs: Sequence[Job], options: Mapping[str, Any], size: int, progress: Callable[[int, int], None] | None = None
) -> None:
    """Make the files in batches of images of the same size, on the GPU; each file is written whole or not at all."""
    diffuse = cues.get("eed")
    groups: dict[tuple[int, ...], list[tuple[Path, Array]]] = {}
    done = 0

    def flush(shape: tuple[int, ...]) -> None:
        nonlocal done
        batch = groups.pop(shape)
        for (path, _), picture in zip(batch, diffuse(np.stack([p for _, p in batch]), **options)):
            write_image(path, picture)
        done += len(batch)
        if progress:
            progress(done, len(jobs))

    for job in jobs:
        pixels = read_image(job.source)
        groups.setdefault(pixels.shape, []).append((job.target, pixels))
        if len(groups[pixels.shape]) == size:
            flush(pixels.shape)
        elif sum(map(len, groups.values())) > WAITING * size:  # many sizes: bound what waits in memory
            flush(max(groups, key=lambda shape: len(groups[shape])))
    for shape in list(groups):
        flush(shape)


def cores(workers: int) -> int:
    """Return how many images are made at once."""
    return workers or os.cpu_count() or 1
