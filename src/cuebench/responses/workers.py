"""Decoding in worker processes: a file is opened once, whatever is made of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from PIL import Image

from cuebench.arrays import Pixels
from cuebench.errors import UserError
from cuebench.observers.preprocess import Geometry
from cuebench.processes import ProcessPool, Tell, warn
from cuebench.stimuli.render import Unreadable, decode, render
from cuebench.types import Stimulus

T = TypeVar("T")
RETRY_AFTER = 0.1
"""Seconds after which a file that could not be read (not: not be decoded) is tried once more."""


@dataclass(frozen=True)
class Task:
    """One file, the stimuli made from it, and the geometries wanted of each: the file is decoded once for all."""

    root: str
    stimuli: tuple[Stimulus, ...]
    geometries: tuple[Geometry, ...]


class Picture(NamedTuple):
    """What became of one stimulus.

    ``made`` has for each geometry its pixels, or why that geometry cannot be made of this picture. A picture that
    cannot be read at all has the reason in ``unreadable``; ``transient``: the reason may be gone the next time.
    """

    made: list[Pixels | str]
    unreadable: str = ""
    transient: bool = False


Rendered = list[list[Pixels] | str]
"""For each stimulus of a task: one array for each geometry, or the reason why there is none."""


def perform(task: Task) -> Rendered:
    """Decode the file once and make every picture that is wanted of it; a geometry that fails is an error."""
    return [picture.unreadable or _all_made(picture) for picture in pictures(task)]


def _all_made(picture: Picture) -> list[Pixels]:
    for made in picture.made:
        if isinstance(made, str):
            raise UserError(made)
    return [made for made in picture.made if not isinstance(made, str)]


def pictures(task: Task) -> list[Picture]:
    """Decode the file once and make every picture that is wanted of it; what fails says so in its own place."""
    image = _patiently(lambda: decode(task.root, task.stimuli[0]))
    if isinstance(image, Picture):
        return [image] * len(task.stimuli)
    return [_picture(task, image, stimulus) for stimulus in task.stimuli]


def _picture(task: Task, image: Image.Image, stimulus: Stimulus) -> Picture:
    # A recipe may read a second file, such as a mask.
    shown = _patiently(lambda: render(task.root, image, stimulus))
    return shown if isinstance(shown, Picture) else Picture([_applied(g, shown, stimulus) for g in task.geometries])


def _patiently(read: Callable[[], T]) -> T | Picture:
    """Return what is read, or the picture that says why not; a reason that may pass is given a second chance."""
    for wait in (RETRY_AFTER, 0):
        try:
            return read()
        except Unreadable as error:
            failed = Picture([], error.message, getattr(error, "transient", False))
            if not failed.transient:
                break
            time.sleep(wait)
    return failed


def _applied(geometry: Geometry, image: Image.Image, stimulus: Stimulus) -> Pixels | str:
    try:
        return geometry.apply(image)
    except Exception as error:  # noqa: BLE001 - one observer's impossible geometry must not end the others' run
        return f"its geometry cannot be made of {stimulus.id!r}: {_said(error)}"


def _said(error: Exception) -> str:
    return error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"


class DecodePool(ProcessPool):
    """Worker processes that decode.

    ``decoded`` counts the files that were opened, so that a test can show that no image is read twice.
    ``tell`` is told, from another thread, of workers that died.
    """

    def __init__(self, workers: int, *, tell: Tell = warn) -> None:
        super().__init__(workers, tell=tell)
        self.decoded = 0

    def decode(self, task: Task) -> Future[list[Picture]]:
        """Queue a task; its future raises whatever the worker raised."""
        self.decoded += 1
        return self.submit(pictures, task)


def default_workers() -> int:
    """Return how many decoding processes suit this machine: one for each core, eight at most."""
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def check_workers(workers: int | None) -> int:
    """Return the number of workers to start; a negative one is an error."""
    if workers is None:
        return default_workers()
    if workers < 0:
        raise UserError(f"workers must be 0 or more; got {workers}", "0 decodes in the main process")
    return workers
