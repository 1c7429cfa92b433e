"""The engine: show stimuli to observers, store what they answer.

It streams. A batch of stimuli is decoded once in worker processes for all observers that still need it; each observer
answers, the answers become a shard, and the pixels are forgotten. At any instruction the process may die: what is on
disk is whole batches, and the same command goes on behind them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from cuebench.observers.preprocess import Geometry
from cuebench.responses.answers import Columns, Pieces, answer, answer_one
from cuebench.responses.device import Device
from cuebench.responses.events import OnEvent
from cuebench.responses.job import Job, Progress
from cuebench.responses.pictures import BatchPictures, first_picture
from cuebench.responses.store import batches
from cuebench.responses.unreadable import Tally
from cuebench.responses.workers import DecodePool, Pixels
from cuebench.types import Stimulus, StimulusSet

PREFETCH = 3
"""Batches decoded ahead of the slowest observer; bounds the memory."""

__all__ = ["Job", "Progress", "collect"]


def collect(
    jobs: Sequence[Job],
    pool: DecodePool,
    *,
    batch_size: int = 32,
    allow_unreadable: float = 0.01,
    on_event: OnEvent,
    progress: Progress | None = None,
    device: Device | None = None,
) -> Progress:
    """Answer everything that is not yet stored.

    Parameters
    ----------
    jobs : sequence of Job
        What to do; jobs that share a stimulus set are served by the same decoded images.
    pool : DecodePool
        Who decodes.
    batch_size : int
        Stimuli in a batch and in a shard. An observer that runs out of memory gets smaller pieces of a batch; the
        shards stay the same.
    allow_unreadable : float
        Share of a stimulus set that may be unreadable before the run stops.
    on_event : callable
        Told of progress.
    progress : Progress, optional
        Where to note what was done: for a caller that wants to know it when an error ends the run.
    device : Device, optional
        Who is on the device already; observers that do not fit together are asked in turns.
    """
    progress = progress or Progress(on_event)
    progress.total = sum(len(job.stimuli) for job in jobs)
    progress.tell("start", f"{progress.total:,} answers to collect")
    shared = _Shared(batch_size, progress, Pieces(batch_size), device or Device())
    streams = []
    for _, own in groupby(sorted(jobs, key=_set_of), key=_set_of):
        jobs_of_set = list(own)
        tally = Tally(jobs_of_set[0].stimuli, allow_unreadable, progress)
        streams.append(_Stream.survey(jobs_of_set, tally, shared))
    for stream in streams:
        stream.probe()
    for stream in streams:
        stream.run(pool)
    return progress


def _set_of(job: Job) -> str:
    return f"{job.stimuli.root}|{job.stimuli.fingerprint}"


class _Waiting(NamedTuple):
    """A batch that is being decoded, and who waits for it."""

    start: int
    batch: Sequence[Stimulus]
    jobs: list[Job]
    pictures: BatchPictures


class _Shared(NamedTuple):
    """What the streams of all stimulus sets have in common."""

    batch_size: int
    progress: Progress
    pieces: Pieces
    device: Device


@dataclass
class _Stream:
    """All jobs of one stimulus set."""

    stimuli: StimulusSet
    jobs: list[Job]
    tally: Tally
    shared: _Shared
    missing: dict[Job, set[int]] = field(default_factory=dict)
    """Job → where the batches begin that it has not answered."""
    firsts: dict[Geometry, tuple[Stimulus, Pixels] | None] = field(default_factory=dict)
    """Geometry → the picture to probe with."""

    @classmethod
    def survey(cls, jobs: list[Job], tally: Tally, shared: _Shared) -> _Stream:
        """Look what is stored, and which stimuli could not be shown then; too many of them end the run at once."""
        stream = cls(jobs[0].stimuli, jobs, tally, shared)
        for job in jobs:
            job.shards.open()
            stream.missing[job] = set(stream._not_stored(job))
        tally.check()
        return stream

    def _not_stored(self, job: Job) -> Iterator[int]:
        for start, batch in batches(self.stimuli.stimuli, self.shared.batch_size):
            errors = job.shards.stored(batch)
            if errors is None:
                yield start
            else:
                self.tally.note(batch, errors)

    def probe(self) -> None:
        """Show every observer one stimulus before anything is spent; those that fail are done with."""
        for job in [job for job in self.jobs if self.missing[job]]:
            try:
                self._try(job)
            except Exception as error:  # noqa: BLE001 - a broken model is a row of the result, the others go on
                self._drop(job, 0, error)
            else:
                self.shared.progress.tell("probe", f"{job.observer.name} answers", observer=job.observer.name)

    def _try(self, job: Job) -> None:
        if job.geometry is None:
            return
        if job.geometry not in self.firsts:
            self.firsts[job.geometry] = first_picture(self.stimuli, job.geometry)
        found = self.firsts[job.geometry]
        if found:
            self.shared.device.admit(job.observer)
            answer_one(job, *found)

    def _drop(self, job: Job, start: int, error: Exception) -> None:
        self.jobs.remove(job)
        self.shared.progress.total -= len(job.stimuli) - start
        self.shared.progress.fail(job, error)

    def run(self, pool: DecodePool) -> None:
        """Serve all jobs: together where they fit the device, else group by group."""
        for group in self.shared.device.groups(self.jobs):
            self._run(group, pool)

    def _run(self, group: list[Job], pool: DecodePool) -> None:
        """Serve all batches, decoding ahead."""
        waiting: deque[_Waiting] = deque()
        for start, batch in batches(self.stimuli.stimuli, self.shared.batch_size):
            alive = [job for job in group if job in self.jobs]
            jobs = [job for job in alive if start in self.missing[job]]
            self._skip_stored(len(alive) - len(jobs), batch)
            if jobs:
                geometries = [job.geometry for job in jobs]
                pictures = BatchPictures.request(pool, self.stimuli.root, batch, geometries)
                waiting.append(_Waiting(start, batch, jobs, pictures))
            if len(waiting) > PREFETCH:
                self._serve(waiting.popleft())
        while waiting:
            self._serve(waiting.popleft())

    def _skip_stored(self, stored: int, batch: Sequence[Stimulus]) -> None:
        if stored:
            self.shared.progress.done += stored * len(batch)
            self.shared.progress.tell("batch", "already stored")

    def _serve(self, one: _Waiting) -> None:
        """Let every waiting observer answer one batch."""
        errors = one.pictures.unreadable()
        self.tally.note(one.batch, errors)
        self.tally.check()
        for job in [job for job in one.jobs if job in self.jobs]:
            hidden = errors if job.geometry else {}
            try:
                columns = self._answer(job, one, hidden)
            except Exception as error:  # noqa: BLE001 - a broken model is a row of the result, the others go on
                self._drop(job, one.start, error)
                continue
            job.shards.write(one.batch, columns, hidden)
            self.shared.progress.done += len(one.batch)
            self.shared.progress.tell("batch", job.observer.name, observer=job.observer.name)

    def _answer(self, job: Job, one: _Waiting, hidden: Collection[int]) -> Columns:
        images = one.pictures.of(job.geometry) if job.geometry else None
        self.shared.device.admit(job.observer)
        return answer(job, one.batch, hidden, images, self.shared.pieces)
