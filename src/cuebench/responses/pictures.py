"""Decoding in worker processes: a file is opened once, whatever is made of it, for every geometry that is wanted.

Workers write pixels into memory that they share with the engine (``shared_memory.py``); what they send back is which
pictures could not be made. A task is a handful of files, so that asking costs little beside decoding.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import numpy as np
from PIL import Image

from cuebench.arrays import Pixels
from cuebench.errors import UserError, all_problems
from cuebench.observers.base import SharedImages
from cuebench.observers.preprocess import Geometry
from cuebench.processes import ProcessPool, Tell, warn
from cuebench.responses.pixel_cache import DamagedPixels, Keeping, Kept, PixelCache, Reading, keep, read_kept
from cuebench.responses.shared_memory import Block, SharedMemory, bytes_of
from cuebench.stimuli.on_device import BeforeDevice, before_device
from cuebench.stimuli.render import Unreadable, background_step, decode, render, steps
from cuebench.types import Stimulus, StimulusSet

T = TypeVar("T")
RETRY_AFTER = 0.1
"""Seconds after which a file that could not be read (not: not be decoded) is tried once more."""
PROBE_TRIES = 16
"""Stimuli that are tried until one can be shown as the first picture."""
POLITENESS = 5
"""By how much workers step back for the process that feeds the device: a core that it lacks is missed by all."""
LARGEST_TASK = 16
"""Stimuli that a worker is given at once, at most (more only where they are made from one file)."""


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
    begun: dict[tuple[str, int], Image.Image | Picture] = {}
    rendered = []
    for stimulus in task.stimuli:
        whole: list[Image.Image | Picture] = []
        by_geometry: list[Pixels | str] = []
        for geometry in task.geometries:
            if isinstance(geometry, BeforeDevice):
                # Many stimuli share what is done before the device.
                before = before_device(stimulus, geometry)
                key = (before.recipe, stimulus.seed if _is_random(before) else 0)
                shown = begun[key] if key in begun else _rendered(task.root, image, before)
                begun[key] = shown
            else:
                shown = whole[0] if whole else _rendered(task.root, image, stimulus)
                whole = [shown]
            if isinstance(shown, Picture):
                rendered.append(shown)
                break
            by_geometry.append(_apply(geometry, shown, stimulus))
        else:
            rendered.append(Picture(by_geometry))
    return rendered


def _rendered(root: str, image: Image.Image, stimulus: Stimulus) -> Image.Image | Picture:
    """Follow a recipe, which may read a second file, such as a mask."""
    return _retried(lambda: render(root, image, stimulus))


def _is_random(stimulus: Stimulus) -> bool:
    """Tell whether the recipe depends on the seed (a source was drawn when the file was decoded)."""
    parsed = steps(stimulus.recipe, source=not stimulus.path) if stimulus.recipe else ()
    return any(step.kind == "cue" and step.function.info.random for step in parsed)  # type: ignore[attr-defined]


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


@dataclass(frozen=True)
class Filling:
    """Some files of a batch, and where the pixels of their stimuli are to be written.

    Parameters
    ----------
    root : str
        Folder of the stimulus set.
    files : tuple of (positions, stimuli)
        For each file the stimuli that are made from it, and their positions in the batch.
    geometries : tuple of Geometry
        What is wanted of each.
    places : tuple of Block or array
        For each geometry the memory of the whole batch: of another process, or of this one.
    """

    root: str
    files: Files
    geometries: tuple[Geometry, ...]
    places: tuple[Block | Pixels, ...]


@dataclass(frozen=True)
class Failed:
    """Why a stimulus has no pixels: none at all (``unreadable``), or none of some geometries (by their number)."""

    unreadable: str = ""
    transient: bool = False
    impossible: Mapping[int, str] = field(default_factory=dict)


def fill(task: Filling) -> dict[int, Failed]:
    """Decode files and write the pixels to their places; return position → failure for what could not be made."""
    images = [rows_of_block(place, geometry) for place, geometry in zip(task.places, task.geometries)]
    failed = {}
    for positions, stimuli in task.files:
        for position, picture in zip(positions, pictures(Task(task.root, stimuli, task.geometries))):
            if picture.unreadable:
                failed[position] = Failed(picture.unreadable, picture.transient)
                continue
            impossible = {}
            for number, pixels in enumerate(picture.by_geometry):
                if isinstance(pixels, str):
                    impossible[number] = pixels
                else:
                    images[number][position] = pixels
            if impossible:
                failed[position] = Failed(impossible=impossible)
    return failed


def _be_ready(_: None) -> None:
    """Do nothing: a worker that is asked to has imported this module."""


def rows_of_block(place: Block | Pixels, geometry: Geometry) -> Pixels:
    """Return memory as images N×H×W×3 of a geometry, as many as fit."""
    memory = bytes_of(place) if isinstance(place, Block) else place
    size = image_bytes(geometry)
    return memory[: len(memory) // size * size].reshape(-1, *geometry.size, 3)


def image_bytes(geometry: Geometry) -> int:
    """Return the size of one image."""
    return geometry.size[0] * geometry.size[1] * 3


# ------------------------------------------------------------------------------------------ in the main process


class DecodePool(ProcessPool):
    """Worker processes that decode, and the memory that they share with this process.

    ``decoded`` counts the files that were opened, so that a test can show that no image is read twice.
    ``tell`` is called, from another thread, with a text about a worker that died.
    """

    def __init__(self, workers: int, *, tell: Tell = warn) -> None:
        self.memory = SharedMemory() if workers else None
        inherited = self.memory.inherited if self.memory else ()
        super().__init__(workers, tell=tell, inherited=inherited, politeness=POLITENESS, ahead=1)
        self.workers, self.tell = workers, tell
        self.decoded = 0
        for _ in range(workers):  # each imports what it needs while this process loads its models
            self.submit(_be_ready, None)

    def decode(self, task: Filling) -> Future[dict[int, Failed]]:
        """Queue a task; its future raises whatever the worker raised."""
        self.decoded += len(task.files)
        return self.submit(fill, task)

    def take(self, size: int, *, pinned: bool = False) -> Block | Pixels:
        """Return memory for so many bytes of pixels; ``pinned``: a GPU is to read them."""
        if self.memory is None:
            return np.empty(size, np.uint8)
        block = self.memory.take(size)
        if pinned:
            self.memory.pin(block)
        return block

    def give_back(self, places: Iterable[Block | Pixels]) -> None:
        """Let memory be used for other pixels."""
        for place in places:
            if self.memory is not None and isinstance(place, Block):
                self.memory.give_back(place)

    def empty(self) -> None:
        """Give the memory back to the system, where none of it is in use."""
        if self.memory is not None:
            self.memory.empty()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        if self.memory is not None:
            self.memory.close()
            self.memory = None


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_workers(workers: int | None) -> int:
    """Return the number of workers to start: by default one for each core; a negative one is refused."""
    if workers is None:
        return available_cores()
    if workers < 0:
        raise UserError(f"workers must be 0 or more; got {workers}", "0 decodes in the main process")
    return workers


class BatchPictures:
    """The images of one batch: requested early, waited for when they are needed, given back when they were shown."""

    def __init__(
        self, pool: DecodePool, root: str, batch: Sequence[Stimulus], geometries: tuple[Geometry, ...]
    ) -> None:
        self._pool, self._root, self._batch = pool, root, batch
        self._count = len(batch)
        self._geometries = geometries
        self._places: tuple[Block | Pixels, ...] = ()
        self._decoding: list[tuple[tuple[int, ...], Future[dict[int, Failed]]]] = []
        self._reading: list[tuple[int, Kept, Future[None]]] = []
        self._keeping: list[Future[None]] = []
        self._cached: Cached | None = None
        self._failed: dict[int, Failed] = {}
        self._shared: dict[Geometry, SharedImages] = {}

    @classmethod
    def request(
        cls,
        pool: DecodePool,
        root: str,
        batch: Sequence[Stimulus],
        geometries: Iterable[Geometry | None],
        *,
        pinned: bool = False,
        cached: Cached | None = None,
    ) -> Self:
        """Start decoding: each file once, whatever is made of it; what the cache holds is read from there."""
        wanted = tuple(dict.fromkeys(g for g in geometries if g))
        requested = cls(pool, root, batch, wanted)
        requested._places = tuple(pool.take(len(batch) * image_bytes(g), pinned=pinned) for g in wanted)
        requested._cached = cached
        missing = [n for n in range(len(wanted)) if cached is None or not requested._read_kept(n, cached)]
        if missing:
            requested._decode(missing)
        return requested

    def _decode(self, numbers: Sequence[int]) -> None:
        """Begin to decode some of the geometries, by their numbers."""
        geometries, places = tuple(self._geometries[n] for n in numbers), tuple(self._places[n] for n in numbers)
        for files in _tasks(self._batch, self._pool.workers):
            task = Filling(self._root, files, geometries, places)
            self._decoding.append((tuple(numbers), self._pool.decode(task)))

    def _read_kept(self, number: int, cached: Cached) -> bool:
        """Begin to read the pixels of one geometry from the cache; False where it does not hold them."""
        size = image_bytes(self._geometries[number])
        path = cached.paths[self._geometries[number]]
        try:
            kept = cached.cache.find(path, self._count, size)
        except DamagedPixels as error:
            self._drop_kept(cached, path, str(error))
            return False
        if kept is None:
            return False
        step = 2 * _task_size(self._count, self._pool.workers)
        for first in range(0, self._count, step):
            hashes = kept.hashes[first : first + step]
            task = Reading(str(kept.path), first, hashes, size, self._places[number])
            self._reading.append((number, kept, self._pool.submit(read_kept, task)))
        return True

    @classmethod
    def made(
        cls,
        batch: Sequence[Stimulus],
        geometries: tuple[Geometry, ...],
        places: tuple[Pixels, ...],
        failed: dict[int, Failed],
    ) -> Self:
        """Return images that another process has decoded into these places."""
        there = cls(DecodePool(0), "", batch, geometries)
        there._places, there._failed = places, failed
        return there

    def unreadable(self) -> dict[int, str]:
        """Return position → reason for what cannot be decoded.

        Raises
        ------
        UserError
            Where a file could not be read for a reason that may pass (it is missing, the disk fails): nothing may be
            stored of that.
        """
        failed = {i: failure for i, failure in sorted(self._wait().items()) if failure.unreadable}
        passing = [failure.unreadable for failure in failed.values() if failure.transient]
        if passing:
            hint = "put the files back, or check the disk; then run the same command again: finished work is kept"
            raise all_problems("stimuli that cannot be read at the moment", dict.fromkeys(passing), hint)
        return {i: failure.unreadable for i, failure in failed.items()}

    def of(self, geometry: Geometry) -> Pixels:
        """Return all images that can be shown as one read-only array N×H×W×3; see ``shared``."""
        return self.shared(geometry).images

    def shared(self, geometry: Geometry) -> SharedImages:
        """Return all images that can be shown, shared by all observers.

        Raises
        ------
        UserError
            Where this geometry cannot be made of one of them.
        """
        if geometry not in self._shared:
            number = self._geometries.index(geometry)
            failed = self._wait()
            for _, failure in sorted(failed.items()):
                if number in failure.impossible:
                    raise UserError(failure.impossible[number])
            images = rows_of_block(self._places[number], geometry)[: self._count]
            hidden = [position for position, failure in failed.items() if failure.unreadable]
            self._shared[geometry] = SharedImages(np.delete(images, hidden, axis=0) if hidden else images)
        return self._shared[geometry]

    def give_back_copied(self) -> None:
        """Let the memory be used again once devices have copied all of it; later where they do not."""
        copies = [self._shared[geometry].copying for geometry in self._geometries if geometry in self._shared]
        if self._keeping or len(copies) < len(self._geometries) or not all(copies):
            return
        for wait in (wait for waits in copies for wait in waits):
            wait()
        self.give_back()

    def give_back(self) -> None:
        """Let the memory be used for the next pictures: nobody may look at these any more."""
        self._shared.clear()
        for future in self._keeping:
            if (error := future.exception()) is not None and self._cached is not None and not self._cached.cache.full:
                self._cached.cache.full = True
                self._pool.tell(f"pixels are not kept any more: {getattr(error, 'message', error)}")
        self._pool.give_back(self._places)
        self._places = ()

    def _wait(self) -> dict[int, Failed]:
        """Wait for all pixels; return what has none."""
        damaged: dict[int, tuple[Kept, str]] = {}
        for number, kept, future in self._reading:
            try:
                future.result()
                self._failed.update({position: Failed(reason) for position, reason in kept.unreadable.items()})
            except DamagedPixels as error:
                damaged.setdefault(number, (kept, str(error)))
        self._reading = []
        for number, (kept, reason) in damaged.items():
            assert self._cached is not None
            self._drop_kept(self._cached, kept.path, reason)
            self._decode([number])
        decoded: set[int] = set()
        for numbers, done in self._decoding:
            decoded |= set(numbers)
            for position, failure in done.result().items():
                impossible = {numbers[n]: reason for n, reason in failure.impossible.items()}
                known = self._failed.get(position, failure)
                self._failed[position] = replace(known, impossible={**known.impossible, **impossible})
        self._decoding = []
        if self._cached is not None and decoded:
            self._keep(decoded, self._cached)
        return self._failed

    def _drop_kept(self, cached: Cached, path: Path, reason: str) -> None:
        cached.cache.drop(path)
        self._pool.tell(f"damaged pixels in the cache are decoded again: {reason}")

    def _keep(self, numbers: Iterable[int], cached: Cached) -> None:
        """Begin to write what was decoded to the cache; nothing that may be otherwise the next time."""
        unreadable = {position: failure.unreadable for position, failure in self._failed.items() if failure.unreadable}
        if cached.cache.full or any(failure.transient for failure in self._failed.values()):
            return
        for number in numbers:
            if any(number in failure.impossible for failure in self._failed.values()):
                continue
            size = image_bytes(self._geometries[number])
            path = cached.paths[self._geometries[number]]
            if cached.cache.make_room(path, self._count * size):
                task = Keeping(str(path), self._count, size, self._places[number], unreadable)
                self._keeping.append(self._pool.submit(keep, task))
            elif cached.cache.full:
                limit = f"{cached.cache.most / 2**30:,.1f} GiB"
                self._pool.tell(
                    f"the cache {cached.cache.folder} is full ({limit}): what it lacks is decoded each time"
                )
                return


class Cached(NamedTuple):
    """Where the pixels of one shard are kept: the cache, and geometry → file."""

    cache: PixelCache
    paths: Mapping[Geometry, Path]


def _task_size(count: int, workers: int) -> int:
    """Return how many stimuli of a batch a worker is given at once: few enough for all workers to have some."""
    return max(1, min(LARGEST_TASK, count // max(workers, 1)))


Files = tuple[tuple[tuple[int, ...], tuple[Stimulus, ...]], ...]
"""For each file the positions and the stimuli that are made from it."""


def files_of(batch: Sequence[Stimulus]) -> Files:
    """Return the files of a batch, each with all that is made from it."""
    files: dict[tuple[str, ...], list[int]] = {}
    for position, stimulus in enumerate(batch):  # by the hash, too: it is compared with the first of each file only
        file = (stimulus.path or stimulus.id, stimulus.sha256, background_step(stimulus.recipe))
        files.setdefault(file, []).append(position)
    return tuple((tuple(positions), tuple(batch[i] for i in positions)) for positions in files.values())


def _tasks(batch: Sequence[Stimulus], workers: int) -> Iterable[Files]:
    """Cut a batch into tasks: all that is made from one file together, and enough tasks for all workers."""
    size = _task_size(len(batch), workers)
    task: list[tuple[tuple[int, ...], tuple[Stimulus, ...]]] = []
    count = 0
    for positions, stimuli in files_of(batch):
        task.append((positions, stimuli))
        count += len(positions)
        if count >= size:
            yield tuple(task)
            task, count = [], 0
    if task:
        yield tuple(task)


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
