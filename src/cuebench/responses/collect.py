"""The engine: show stimuli to observers, store what they answer.

It streams. A batch of stimuli is decoded once in worker processes for all observers that still need it; each observer
answers, the answers become a shard, and the pixels are forgotten. At any instruction the process may die: what is on
disk is whole batches, and the same command goes on behind them.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.observers.base import Answers, Batch, Observer
from cuebench.observers.preprocess import Geometry, Preprocess
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.store import ShardFolder, batches
from cuebench.responses.table import Reduce
from cuebench.responses.workers import DecodePool, Pixels, Rendered, Task
from cuebench.types import Capability, Failure, Stimulus, StimulusSet

PREFETCH = 3
"""Batches decoded ahead of the slowest observer; bounds the memory."""


@dataclass(frozen=True, eq=False)
class Job:
    """One observer, one stimulus set, one way of showing it."""

    protocol: str
    observer: Observer
    stimuli: StimulusSet
    needs: tuple[Capability, ...]
    shards: ShardFolder
    preprocess: Preprocess | None = None
    view: str = ""
    reduce: Reduce | None = None

    @property
    def geometry(self) -> Geometry | None:
        """What the workers must make for this observer; None where it looks at no pixels."""
        return self.preprocess.geometry if self.preprocess else None


@dataclass
class Progress:
    """What the engine has done so far, and whom it tells."""

    on_event: OnEvent
    total: int = 0
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def tell(self, kind: Any, message: str = "", **fields: Any) -> None:
        """Send an event."""
        self.on_event(Event(kind, message, self.done, self.total, fields))

    def fail(self, job: Job, error: Exception) -> None:
        """Note a failed observer: the others go on."""
        reason = error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        trace = "" if isinstance(error, UserError) else "".join(traceback.format_exception(error))
        hint = error.hint if isinstance(error, UserError) else ""
        failure = Failure(job.observer.name, reason, job.protocol, {"traceback": trace, "hint": hint})
        self.failures.append(failure)
        self.tell("failed", f"{job.observer.name}: {reason}", observer=job.observer.name, reason=reason)


def collect(
    jobs: Sequence[Job],
    pool: DecodePool,
    *,
    batch_size: int = 32,
    allow_unreadable: float = 0.01,
    on_event: OnEvent,
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
    """
    progress = Progress(on_event, total=sum(len(job.stimuli) for job in jobs))
    progress.tell("start", f"{progress.total:,} answers to collect")
    alive = [job for job in jobs if _opened(job, batch_size, pool, progress)]
    pieces = _Pieces(batch_size)
    for _, shared in groupby(sorted(alive, key=_set_of), key=_set_of):
        _stream(list(shared), pool, batch_size, allow_unreadable, progress, pieces)
    return progress


def _set_of(job: Job) -> str:
    return f"{job.stimuli.root}|{job.stimuli.fingerprint}"


def _opened(job: Job, batch_size: int, pool: DecodePool, progress: Progress) -> bool:
    """Make the job's folder and try one stimulus before anything is spent; False: the observer failed."""
    job.shards.open()
    if all(job.shards.has(batch) for _, batch in batches(job.stimuli.stimuli, batch_size)):
        return True
    try:
        _probe(job, pool)
    except Exception as error:  # noqa: BLE001 - a broken model is a row of the result, the others go on
        progress.fail(job, error)
        progress.total -= len(job.stimuli)
        return False
    progress.tell("probe", f"{job.observer.name} answers", observer=job.observer.name)
    return True


def _probe(job: Job, pool: DecodePool) -> None:
    if job.geometry is None:
        return
    pixels = np.zeros((1, *job.geometry.size, 3), dtype=np.uint8)
    shown = job.stimuli.stimuli[:1]
    _reduced(job, _check(job, job.observer.respond(Batch(shown, pixels), job.needs), 1), shown)


def _stream(
    jobs: list[Job],
    pool: DecodePool,
    batch_size: int,
    allow_unreadable: float,
    progress: Progress,
    pieces: _Pieces,
) -> None:
    """Run all jobs of one stimulus set over its batches, decoding ahead."""
    stimuli = jobs[0].stimuli
    waiting: deque[tuple[int, Sequence[Stimulus], list[Job], _Pictures]] = deque()
    limit = allow_unreadable * len(stimuli)
    for start, batch in batches(stimuli.stimuli, batch_size):
        todo = [job for job in jobs if not job.shards.has(batch)]
        _skip_stored(jobs, todo, batch, progress)
        if todo:
            waiting.append((start, batch, todo, _Pictures.request(pool, stimuli.root, batch, todo)))
        if len(waiting) > PREFETCH:
            _serve(*waiting.popleft(), jobs, limit, progress, pieces)
    while waiting:
        _serve(*waiting.popleft(), jobs, limit, progress, pieces)


def _skip_stored(jobs: list[Job], todo: list[Job], batch: Sequence[Stimulus], progress: Progress) -> None:
    stored = len(jobs) - len(todo)
    if stored:
        progress.done += stored * len(batch)
        progress.tell("batch", "already stored")


def _serve(
    start: int,
    batch: Sequence[Stimulus],
    todo: list[Job],
    pictures: _Pictures,
    jobs: list[Job],
    limit: float,
    progress: Progress,
    pieces: _Pieces,
) -> None:
    """Let every waiting observer answer one batch."""
    errors = pictures.errors()
    _note_unreadable(batch, errors, limit, len(jobs[0].stimuli), progress)
    for job in todo:
        if job not in jobs:
            continue
        own_errors = errors if job.geometry else {}
        try:
            columns = _answer(job, batch, pictures, own_errors, pieces)
        except Exception as error:  # noqa: BLE001 - a broken model is a row of the result, the others go on
            jobs.remove(job)
            progress.total -= len(job.stimuli) - start
            progress.fail(job, error)
            continue
        job.shards.write(batch, columns, own_errors)
        progress.done += len(batch)
        progress.tell("batch", job.observer.name, observer=job.observer.name)


def _note_unreadable(
    batch: Sequence[Stimulus], errors: Mapping[int, str], limit: float, size: int, progress: Progress
) -> None:
    for position, why in errors.items():
        if batch[position].id not in progress.unreadable:
            progress.unreadable[batch[position].id] = why
            progress.tell("excluded", why, stimulus=batch[position].id)
    if len(progress.unreadable) > limit and progress.unreadable:
        title = f"too many unreadable stimuli (more than {limit / size:.0%} of {size:,})"
        hint = (
            "mend the files, or allow them with --allow-unreadable 0.05 (a share); they are then excluded and counted"
        )
        raise all_problems(title, progress.unreadable.values(), hint)


def _answer(
    job: Job, batch: Sequence[Stimulus], pictures: _Pictures, errors: Mapping[int, str], pieces: _Pieces
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the columns of a shard, with the column ``stimulus`` = position in the batch."""
    shown = [i for i in range(len(batch)) if i not in errors]
    images = pictures.of(job.geometry, shown) if job.geometry else None
    parts = list(_in_pieces(job, [batch[i] for i in shown], images, pieces))
    joined = _join(parts)
    rows = joined.pop("stimulus")
    return {"stimulus": np.array(shown, dtype=np.int32)[rows.astype(np.intp)], **joined}


def _in_pieces(
    job: Job, stimuli: list[Stimulus], images: Pixels | None, pieces: _Pieces
) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Answer in pieces that fit the memory: halve on out-of-memory, and remember for the next batch."""
    start = 0
    while start < len(stimuli) or not start:
        size = pieces[job.observer.name]
        piece = stimuli[start : start + size]
        pixels = None if images is None else images[start : start + size]
        try:
            answers = job.observer.respond(Batch(piece, pixels), job.needs) if piece else {}
        except (MemoryError, RuntimeError) as error:
            if len(piece) == 1 or not _out_of_memory(error):
                raise
            pieces[job.observer.name] = len(piece) // 2
            _release_memory()
            continue
        yield _reduced(job, _check(job, answers, len(piece), offset=start), piece, offset=start)
        start += max(len(piece), 1)


class _Pieces(dict[str, int]):
    """Observer → how many stimuli it is shown at once: the batch size until it runs out of memory."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, observer: str) -> int:
        return self._most


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()


def _release_memory() -> None:
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _check(job: Job, answers: Answers, count: int, offset: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Refuse answers that are not what was asked for; add the column ``stimulus`` where each row is one stimulus."""
    columns = {name: np.asarray(values) for name, values in answers.items()}
    missing = [n for n in job.needs if n not in columns] if count else []
    if missing:
        raise UserError(f"{job.observer.name} answered without {', '.join(missing)}; it gave {', '.join(columns)}")
    columns.setdefault("stimulus", np.arange(count, dtype=np.int32))
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise UserError(
            f"{job.observer.name} answered with columns of different length: {lengths}, for {count} stimuli"
        )
    for name in [n for n in columns if n.partition(":")[0] in ("logits", "features")]:
        if not np.isfinite(columns[name]).all():
            raise UserError(
                f"{job.observer.name} answered with NaN or infinite {name}",
                "check its preprocessing and precision (--precision float32)",
            )
    columns["stimulus"] = columns["stimulus"] + offset
    return columns


def _reduced(
    job: Job, columns: dict[str, np.ndarray[Any, Any]], piece: Sequence[Stimulus], offset: int = 0
) -> dict[str, np.ndarray[Any, Any]]:
    """Replace answers by the summary that the protocol keeps of them."""
    if job.reduce is None or not piece:
        return columns
    rows = columns.pop("stimulus")
    shown = [piece[i] for i in rows - offset]
    return {**job.reduce(columns, shown), "stimulus": rows}


def _join(parts: list[dict[str, np.ndarray[Any, Any]]]) -> dict[str, np.ndarray[Any, Any]]:
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


class _Pictures:
    """The decoded images of one batch, for every geometry that is wanted of them."""

    def __init__(self, geometries: tuple[Geometry, ...], futures: list[tuple[list[int], Future[Rendered]]]) -> None:
        self._geometries = geometries
        self._futures = futures
        self._made: dict[int, list[Pixels] | str] | None = None

    @classmethod
    def request(cls, pool: DecodePool, root: str, batch: Sequence[Stimulus], jobs: Sequence[Job]) -> _Pictures:
        """Start decoding: one task for each file, whatever is made of it."""
        geometries = tuple(dict.fromkeys(job.geometry for job in jobs if job.geometry))
        if not geometries:
            return cls((), [])
        files: dict[str, list[int]] = {}
        for position, stimulus in enumerate(batch):
            files.setdefault(stimulus.path or stimulus.id, []).append(position)
        tasks = ((where, Task(root, tuple(batch[i] for i in where), geometries)) for where in files.values())
        return cls(geometries, [(where, pool.decode(task)) for where, task in tasks])

    def _wait(self) -> dict[int, list[Pixels] | str]:
        if self._made is None:
            self._made = {}
            for positions, future in self._futures:
                self._made.update(zip(positions, future.result()))
        return self._made

    def errors(self) -> dict[int, str]:
        """Return position → reason for what could not be decoded."""
        return {i: made for i, made in sorted(self._wait().items()) if isinstance(made, str)}

    def of(self, geometry: Geometry, positions: Sequence[int]) -> Pixels:
        """Return the images at these positions as one array N×H×W×3."""
        column = self._geometries.index(geometry)
        made = self._wait()
        arrays = [pixels[column] for i in positions if not isinstance(pixels := made[i], str)]
        return np.stack(arrays) if arrays else np.zeros((0, *geometry.size, 3), dtype=np.uint8)
