"""The engine: show stimuli to observers, store what they answer.

It is a pipeline, cut into *shards* of stimuli, the units of storage. While one shard is being answered, the next ones
are decoded in worker processes, into shared memory and once for all observers that still need them, and the ones before
are checked and written by threads::

    workers: decode ──▶ shared memory ──▶ this thread: copy to the device, forward pass ──▶ threads: check, write

Observers are shown a shard in *batches* that suit their device. At any instruction the process may die: what is on disk
is whole shards, and the same command continues after them. Before it does, it asks for a few of the stored answers
again; where others come, the stored ones are set aside and everything is asked anew (``again.py``).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count, groupby, islice
from pathlib import Path
from typing import NamedTuple

from cuebench.arrays import Pixels
from cuebench.errors import UserError, all_problems
from cuebench.observers.preprocess import Geometry
from cuebench.places import RemotePath
from cuebench.processes import quick_turns
from cuebench.responses import kept_pixels
from cuebench.responses.again import SHARDS, Difference, Examiner, first_asked_twice, note_of
from cuebench.responses.device import Device, fitting_batch
from cuebench.responses.events import OnEvent
from cuebench.responses.job import Job, Pieces, Progress
from cuebench.responses.part import Part
from cuebench.responses.pictures import BatchPictures, Cached, DecodePool, first_picture, image_bytes
from cuebench.responses.pixel_cache import PixelCache
from cuebench.responses.store import SHARD, Columns, batches
from cuebench.types import Stimulus, StimulusSet

_OF_A_MODEL = (Exception, SystemExit)
"""What a broken model raises: it is a row of the result, the others go on. A model may even end Python."""
Folder = Path | RemotePath
PIXELS_IN_MEMORY = 1 << 30
"""Bytes of pixels that are decoded, or being decoded, at once; two shards are, whatever they take."""
MOST_SHARDS = 5
"""Shards between decoding and storing at once; more would only take memory."""
ANSWERED_AHEAD = 3
"""Shards whose answers are still on their way from the device, or to the disk, when the next one is answered."""
COMPILE_FROM = 300
"""Seconds of answers from which compiling a network pays: it takes a minute and makes it a quarter faster, or so."""
WRITERS = 4
"""Threads that check and write answers: mostly they wait for the disk."""


def collect(
    jobs: Sequence[Job],
    pool: DecodePool,
    *,
    shard_size: int = SHARD,
    pieces: Pieces | None = None,
    allow_unreadable: float = 0.01,
    on_event: OnEvent,
    progress: Progress | None = None,
    device: Device | None = None,
    cache: PixelCache | None = None,
    compiling: bool = False,
    seed: int = 0,
    part: Part | None = None,
    serve: Callable[[Sequence[Stream]], None] | None = None,
) -> Progress:
    """Answer everything that is not yet stored.

    Parameters
    ----------
    jobs : sequence of Job
        What to do; jobs that share a stimulus set are served by the same decoded images.
    pool : DecodePool
        Worker processes that decode.
    shard_size : int
        Stimuli in a stored file.
    pieces : Pieces, optional
        How many stimuli each observer is shown at once; chosen for its device where nothing is said.
    allow_unreadable : float
        Share of a stimulus set that may be unreadable before the run stops.
    on_event : callable
        Told of progress.
    progress : Progress, optional
        Where to record what was done: for a caller that wants to know it when an error ends the run.
    device : Device, optional
        Which observers are on the device already; those that do not fit together are asked in turns.
    cache : PixelCache, optional
        Where decoded pixels are kept for the next time.
    compiling : bool
        Compile networks whose answers take longer than ``COMPILE_FROM`` seconds.
    seed : int
        Draws the stored answers that are asked for again.
    part : Part, optional
        The shards that this process answers, where several share a run.
    serve : callable, optional
        Another engine: shows everything that is missing.
    """
    progress = progress or Progress(on_event)
    chosen = Pieces() if pieces is None else pieces
    shared = _Shared(shard_size, progress, chosen, device or Device(), cache, compiling, part)
    streams = []
    for _, group in groupby(sorted(jobs, key=_set_of), key=_set_of):
        jobs_of_set = list(group)
        stimuli = jobs_of_set[0].stimuli
        streams.append(Stream(stimuli, jobs_of_set, _Unreadable(stimuli, allow_unreadable, progress), shared))
    answers = sum(len(stream.jobs) * stream.size for stream in streams)
    progress.total = progress.done + answers + progress.to_come
    progress.tell("start", f"{answers:,} answers to collect")
    for stream in streams:
        stream.find_missing()
    examiner = Examiner(shared.device, shared.pieces, seed)
    outdated: dict[Folder, Folder] = {}
    for stream in streams:
        stream.ask_again(examiner, outdated)
    for stream in streams:
        stream.forget(outdated)
    for stream in streams:
        stream.check_pixels(pool, seed, outdated)
    for stream in streams:
        stream.probe()
    if serve is not None:
        serve(streams)
        return progress
    with quick_turns(), ThreadPoolExecutor(WRITERS, "cuebench-writer") as writers:
        for stream in streams:
            for fitting in shared.device.groups(stream.jobs):
                stream.serve_all(fitting, pool, writers)
    return progress


def _set_of(job: Job) -> str:
    return f"{job.stimuli.root}|{job.stimuli.fingerprint}"


class _Shared(NamedTuple):
    """What the streams of all stimulus sets have in common."""

    shard_size: int
    progress: Progress
    pieces: Pieces
    device: Device
    cache: PixelCache | None
    compiling: bool
    part: Part | None = None


class _Shard(NamedTuple):
    """Some stimuli that are being decoded, and the jobs that wait for them."""

    start: int
    stimuli: Sequence[Stimulus]
    jobs: list[Job]
    pictures: BatchPictures


class _Answered(NamedTuple):
    """A shard that has been shown: its answers are being checked and written."""

    shard: _Shard
    written: list[tuple[Job, Future[BaseException | None]]]


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
                self._progress.unreadable[f"{unreadable_of(self._stimuli.fingerprint)}{stimulus}"] = reason
                self._progress.tell("excluded", reason, stimulus=stimulus)

    def check(self) -> None:
        """Stop the run where more are unreadable than is allowed."""
        check_unreadable(self._stimuli, self._reasons.values(), self._allowed)


def unreadable_of(fingerprint: str) -> str:
    """Return what stands before the id of an unreadable stimulus: its set. Two sets may have stimuli of the same id."""
    return f"{fingerprint[:12]}/"


def check_unreadable(stimuli: StimulusSet, reasons: Collection[str], allowed: float) -> None:
    """Raise where more stimuli of a set are unreadable than the allowed share; ``reasons``: one for each of them."""
    size = len(stimuli)
    if len(reasons) > allowed * size:
        title = f"too many unreadable stimuli of {stimuli.name} (more than {allowed:.0%} of {size:,})"
        hint = "repair the files, or exclude and count them: --allow-unreadable 0.05 (a share)"
        raise all_problems(title, reasons, hint)


@dataclass
class Stream:
    """All jobs of one stimulus set."""

    stimuli: StimulusSet
    jobs: list[Job]
    unreadable: _Unreadable
    shared: _Shared
    missing: dict[Job, set[int]] = field(default_factory=dict)
    """Job → where the batches begin that it has not answered."""
    first_pictures: dict[Geometry, tuple[Stimulus, Pixels] | None] = field(default_factory=dict)
    """Geometry → the picture to probe with."""
    done: dict[Job, int] = field(default_factory=dict)
    """Job → how many of its stimuli have been asked, or are stored."""

    def shards(self) -> Iterator[tuple[int, Sequence[Stimulus]]]:
        """Yield the shards that this process is to answer: position of the first stimulus, stimuli."""
        part = self.shared.part
        for number, shard in enumerate(batches(self.stimuli.stimuli, self.shared.shard_size)):
            if part is None or part.holds(self.stimuli, number):
                yield shard

    @property
    def size(self) -> int:
        """How many stimuli these are."""
        return sum(len(stimuli) for _, stimuli in self.shards()) if self.shared.part else len(self.stimuli)

    def find_missing(self) -> None:
        """Look what is stored, and which stimuli could not be shown then; too many of them end the run at once."""
        for job in self.jobs:
            job.shards.open()
            self.missing[job] = set()
            for start, batch in self.shards():
                errors = job.shards.stored(batch)
                if errors is None:
                    self.missing[job].add(start)
                else:
                    self.unreadable.add(batch, errors)
        self.unreadable.check()

    def ask_again(self, examiner: Examiner, outdated: dict[Folder, Folder]) -> None:
        """Compare stored answers with those of now; add folders that are set aside to ``outdated``, with new names."""
        for job in [job for job in self.jobs if not job.observer.charges]:
            stored = {start: batch for start, batch in self.shards() if start not in self.missing[job]}
            stored.update(islice(self._of_other_parts(job), SHARDS))
            if not stored or job.shards.folder in outdated:
                continue
            try:
                verdict = examiner.examine(job, stored)
            except _OF_A_MODEL as error:
                self.drop(job, error)
                continue
            job.record.asked_again = verdict.difference.record()
            self.note(job, verdict.note)
            if not verdict.holds and self.shared.part:
                reason = f"{job.observer.name} does not answer as it did: {verdict.difference} when asked again"
                self.drop(job, UserError(reason, "processes that share a run set nothing aside: choose another --out"))
            elif not verdict.holds:
                outdated[job.shards.folder] = self._set_aside(job, verdict.difference, len(stored))

    def _of_other_parts(self, job: Job) -> Iterator[tuple[int, Sequence[Stimulus]]]:
        """Yield what other processes that share the run have stored: all parts must be of the same observer."""
        if self.shared.part:
            own = {start for start, _ in self.shards()}
            for start, batch in batches(self.stimuli.stimuli, self.shared.shard_size):
                if start not in own and job.shards.stored(batch) is not None:
                    yield start, batch

    def _set_aside(self, job: Job, difference: Difference, stored: int) -> Folder:
        """Rename the folder of answers that are not those of this observer any more."""
        folder = job.shards.folder
        aside = next(p for n in count(1) if not (p := folder.with_name(f"{folder.name}.stale-{n}")).exists())
        folder.rename(aside)  # type: ignore[arg-type]
        self.shared.progress.notice(
            f"{job.observer.name} does not answer as it did: {difference} when asked again. Its stored answers "
            f"({stored} {'file' if stored == 1 else 'files'} of {job.stimuli.name}) are set aside in "
            f"{aside.name}, everything is asked anew",
            observer=job.observer.name,
            set_aside=aside.name,
        )
        return aside

    def forget(self, outdated: Mapping[Folder, Folder]) -> None:
        """Ask everything anew whose folder was set aside, for whichever stimulus set that was found out."""
        for job in self.jobs:
            if job.shards.folder in outdated:
                job.shards.open()
                self.missing[job] = {start for start, _ in self.shards()}
                job.record.asked_again = {**job.record.asked_again, "set_aside": outdated[job.shards.folder].name}

    def check_pixels(self, pool: DecodePool, seed: int, outdated: Collection[Folder]) -> None:
        """Make a few kept pictures again; forget all of these stimuli if they differ or answers were set aside."""
        cache = self.shared.cache
        if cache is None:
            return
        set_aside = any(job.shards.folder in outdated for job in self.jobs)
        why = "because of that" if set_aside else self._differing(cache, pool, seed)
        ways = {job.geometry: job for job in self.jobs if job.geometry is not None}.values()
        shards = (job.decides_pixels(stimuli)[0] for _, stimuli in self.shards() for job in ways)
        if why and (forgotten := cache.forget(shards)):
            self.shared.progress.notice(kept_pixels.notice_of(forgotten, self.stimuli.name, why))

    def _differing(self, cache: PixelCache, pool: DecodePool, seed: int) -> str:
        """Say how kept pictures differ from those that are made now; empty: they do not."""
        waiting = [(stimuli, [j for j in self.jobs if start in self.missing[j]]) for start, stimuli in self.shards()]
        kept = [(stimuli, kept_pixels.paths(cache, stimuli, jobs)) for stimuli, jobs in waiting]
        draw = [seed, int(self.stimuli.fingerprint[:8], 16)]
        compared = kept_pixels.compare(cache, pool, self.stimuli.root, kept, draw)
        return str(compared) if compared.differing else ""

    def note(self, job: Job, note: str) -> None:
        """Let a note stand beside the scores of a job."""
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
                        pieces = self.shared.pieces
                        ask = partial(job.probe, *picture)
                        if not pieces.batch_size and job.observer.name not in pieces:
                            pieces[job.observer.name] = fitting_batch(job.observer, ask)
                        if self.shared.compiling:
                            self._compile(job, ask)
            except _OF_A_MODEL as error:
                self.drop(job, error)
            else:
                self.shared.progress.tell("probe", f"{job.observer.name} answers", observer=job.observer.name)

    def _compile(self, job: Job, ask: Callable[[int], object]) -> None:
        """Compile a network whose answers will take long enough; how long is measured."""
        count = self.shared.pieces.of(job.observer)
        ask(count)
        begin = time.perf_counter()
        ask(count)
        left = sum(len(stimuli) for start, stimuli in self.shards() if start in self.missing[job])
        seconds = (time.perf_counter() - begin) * left / count
        name = job.observer.name
        if job.needs != ("logits",) or seconds < COMPILE_FROM:
            why = f"{seconds:,.0f} s of answers, pays from {COMPILE_FROM}" if job.needs == ("logits",) else "features"
            self.shared.progress.tell("notice", f"{name} is not compiled ({why})")
            return
        for number in range(1 + len(job.others)):
            asked = job.on_device(number)
            compiled = asked.observer.compile(partial(asked.probe, *self._picture(job), count))
            self.shared.progress.tell("notice", f"{name} is {'compiled' if compiled else 'not compiled: it failed'}")

    def _picture(self, job: Job) -> tuple[Stimulus, Pixels]:
        assert job.geometry is not None
        picture = self.first_pictures[job.geometry]
        assert picture is not None
        return picture

    def drop(self, job: Job, error: BaseException) -> None:
        """Go on without a job: its observer has failed."""
        if job in self.jobs:
            self.leave(job)
            self.shared.progress.fail(job, error)

    def leave(self, job: Job) -> None:
        """Ask a job no more."""
        self.jobs.remove(job)
        self.shared.progress.total -= self.size - self.done.get(job, 0)

    def advance(self, job: Job, count: int) -> None:
        """Count stimuli that a job has been shown, or whose answers are stored."""
        self.done[job] = self.done.get(job, 0) + count
        self.shared.progress.done += count

    def serve_all(self, group: list[Job], pool: DecodePool, writers: ThreadPoolExecutor) -> None:
        """Show all shards to jobs whose observers fit the device together, decoding ahead and writing behind."""
        progress = self.shared.progress
        decoding: deque[_Shard] = deque()
        answered: deque[_Answered] = deque()
        geometries = [job.geometry for job in group]
        on_gpu = _on_gpu(group)
        behind = ANSWERED_AHEAD + max((len(job.others) for job in group), default=0)
        # A GPU copies pixels at once, and three shards ahead keep it busy; others look at them until they answer.
        ahead = max(1, self._shards_in_memory(group) - (2 if all(on_gpu) else behind))
        pool.empty()
        try:
            for start, stimuli in self.shards():
                remaining = [job for job in group if job in self.jobs]
                jobs = [job for job in remaining if start in self.missing[job]]
                for job in remaining:
                    if job not in jobs:
                        self.advance(job, len(stimuli))
                if len(jobs) < len(remaining):
                    progress.tell("batch", "already stored")
                if jobs:
                    wanted = [g for g, job in zip(geometries, group) if job in jobs]
                    pictures = BatchPictures.request(
                        pool, self.stimuli.root, stimuli, wanted, pinned=any(on_gpu), cached=self._cached(stimuli, jobs)
                    )
                    decoding.append(_Shard(start, stimuli, jobs, pictures))
                if len(decoding) > ahead:
                    answered.append(self._answer(decoding.popleft(), writers))
                if len(answered) > behind:
                    self._settle(answered.popleft())
            while decoding or answered:
                if decoding:
                    answered.append(self._answer(decoding.popleft(), writers))
                if len(answered) > behind or not decoding:
                    self._settle(answered.popleft())
        except BaseException:
            for job in group:
                job.observer.stop()
            raise
        finally:
            # After an error: no thread may write on while the caller says how far it came.
            for _, future in (pair for shard in answered for pair in shard.written):
                if not future.cancel():
                    future.exception()

    def _cached(self, stimuli: Sequence[Stimulus], jobs: Sequence[Job]) -> Cached | None:
        """Return where the pixels of a shard are kept, if anywhere."""
        cache = self.shared.cache
        paths = kept_pixels.paths(cache, stimuli, jobs) if cache else {}
        return Cached(cache, paths) if cache and paths else None

    def _shards_in_memory(self, group: Sequence[Job]) -> int:
        """Return how many shards may be between decoding and storing."""
        size = sum(image_bytes(g) for g in {job.geometry for job in group} if g) * self.shared.shard_size
        return max(2, min(MOST_SHARDS, PIXELS_IN_MEMORY // max(size, 1)))

    def _answer(self, shard: _Shard, writers: ThreadPoolExecutor) -> _Answered:
        """Show a shard to every observer that waits for it."""
        errors = shard.pictures.unreadable()
        self.unreadable.add(shard.stimuli, errors)
        self.unreadable.check()
        written = []
        for job in [job for job in shard.jobs if job in self.jobs]:
            hidden = errors if job.geometry else {}
            try:
                wait = self._submit(job, shard, hidden)
            except _OF_A_MODEL as error:
                self.drop(job, error)
                continue
            self.advance(job, len(hidden))
            written.append((job, writers.submit(_store, job, shard.stimuli, hidden, wait)))
        if all(_on_gpu(shard.jobs)):
            shard.pictures.give_back_copied()
        return _Answered(shard, written)

    def _submit(self, job: Job, shard: _Shard, hidden: Mapping[int, str]) -> Callable[[], Columns]:
        images = shard.pictures.shared(job.geometry) if job.geometry else None
        self.shared.device.admit(job.observer, job.others)

        def on_piece(count: int) -> None:
            self.advance(job, count)
            self.shared.progress.tell("batch", job.observer.name, observer=job.observer.name)

        asked = job.on_device(shard.start // self.shared.shard_size)
        wait = asked.submit(shard.stimuli, hidden, images, self.shared.pieces, on_piece)
        if shard.start or job.observer.charges:
            return wait
        columns = wait()
        pixels = None if images is None else images.images
        twice = first_asked_twice(job, shard.stimuli, hidden, pixels, columns, self.shared.pieces)
        self.note(job, note_of(twice) if twice.differing else "")
        return lambda: columns

    def _settle(self, answered: _Answered) -> None:
        """Wait until the answers to a shard are stored; then its pixels are forgotten."""
        for job, future in answered.written:
            error = future.result()
            if error is not None:
                self.drop(job, error)
        answered.shard.pictures.give_back()


def _on_gpu(jobs: Sequence[Job]) -> list[bool]:
    """Tell for each job that looks at pictures whether a GPU does."""
    return [str(job.observer.device).startswith("cuda") for job in jobs if job.geometry is not None]


def _store(
    job: Job, stimuli: Sequence[Stimulus], hidden: Mapping[int, str], wait: Callable[[], Columns]
) -> BaseException | None:
    """Wait for the answers to a shard and write them; return what was wrong with the answers."""
    try:
        columns = wait()
    except _OF_A_MODEL as error:
        return error
    job.shards.write(stimuli, columns, hidden)
    return None
