"""The decoded images of one batch, for every geometry that is wanted of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Self

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.observers.preprocess import Geometry
from cuebench.responses.workers import DecodePool, Picture, Pixels, Task, pictures
from cuebench.types import Stimulus, StimulusSet

PROBE_TRIES = 16
"""Stimuli that are tried until one can be shown as the first picture."""


class BatchPictures:
    """Pictures that were asked for, and are waited for when they are needed."""

    def __init__(
        self, geometries: tuple[Geometry, ...], futures: list[tuple[list[int], Future[list[Picture]]]]
    ) -> None:
        self._geometries = geometries
        self._futures = futures
        self._made: dict[int, Picture] = {}
        self._stacked: dict[Geometry, Pixels] = {}

    @classmethod
    def request(
        cls, pool: DecodePool, root: str, batch: Sequence[Stimulus], geometries: Iterable[Geometry | None]
    ) -> Self:
        """Start decoding: one task for each file, whatever is made of it."""
        wanted = tuple(dict.fromkeys(g for g in geometries if g))
        if not wanted:
            return cls((), [])
        files: dict[str, list[int]] = {}
        for position, stimulus in enumerate(batch):
            files.setdefault(stimulus.path or stimulus.id, []).append(position)
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
        found = {i: picture for i, picture in sorted(self._wait().items()) if picture.unreadable}
        passing = [picture.unreadable for picture in found.values() if picture.transient]
        if passing:
            hint = "put the files back, or look after the disk; then run the same command again: finished work is kept"
            raise all_problems("stimuli that cannot be read at the moment", dict.fromkeys(passing), hint)
        return {i: picture.unreadable for i, picture in found.items()}

    def of(self, geometry: Geometry) -> Pixels:
        """Return all images that can be shown as one array N×H×W×3: one for all observers, so nobody may write to it.

        Raises
        ------
        UserError
            Where this geometry cannot be made of one of them.
        """
        if geometry not in self._stacked:
            self._stacked[geometry] = self._stack(geometry)
        return self._stacked[geometry]

    def _stack(self, geometry: Geometry) -> Pixels:
        column = self._geometries.index(geometry)
        shown = [picture.made[column] for _, picture in sorted(self._wait().items()) if not picture.unreadable]
        arrays = [made for made in shown if not isinstance(made, str)]
        if len(arrays) < len(shown):
            raise UserError(next(made for made in shown if isinstance(made, str)))
        stacked = np.stack(arrays) if arrays else np.zeros((0, *geometry.size, 3), dtype=np.uint8)
        stacked.flags.writeable = False
        return stacked

    def _wait(self) -> dict[int, Picture]:
        for positions, future in self._futures:
            self._made.update(zip(positions, future.result()))
        self._futures = []
        return self._made


def first_picture(stimuli: StimulusSet, geometry: Geometry) -> tuple[Stimulus, Pixels] | None:
    """Return the first stimulus that can be shown, and how; None where the first few are all unreadable."""
    for stimulus in stimuli.stimuli[:PROBE_TRIES]:
        (picture,) = pictures(Task(stimuli.root, (stimulus,), (geometry,)))
        if picture.unreadable:
            continue
        if isinstance(picture.made[0], str):
            raise UserError(picture.made[0])
        return stimulus, picture.made[0][None]
    return None
