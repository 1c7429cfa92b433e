"""Hashes of many files: on a thread pool, or in worker processes where a run has them already.

Hashing releases Python's lock, but opening and naming files does not: threads hash some thousand small files in a
second, processes as many for each core.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cuebench.errors import all_problems
from cuebench.files import FileFacts, hash_file
from cuebench.processes import ProcessPool, quick_turns

A = TypeVar("A")
T = TypeVar("T")
P = TypeVar("P", str, Path)
MANY = 2000
"""Files from which processes are asked, where there are some."""
TASK = 64
"""Files that a process is given at once."""
AHEAD = 256
"""Tasks that wait for a process, or whose results wait: enough that no process is ever idle."""
_processes: ContextVar[ProcessPool | None] = ContextVar("processes", default=None)


@contextmanager
def hashing_in(processes: ProcessPool | None) -> Iterator[None]:
    """Let many files be hashed in these worker processes while the block runs."""
    before = _processes.set(processes)
    try:
        with quick_turns():
            yield
    finally:
        _processes.reset(before)


def in_processes(do: Callable[[A], T], arguments: Sequence[A]) -> list[T]:
    """Return ``do`` of each argument, a function of a module: computed in worker processes where there are some.

    For work of many small steps while this process imports torch in another thread: each call of the system would wait
    for Python's lock again.
    """
    processes = _processes.get()
    if processes is None:
        return list(map(do, arguments))
    return [future.result() for future in [processes.submit(do, argument) for argument in arguments]]


def _several(task: tuple[Callable[[P], T], Sequence[P]]) -> list[tuple[T | None, str]]:
    do, paths = task
    return [_guarded(do, path) for path in paths]


def _guarded(do: Callable[[P], T], path: P) -> tuple[T | None, str]:
    try:
        return do(path), ""
    except OSError as error:
        return None, f"{path}: {error.strerror or error}"


def hash_files(paths: Sequence[Path], workers: int = 0) -> list[FileFacts]:
    """Return sha256 and size of many files, in the order of the paths.

    Raises
    ------
    UserError
        Naming every file that cannot be read, not only the first.
    """
    return for_each_file(hash_file, paths, workers)


def for_each_file(do: Callable[[P], T], paths: Iterable[P], workers: int = 0) -> list[T]:
    """Apply a function of a module to files; keep the order and report all unreadable files at once."""
    paths = list(paths)
    return list(each_file(do, paths, len(paths), workers))


def each_file(do: Callable[[P], T], paths: Iterable[P], count: int, workers: int = 0) -> Iterator[T]:
    """Yield what a function of a module returns for each of ``count`` files, in their order.

    A bounded number of paths and results is in memory at a time. All unreadable files are reported at once, in the end.
    """
    threads = None
    submit: Callable[..., Future[list[tuple[T | None, str]]]]
    if (processes := _processes.get()) is not None and count >= MANY:
        submit = processes.submit
    else:
        threads = ThreadPoolExecutor(workers or min(8, (os.cpu_count() or 1) + 2))
        submit = threads.submit
    begun: deque[Future[list[tuple[T | None, str]]]] = deque()
    problems: list[str] = []

    def results(waiting: int) -> Iterator[T]:
        while len(begun) > waiting:
            for value, why in begun.popleft().result():
                if why:
                    problems.append(why)
                elif not problems:
                    yield value  # type: ignore[misc]

    try:
        left = iter(paths)
        while task := tuple(islice(left, TASK)):
            begun.append(submit(_several, (do, task)))
            yield from results(AHEAD)
        yield from results(0)
    finally:
        if threads is not None:
            threads.shutdown(cancel_futures=True)
    if problems:
        raise all_problems("files that cannot be read", problems, "check the paths and your permissions")
