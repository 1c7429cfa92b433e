"""Who is on the device: observers that do not fit together take turns.

An observer may offer ``memory`` (the bytes that it takes there) and ``release()`` (go to the main memory; the next
``respond`` brings it back). Where all fit, nobody is ever moved and every image is decoded once. Where they do not, the
jobs of a stimulus set are served in groups that fit, each with its own decoding: moving a network once for a whole set
costs little, moving it for each batch would cost more than the answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from cuebench.observers.base import Observer
from cuebench.responses.job import Job

SHARE = 0.6
"""Of the free memory that networks may take; the rest is for what they compute."""


def memory_of(observer: Observer) -> int:
    """Return the bytes that an observer takes on the device; 0 where it does not say so, or cannot leave it."""
    return int(getattr(observer, "memory", 0) or 0) if callable(getattr(observer, "release", None)) else 0


def free_memory(observer: Observer) -> int | None:
    """Return the free bytes of the device that an observer is on; None where there is no limit that we know of."""
    torch = sys.modules.get("torch")
    device = str(getattr(observer, "device", "cuda"))
    if torch is None or not device.startswith("cuda") or not torch.cuda.is_available():
        return None
    return int(torch.cuda.mem_get_info(device)[0])


class Device:
    """The observers that are on the device, the one that was asked last at the end.

    Parameters
    ----------
    free : callable
        ``free(observer)``: bytes that are free on its device. Asked once, when the first observer has been loaded.
    """

    def __init__(self, free: Callable[[Observer], int | None] = free_memory) -> None:
        self._free = free
        self._room: float | None = None
        self._measured = False
        self._there: dict[int, Observer] = {}

    def admit(self, observer: Observer) -> None:
        """Note that an observer is, or is about to be, on the device; the longest unasked give way."""
        size = memory_of(observer)
        if not size:
            return
        self._measure(observer, size)
        self._there.pop(id(observer), None)
        while self._there and self._room is not None and self._taken() + size > self._room:
            oldest = self._there.pop(next(iter(self._there)))
            oldest.release()  # type: ignore[attr-defined]
        self._there[id(observer)] = observer

    def groups(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Cut jobs into groups whose observers fit together, in order; all jobs of an observer stay in one."""
        made: list[list[Job]] = [[]]
        taken = 0
        for own in _by_observer(jobs):
            size = memory_of(own[0].observer)
            if taken and size and self._room is not None and taken + size > self._room:
                made.append([])
                taken = 0
            made[-1] += own
            taken += size
        return made

    def _measure(self, observer: Observer, size: int) -> None:
        if not self._measured:
            free = self._free(observer)  # the observer itself is already there
            self._room = None if free is None else SHARE * (free + size)
            self._measured = True

    def _taken(self) -> int:
        return sum(memory_of(o) for o in self._there.values())


def _by_observer(jobs: Sequence[Job]) -> list[list[Job]]:
    found: dict[int, list[Job]] = {}
    for job in jobs:
        found.setdefault(id(job.observer), []).append(job)
    return list(found.values())
