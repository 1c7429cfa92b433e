"""Decoding in worker processes.

Not ``multiprocessing``: its safe start methods re-import the user's main module, which breaks notebooks, the REPL and
every script without ``if __name__ == "__main__"``; its unsafe one forks a process full of threads. Here a worker is a
plain child process that imports Pillow and NumPy and speaks over a socket pair, one thread of ours for each.
"""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np
from PIL import Image

from cuebench.errors import UserError
from cuebench.observers.preprocess import Geometry
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


class DecodePool:
    """A bounded crew of decoding processes; with ``workers=0`` the work is done in the calling thread.

    ``decoded`` counts the files that were opened, so that a test can show that no image is read twice.
    """

    def __init__(self, workers: int) -> None:
        self.decoded = 0
        self._tasks: queue.SimpleQueue[tuple[Task, Future[Rendered]] | None] = queue.SimpleQueue()
        self._crew = [_Worker(self._tasks) for _ in range(workers)]

    def submit(self, task: Task) -> Future[Rendered]:
        """Queue a task; its future raises whatever the worker raised."""
        self.decoded += 1
        future: Future[Rendered] = Future()
        if self._crew:
            self._tasks.put((task, future))
        else:
            future.set_result(perform(task))
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._drop_waiting()
        for _ in self._crew:
            self._tasks.put(None)
        for worker in self._crew:
            worker.close(hurry=kind is not None)

    def _drop_waiting(self) -> None:
        # After Ctrl-C or an error nobody waits for these any more.
        while not self._tasks.empty():
            item = self._tasks.get()
            if item is not None:
                item[1].cancel()


class _Worker:
    """One child process and the thread that feeds it."""

    def __init__(self, tasks: queue.SimpleQueue[tuple[Task, Future[Rendered]] | None]) -> None:
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        command = [sys.executable, "-m", "cuebench.responses._worker_main", str(theirs.fileno())]
        # A session of its own: Ctrl-C reaches the parent, which closes the pipe; the child then ends by itself.
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=_child_environment(), start_new_session=True
        )
        theirs.close()
        self._thread = threading.Thread(target=self._feed, args=(tasks,), daemon=True)
        self._thread.start()

    def _feed(self, tasks: queue.SimpleQueue[tuple[Task, Future[Rendered]] | None]) -> None:
        while (item := tasks.get()) is not None:
            task, future = item
            if future.set_running_or_notify_cancel():
                self._answer(task, future)

    def _answer(self, task: Task, future: Future[Rendered]) -> None:
        try:
            self._connection.send(task)
            answer = self._connection.recv()
        except (EOFError, OSError):
            # The child died (killed for memory, say): finish its task here, where the error is visible.
            try:
                future.set_result(perform(task))
            except Exception as error:  # noqa: BLE001 - handed to whoever waits for the future
                future.set_exception(error)
            return
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def close(self, *, hurry: bool) -> None:
        if not hurry:
            self._thread.join(timeout=30)
        self._connection.close()
        if hurry:
            self._process.terminate()
        self._process.wait(timeout=30)


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


def _child_environment() -> dict[str, str]:
    # The child must find cuebench where the parent found it, installed or not.
    paths = [p for p in sys.path if p]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "OMP_NUM_THREADS": "1"}
