"""Decoding in worker processes: a file is opened once, whatever is made of it, for every geometry that is wanted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

import numpy as np
from PIL import Image

from cuebench.arrays import Pixels
from cuebench.errors import UserError, all_problems
from cuebench.observers.preprocess import Geometry
from cuebench.processes import ProcessPool, Tell, warn
from cuebench.stimuli.render import Unreadable, decode, render
from cuebench.types import Stimulus, StimulusSet

T = TypeVar("T")
RETRY_AFTER = 0.1
"""Seconds after which a file that could not be read (not: not be decoded) is tried once more."""
PROBE_TRIES = 16
"""Stimuli that are tried until one can be shown as the first picture."""


# ------------------------------------------------------------------------------------------ in a worker process


@dataclass(frozen=True)
class Task:
    """One file, the stimuli made from it, and the geometries wanted of each: the file is decoded once for all."""

    root: str
    stimuli: tuple[Stimulus, ...]
    geometries: tuple[Geometry, ...]


class Picture(NamedTuple):
    """What became of one stimulus.

    ``by_geometry`` has for each geometry its pixels, or why that geometry cannot be made of this picture. A picture
    that cannot be read at all has the reason in ``unreadable``; ``transient``: the reason may be gone the next time.
    """

    by_geometry: list[Pixels | str]
    unreadable: str = ""
    transient: bool = False


def pictures(task: Task) -> list[Picture]:
    """Decode the file once and render every stimulus that is made from it; a failure is returned in its place."""
    image = _retried(lambda: decode(task.root, task.stimuli[0]))
    if isinstance(image, Picture):
        return [image] * len(task.stimuli)
    rendered = []
    for stimulus in task.stimuli:
        # A recipe may read a second file, such as a mask.
        shown = _retried(lambda stimulus=stimulus: render(task.root, image, stimulus))  # type: ignore[misc]
        if isinstance(shown, Image.Image):
            shown = Picture([_apply(geometry, shown, stimulus) for geometry in task.geometries])
        rendered.append(shown)
    return rendered


def _retried(read: Callable[[], T]) -> T | Picture:
    """Return what is read, or a picture with the reason why not; a reason that may pass is given a second chance."""
    for wait in (RETRY_AFTER, 0):
        try:
            return read()
        except Unreadable as error:
            failed = Picture([], error.message, error.transient)
            if not failed.transient:
                break
            time.sleep(wait)
    return failed


def _apply(geometry: Geometry, image: Image.Image, stimulus: Stimulus) -> Pixels | str:
    try:
        return geometry.apply(image)
    except Exception as error:  # noqa: BLE001 - one observer's impossible geometry must not end the others' run
        reason = error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        return f"its geometry cannot be made of {stimulus.id!r}: {reason}"


# ------------------------------------------------------------------------------------------ in the main process


class DecodePool(ProcessPool):
    """Worker processes that decode.

    ``decoded`` counts the files that were opened, so that a test can show that no image is read twice.
    ``tell`` is called, from another thread, with a text about a worker that died.
    """

    def __init__(self, workers: int, *, tell: Tell = warn) -> None:
        super().__init__(workers, tell=tell)
        self.decoded = 0

    def decode(self, task: Task) -> Future[list[Picture]]:
        """Queue a task; its future raises whatever the worker raised."""
        self.decoded += 1
        return self.submit(pictures, task)


def check_workers(workers: int | None) -> int:
    """Return the number of workers to start: by default one for each core, eight at most; a negative one is refused."""
    if workers is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(8, cores)
    if workers < 0:
        raise UserError(f"workers must be 0 or more; got {workers}", "0 decodes in the main process")
    return workers


class BatchPictures:
    """The images of one batch: requested early, waited for when they are needed."""

    def __init__(
        self, geometries: tuple[Geometry, ...], futures: list[tuple[list[int], Future[list[Picture]]]]
    ) -> None:
        self._geometries = geometries
        self._futures = futures
        self._pictures: dict[int, Picture] = {}
        self._stacked: dict[Geometry, Pixels] = {}

    @classmethod
    def request(
        cls, pool: DecodePool, root: str, batch: Sequence[Stimulus], geometries: Iterable[Geometry | None]
    ) -> Self:
        """Start decoding: one task for each file, whatever is made of it."""
        wanted = tuple(dict.fromkeys(g for g in geometries if g))
        if not wanted:
            return cls((), [])
        files: dict[tuple[str, str], list[int]] = {}
        for position, stimulus in enumerate(batch):  # by the hash, too: it is compared with the first of each task only
            files.setdefault((stimulus.path or stimulus.id, stimulus.sha256), []).append(position)
        tasks = ((where, Task(root, tuple(batch[i] for i in where), wanted)) for where in files.values())
        return cls(wanted, [(where, pool.decode(task)) for where, task in tasks])

    def unreadable(self) -> dict[int, str]:
        """Return position → reason for what cannot be decoded.

        Raises
        ------
        UserError
            Where a file could not be read for a reason that may pass (it is missing, the disk fails): nothing may be
            stored of that.
        """
        failed = {i: picture for i, picture in sorted(self._wait().items()) if picture.unreadable}
        passing = [picture.unreadable for picture in failed.values() if picture.transient]
        if passing:
            hint = "put the files back, or check the disk; then run the same command again: finished work is kept"
            raise all_problems("stimuli that cannot be read at the moment", dict.fromkeys(passing), hint)
        return {i: picture.unreadable for i, picture in failed.items()}

    def of(self, geometry: Geometry) -> Pixels:
        """Return all images that can be shown as one read-only array N×H×W×3, shared by all observers.

        Raises
        ------
        UserError
            Where this geometry cannot be made of one of them.
        """
        if geometry not in self._stacked:
            column = self._geometries.index(geometry)
            readable = [picture for _, picture in sorted(self._wait().items()) if not picture.unreadable]
            arrays = []
            for picture in readable:
                pixels = picture.by_geometry[column]
                if isinstance(pixels, str):
                    raise UserError(pixels)
                arrays.append(pixels)
            stacked = np.stack(arrays) if arrays else np.zeros((0, *geometry.size, 3), dtype=np.uint8)
            stacked.flags.writeable = False
            self._stacked[geometry] = stacked
        return self._stacked[geometry]

    def _wait(self) -> dict[int, Picture]:
        for positions, future in self._futures:
            self._pictures.update(zip(positions, future.result()))
        self._futures = []
        return self._pictures


def first_picture(stimuli: StimulusSet, geometry: Geometry) -> tuple[Stimulus, Pixels] | None:
    """Return the first stimulus that can be shown, and its image; None where the first few are all unreadable."""
    for stimulus in stimuli.stimuli[:PROBE_TRIES]:
        (picture,) = pictures(Task(stimuli.root, (stimulus,), (geometry,)))
        if picture.unreadable:
            continue
        pixels = picture.by_geometry[0]
        if isinstance(pixels, str):
            raise UserError(pixels)
        return stimulus, pixels[None]
    return None
