"""Are the pixels that the cache keeps still those that would be decoded? A few are made again before any is used.

No hash sees everything that decides a pixel, such as a data file that a cue reads. Pixels are the same to the bit
however often they are made, so the hash of each is compared with the one that was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.observers.preprocess import Geometry
from cuebench.responses.job import Job
from cuebench.responses.pictures import DecodePool, Task, image_bytes, pictures
from cuebench.responses.pixel_cache import DamagedPixels, PixelCache, hash_of_image
from cuebench.types import Stimulus

FILES = 4
"""Kept files of a stimulus set whose pictures are made again: the first, and others drawn by the seed."""
PICTURES = 2
"""Pictures of each that are."""


class Compared(NamedTuple):
    """How many kept pictures were made again, and how many of them are others now."""

    made: int = 0
    differing: int = 0

    def __str__(self) -> str:
        return f"{self.differing} of {self.made} pictures differ when made again"


def hashes_of(task: Task) -> list[str | None]:
    """Make one picture; return for each geometry its hash, or why it cannot be decoded; None: not at the moment."""
    (picture,) = pictures(task)
    if picture.unreadable:
        return [None if picture.transient else picture.unreadable] * len(task.geometries)
    return [p if isinstance(p, str) else hash_of_image(np.ascontiguousarray(p).data.cast("B"))
            for p in picture.by_geometry]  # fmt: skip


def paths(cache: PixelCache, stimuli: Sequence[Stimulus], jobs: Sequence[Job]) -> dict[Geometry, Path]:
    """Return geometry → file of the cache for the pixels of a shard."""
    files: dict[Geometry, Path] = {}
    for job in jobs:
        if job.geometry is not None and job.geometry not in files:
            files[job.geometry] = cache.path(*job.decides_pixels(stimuli))
    return files


def compare(
    cache: PixelCache,
    pool: DecodePool,
    root: str,
    shards: Sequence[tuple[Sequence[Stimulus], Mapping[Geometry, Path]]],
    draw: Sequence[int],
) -> Compared:
    """Make a few pictures of a few kept files again, in all their geometries, and compare them.

    Parameters
    ----------
    cache, pool
        Where pixels are kept, and who decodes.
    root : str
        Folder of the stimulus set.
    shards : sequence of (stimuli, geometry → file)
        What is to be shown, and where its pixels would lie.
    draw : sequence of int
        Seed.
    """
    there = [(s, kept) for s, files in shards if (kept := {g: p for g, p in files.items() if p.is_file()})]
    asked = []
    for number in sample(len(there), FILES, draw):
        stimuli, files = there[number]
        tables = {}
        for geometry, path in files.items():
            with suppress(DamagedPixels):  # found, and said, when it is read
                if table := cache.find(path, len(stimuli), image_bytes(geometry)):
                    tables[geometry] = table
        for position in sample(len(stimuli), PICTURES, draw) if tables else ():
            # In a worker: what cues compute may depend on the number of threads.
            task = Task(root, (stimuli[position],), tuple(tables))
            asked.append((position, tables, pool.submit(hashes_of, task)))
    made = differing = 0
    for position, tables, future in asked:
        if future.exception() is not None:  # it is raised again where the picture is decoded anew
            made, differing = made + 1, differing + 1
            continue
        for table, now in zip(tables.values(), future.result()):
            before = table.unreadable.get(position, table.hashes[position])
            made += now is not None
            differing += now is not None and now != before
    return Compared(made, differing)


def sample(count: int, most: int, seed: Sequence[int]) -> list[int]:
    """Return the first of ``count`` numbers and others that the seed draws, ``most`` in all, sorted."""
    drawn = np.random.default_rng(seed).permutation(np.arange(1, count))[: most - 1].tolist()
    return sorted([0, *drawn][: min(most, count)])


def notice_of(files: int, stimuli: str, why: str) -> str:
    """Return the notice that kept pixels were deleted."""
    count = f"{files} file{'s' * (files != 1)}"
    return f"the cache keeps pixels of {stimuli} no more ({count}), {why}: they are decoded anew"
