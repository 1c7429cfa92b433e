"""Which observers are on the device: those that do not fit together take turns.

Where all fit, none is ever moved and every image is decoded once. Where they do not, the jobs of a stimulus set are
served in groups that fit, each with its own decoding: moving a network once for a whole set costs little, moving it for
each batch would cost more than the answers.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Sequence

from cuebench.observers.base import ObserverBase
from cuebench.responses.job import Job

SHARE = 0.6
"""Of the free memory that networks may take; the rest is for what they compute."""
LARGEST_BATCH = 256
"""Most stimuli that a network is shown at once, where nobody says otherwise: a GPU is busy with that many."""
_PROBED = (4, 8)
"""Sizes of the batches whose memory is measured."""


def free_memory(observer: ObserverBase) -> int | None:
    """Return the free bytes of the device that an observer is on; None where there is no limit that we know of."""
    torch = sys.modules.get("torch")
    device = str(observer.device) or "cuda"
    if torch is None or not device.startswith("cuda") or not torch.cuda.is_available():
        return None
    return int(torch.cuda.mem_get_info(device)[0])


def fitting_batch(observer: ObserverBase, ask: Callable[[int], object]) -> int:
    """Return how many stimuli an observer on a GPU can be shown at once; 0 for any other.

    Parameters
    ----------
    observer : ObserverBase
        On its device.
    ask : callable
        ``ask(count)`` shows it so many stimuli: what they take is measured.
    """
    free = free_memory(observer)
    if free is None or not observer.memory:
        return 0
    cuda, device = sys.modules["torch"].cuda, observer.device
    taken = []
    for count in _PROBED:
        cuda.synchronize(device)
        cuda.reset_peak_memory_stats(device)
        before = cuda.memory_allocated(device)
        ask(count)
        cuda.synchronize(device)
        taken.append(cuda.max_memory_allocated(device) - before)
    each = max((taken[1] - taken[0]) / (_PROBED[1] - _PROBED[0]), taken[1] / _PROBED[1] / 2, 1)
    reusable = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    size = LARGEST_BATCH
    while size > 1 and taken[1] + each * size > SHARE * (free + reusable):
        size //= 2
    return size


def give_memory_back() -> None:
    """Return memory that nobody holds any more: of networks to the GPU, of the last stage of a run to the system."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # glibc's
        trim(0)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        gc.collect()  # a recording and its network may hold each other
        torch.cuda.empty_cache()


class Device:
    """The observers that are on the device, the one that was asked last at the end.

    Parameters
    ----------
    free : callable
        ``free(observer)``: bytes that are free on its device. Asked once, when the first observer has been loaded.
    """

    def __init__(self, free: Callable[[ObserverBase], int | None] = free_memory) -> None:
        self._free = free
        self._room: float | None = None
        self._measured = False
        self._present: dict[int, ObserverBase] = {}
        self._others: dict[int, tuple[ObserverBase, ...]] = {}

    def admit(self, observer: ObserverBase, others: Sequence[ObserverBase] = ()) -> None:
        """Record that an observer is, or is about to be, on the device; those not asked for longest give way.

        ``others`` are the same observer on other devices, which are taken to be as large.
        """
        size = observer.memory
        if not size:
            return
        if not self._measured:
            free = self._free(observer)  # the observer itself is already there
            self._room = None if free is None else SHARE * (free + size)
            self._measured = True
        self._present.pop(id(observer), None)
        while self._present and self._room is not None:
            if size + sum(o.memory for o in self._present.values()) <= self._room:
                break
            oldest = self._present.pop(next(iter(self._present)))
            for released in (oldest, *self._others.pop(id(oldest), ())):
                released.release()
        self._present[id(observer)] = observer
        if others:
            self._others[id(observer)] = tuple(others)

    def groups(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Cut jobs into groups whose observers fit together, in order; all jobs of an observer stay in one."""
        by_observer: dict[int, list[Job]] = {}
        for job in jobs:
            by_observer.setdefault(id(job.observer), []).append(job)
        groups: list[list[Job]] = [[]]
        used = 0
        for jobs_of_observer in by_observer.values():
            size = jobs_of_observer[0].observer.memory
            if used and size and self._room is not None and used + size > self._room:
                groups.append([])
                used = 0
            groups[-1] += jobs_of_observer
            used += size
        return groups
