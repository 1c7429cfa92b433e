"""Decoding in worker processes: a file is opened once, whatever is made of it."""

from __future__ import annotations

import os
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from cuebench.errors import UserError
from cuebench.observers.preprocess import Geometry
from cuebench.processes import ProcessPool
from cuebench.stimuli.render import Unreadable, decode, render
from cuebench.types import Stimulus

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Task:
    """One file, the stimuli made from it, and the geometries wanted of each: the file is decoded once for all."""

    root: str
    stimuli: tuple[Stimulus, ...]
    geometries: tuple[Geometry, ...]


Rendered = list[list[Pixels] | str]
"""For each stimulus of the task: one array for each geometry, or the reason why there is none."""


def perform(task: Task) -> Rendered:
    """Decode the file once and make every picture that is wanted of it."""
    try:
        image = decode(task.root, task.stimuli[0])
    except Unreadable as error:
        return [error.message] * len(task.stimuli)
    made: Rendered = []
    for stimulus in task.stimuli:
        made.append(_pictures(task, image, stimulus))
    return made


def _pictures(task: Task, image: Image.Image, stimulus: Stimulus) -> list[Pixels] | str:
    try:
        shown = render(task.root, image, stimulus)
    except Unreadable as error:  # a second file of the recipe, such as a mask
        return error.message
    return [geometry.apply(shown) for geometry in task.geometries]


class DecodePool(ProcessPool):
    """Worker processes that decode.

    ``decoded`` counts the files that were opened, so that a test can show that no image is read twice.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.decoded = 0

    def decode(self, task: Task) -> Future[Rendered]:
        """Queue a task; its future raises whatever the worker raised."""
        self.decoded += 1
        return self.submit(perform, task)


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
