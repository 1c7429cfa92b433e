"""The engine: show stimuli to observers, store what they answer.

It streams. A batch of stimuli is decoded once in worker processes for all observers that still need it; each observer
answers, the answers become a shard, and the pixels are forgotten. At any instruction the process may die: what is on
disk is whole batches, and the same command continues after them. Before it does, it asks for a few of the stored
answers again; where others come, the stored ones are set aside and everything is asked anew (``again.py``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from pathlib import Path
from typing import NamedTuple

from cuebench.arrays import Pixels
from cuebench.errors import all_problems
from cuebench.observers.preprocess import Geometry
from cuebench.responses.again import Difference, Examiner, first_asked_twice, note_of
from cuebench.responses.device import Device
from cuebench.responses.events import OnEvent
from cuebench.responses.job import Job, Pieces, Progress
from cuebench.responses.pictures import BatchPictures, DecodePool, first_picture
from cuebench.responses.store import batches
from cuebench.types import Stimulus, StimulusSet

_OF_A_MODEL = (Exception, SystemExit)
"""What a broken model raises: it is a row of the result, the others go on. A model may even end Python."""
PREFETCH = 3
"""Batches decoded ahead of the slowest observer; bounds the memory."""


def collect(
    jobs: Sequence[Job],
    pool: DecodePool,
    *,
    batch_size: int = 32,
    allow_unreadable: float = 0.01,
    on_event: OnEvent,
    progress: Progress | None = None,
    device: Device | None = None,
    seed: int = 0,
) -> Progress:
    """Answer everything that is not yet stored.

    Parameters
    ----------
    jobs : sequence of Job
        What to do; jobs that share a stimulus set are served by the same decoded images.
    pool : DecodePool
        Worker processes that decode.
    batch_size : int
        Stimuli in a batch and in a shard. An observer that runs out of memory gets smaller pieces of a batch; the
        shards stay the same.
    allow_unreadable : float
        Share of a stimulus set that may be unreadable before the run stops.
    on_event : callable
        Told of progress.
    progress : Progress, optional
        Where to record what was done: for a caller that wants to know it when an error ends the run.
    device : Device, optional
        Which observers are on the device already; those that do not fit together are asked in turns.
    seed : int
        Draws the stored answers that are asked for again.
    """
    progress = progress or Progress(on_event)
    progress.total = sum(len(job.stimuli) for job in jobs)
    progress.tell("start", f"{progress.total:,} answers to collect")
    shared = _Shared(batch_size, progress, Pieces(batch_size), device or Device())
    streams = []
    for _, group in groupby(sorted(jobs, key=_set_of), key=_set_of):
        jobs_of_set = list(group)
        stimuli = jobs_of_set[0].stimuli
        streams.append(_Stream(stimuli, jobs_of_set, _Unreadable(stimuli, allow_unreadable, progress), shared))
    for stream in streams:
        stream.find_missing()
    examiner = Examiner(shared.device, shared.pieces, seed)
    outdated: dict[Path, Path] = {}
    for stream in streams:
        stream.ask_again(examiner, outdated)
    for stream in streams:
        stream.forget(outdated)
    for stream in streams:
        stream.probe()
    for stream in streams:
        for fitting in shared.device.groups(stream.jobs):
            stream.serve_all(fitting, pool)
    return progress


def _set_of(job: Job) -> str:
    return f"{job.stimuli.root}|{job.stimuli.fingerprint}"


class _Shared(NamedTuple):
    """What the streams of all stimulus sets have in common."""

    batch_size: int
    progress: Progress
    pieces: Pieces
    device: Device


class _Waiting(NamedTuple):
    """A batch that is being decoded, and the jobs that wait for it."""

    start: int
    batch: Sequence[Stimulus]
    jobs: list[Job]
    pictures: BatchPictures


class _Unreadable:
    """The unreadable stimuli of one set: those of stored answers too, so that running again never starts at zero."""

    def __init__(self, stimuli: StimulusSet, allowed: float, progress: Progress) -> None:
        self._stimuli, self._allowed, self._progress = stimuli, allowed, progress
        self._reasons: dict[str, str] = {}

    def add(self, batch: Sequence[Stimulus], errors: Mapping[int, str]) -> None:
        """Count what cannot be shown of a batch, each stimulus once."""
        for position, reason in errors.items():
            stimulus = batch[position].id
            if stimulus not in self._reasons:
                self._reasons[stimulus] = reason
                self._progress.unreadable[stimulus] = reason
                self._progress.tell("excluded", reason, stimulus=stimulus)

    def check(self) -> None:
        """Stop the run where more are unreadable than is allowed."""
        size = len(self._stimuli)
        if len(self._reasons) > self._allowed * size:
            title = f"too many unreadable stimuli of {self._stimuli.name} (more than {self._allowed:.0%} of {size:,})"
            hint = "repair the files, or exclude and count them: --allow-unreadable 0.05 (a share)"
            raise all_problems(title, self._reasons.values(), hint)


@dataclass
class _Stream:
    """All jobs of one stimulus set."""

    stimuli: StimulusSet
    jobs: list[Job]
    unreadable: _Unreadable
    shared: _Shared
    missing: dict[Job, set[int]] = field(default_factory=dict)
    """Job → where the batches begin that it has not answered."""
    first_pictures: dict[Geometry, tuple[Stimulus, Pixels] | None] = field(default_factory=dict)
    """Geometry → the picture to probe with."""

    def find_missing(self) -> None:
        """Look what is stored, and which stimuli could not be shown then; too many of them end the run at once."""
        for job in self.jobs:
            job.shards.open()
            self.missing[job] = set()
            for start, batch in batches(self.stimuli.stimuli, self.shared.batch_size):
                errors = job.shards.stored(batch)
                if errors is None:
                    self.missing[job].add(start)
                else:
                    self.unreadable.add(batch, errors)
        self.unreadable.check()

    def ask_again(self, examiner: Examiner, outdated: dict[Path, Path]) -> None:
        """Compare stored answers with those of now; add folders that are set aside to ``outdated``, with new names."""
        for job in list(self.jobs):
            all_batches = batches(self.stimuli.stimuli, self.shared.batch_size)
            stored = {start: batch for start, batch in all_batches if start not in self.missing[job]}
            if not stored or job.shards.folder in outdated:
                continue
            try:
                verdict = examiner.examine(job, stored)
            except _OF_A_MODEL as error:
                self._drop(job, 0, error)
                continue
            job.record.asked_again = verdict.difference.record()
            self._note(job, verdict.note)
            if not verdict.holds:
                outdated[job.shards.folder] = self._set_aside(job, verdict.difference, len(stored))

    def _set_aside(self, job: Job, difference: Difference, stored: int) -> Path:
        """Rename the folder of answers that are not those of this observer any more."""
        folder = job.shards.folder
        aside = next(p for n in count(1) if not (p := folder.with_name(f"{folder.name}.stale-{n}")).exists())
        folder.rename(aside)
        self.shared.progress.notice(
            f"{job.observer.name} does not answer as it did: {difference} when asked again. Its stored answers "
            f"({stored} {'batch' if stored == 1 else 'batches'} of {job.stimuli.name}) are set aside in "
            f"{aside.name}, everything is asked anew",
            observer=job.observer.name,
            set_aside=aside.name,
        )
        return aside

    def forget(self, outdated: Mapping[Path, Path]) -> None:
        """Ask everything anew whose folder was set aside, for whichever stimulus set that was found out."""
        for job in self.jobs:
            if job.shards.folder in outdated:
                job.shards.open()
                self.missing[job] = {start for start, _ in batches(self.stimuli.stimuli, self.shared.batch_size)}
                job.record.asked_again = {**job.record.asked_again, "set_aside": outdated[job.shards.folder].name}

    def _note(self, job: Job, note: str) -> None:
        if note and note not in job.record.notes:
            job.record.notes = (*job.record.notes, note)
            self.shared.progress.notice(f"{job.observer.name}: {note}", observer=job.observer.name)

    def probe(self) -> None:
        """Show every observer one stimulus before anything is spent; those that fail are dropped."""
        for job in [job for job in self.jobs if self.missing[job]]:
            try:
                if job.geometry is not None:
                    if job.geometry not in self.first_pictures:
                        self.first_pictures[job.geometry] = first_picture(self.stimuli, job.geometry)
                    picture = self.first_pictures[job.geometry]
                    if picture:
                        self.shared.device.admit(job.observer)
                        job.probe(*picture)
            except _OF_A_MODEL as error:
                self._drop(job, 0, error)
            else:
                self.shared.progress.tell("probe", f"{job.observer.name} answers", observer=job.observer.name)

    def _drop(self, job: Job, start: int, error: BaseException) -> None:
        self.jobs.remove(job)
        self.shared.progress.total -= len(job.stimuli) - start
        self.shared.progress.fail(job, error)

    def serve_all(self, group: list[Job], pool: DecodePool) -> None:
        """Serve all batches to jobs whose observers fit the device together, decoding ahead."""
        progress = self.shared.progress
        waiting: deque[_Waiting] = deque()
        for start, batch in batches(self.stimuli.stimuli, self.shared.batch_size):
            remaining = [job for job in group if job in self.jobs]
            jobs = [job for job in remaining if start in self.missing[job]]
            if len(jobs) < len(remaining):
                progress.done += (len(remaining) - len(jobs)) * len(batch)
                progress.tell("batch", "already stored")
            if jobs:
                geometries = [job.geometry for job in jobs]
                pictures = BatchPictures.request(pool, self.stimuli.root, batch, geometries)
                waiting.append(_Waiting(start, batch, jobs, pictures))
            if len(waiting) > PREFETCH:
                self._serve(waiting.popleft())
        while waiting:
            self._serve(waiting.popleft())

    def _serve(self, decoded: _Waiting) -> None:
        """Let every waiting observer answer one batch, and store the answers."""
        errors = decoded.pictures.unreadable()
        self.unreadable.add(decoded.batch, errors)
        self.unreadable.check()
        for job in [job for job in decoded.jobs if job in self.jobs]:
            hidden = errors if job.geometry else {}
            try:
                images = decoded.pictures.of(job.geometry) if job.geometry else None
                self.shared.device.admit(job.observer)
                columns = job.answer(decoded.batch, hidden, images, self.shared.pieces)
                if decoded.start == 0:
                    twice = first_asked_twice(job, decoded.batch, hidden, images, columns, self.shared.pieces)
                    self._note(job, note_of(twice) if twice.differing else "")
            except _OF_A_MODEL as error:
                self._drop(job, decoded.start, error)
                continue
            job.shards.write(decoded.batch, columns, hidden)
            self.shared.progress.done += len(decoded.batch)
            self.shared.progress.tell("batch", job.observer.name, observer=job.observer.name)
