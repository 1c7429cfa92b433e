"""Scoring one observer after the other, or several at once in processes of their own (``protocols.base.ByObserver``).

What a protocol measures of an observer comes back packed: without its answers, and without the stimuli, which every
process reads for itself. It takes this way in one process too, so that the number of processes changes nothing.
"""

from __future__ import annotations

import ctypes
import io
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, missing_members
from cuebench.observers.chat.answers import reading_notes
from cuebench.places import RemotePath
from cuebench.processes import ProcessPool, WorkerDied
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions
from cuebench.registry import protocols
from cuebench.responses.job import JobRecord
from cuebench.responses.store import IN_MEMORY, Columns, Memory, Shards, batches, gather, gather_condensed
from cuebench.responses.table import Reduce, Responses
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_stimuli
from cuebench.types import Stimulus, StimulusSet

PROBABILITIES = "its answers are probabilities (softmax is in the model): their logarithms are scored as logits"
"""Note of an observer whose answers are no logits."""
SMALL = 50_000
"""Answers (stimuli × observers) below which starting processes takes longer than it saves."""


class Manifests(NamedTuple):
    """Where a run lies: its folder, the SHA-256 of its files as its record has them, and the place of its answers."""

    folder: Path
    files: tuple[tuple[str, str], ...]
    answers: Path | RemotePath

    @classmethod
    def of(cls, folder: Path, record: RunRecord) -> Manifests:
        """Return the manifests of a run."""
        return cls(folder, tuple(record.files.items()), record.options.responses_in(folder))

    def read(self, name: str) -> StimulusSet:
        """Read a manifest, once in each process."""
        return _read_stimuli(self, name)


@lru_cache(maxsize=8)
def _read_stimuli(manifests: Manifests, name: str) -> StimulusSet:
    return read_stimuli(manifests.folder, name, RunRecord({}, files=dict(manifests.files)))


@dataclass(frozen=True)
class Work:
    """What is to be done for one observer.

    Parameters
    ----------
    manifests : Manifests
        Of the run.
    job : JobRecord
        The observer.
    shard_size : int
        Stimuli in a stored file.
    options : ScoreOptions
        Of the protocol.
    missing : tuple of range
        Stimuli that are not answered yet, a shard each.
    shared : tuple of Shown
        What was shown to all observers where only the stimuli in all of them are scored; else empty.
    memory : int
        Bytes of columns that may be kept in memory.
    """

    manifests: Manifests
    job: JobRecord
    shard_size: int
    options: ScoreOptions
    missing: tuple[range, ...] = ()
    shared: tuple[Shown, ...] = ()
    memory: int = IN_MEMORY

    @property
    def shown(self) -> Shown:
        """The stimuli that are answered."""
        return Shown(self.job.stimuli, self.missing)

    @property
    def selection(self) -> Selection:
        """The stimuli that are scored."""
        return _select(self.manifests, self.shown, self.shared)


class Shown(NamedTuple):
    """The stimuli of a manifest that an observer has answered: all but those that are missing."""

    manifest: str
    missing: tuple[range, ...] = ()

    def ids(self, manifests: Manifests) -> frozenset[str]:
        """Return their ids."""
        missing = {position for positions in self.missing for position in positions}
        return frozenset(s.id for i, s in enumerate(manifests.read(self.manifest)) if i not in missing)


class Selection(NamedTuple):
    """The stimuli of a manifest that are scored, and the place of each stimulus among them (−1: it is left out)."""

    stimuli: StimulusSet
    place: Array | None = None


@lru_cache(maxsize=8)
def _select(manifests: Manifests, shown: Shown, shared: tuple[Shown, ...]) -> Selection:
    stimuli = manifests.read(shown.manifest)
    ids = _shared_ids(manifests, shared) if shared else shown.ids(manifests)
    keep = [i for i, s in enumerate(stimuli) if s.id in ids]
    if len(keep) == len(stimuli):
        return Selection(stimuli)
    place = np.full(len(stimuli), -1, np.intp)
    place[keep] = np.arange(len(keep))
    why = f"only the {len(keep):,} of {len(stimuli):,} stimuli that {'all observers saw' if shared else 'are answered'}"
    return Selection(stimuli.only([stimuli.stimuli[i] for i in keep], why), place)


@lru_cache(maxsize=2)
def _shared_ids(manifests: Manifests, shared: tuple[Shown, ...]) -> frozenset[str]:
    return frozenset.intersection(*(shown.ids(manifests) for shown in shared))


def forget_manifests() -> None:
    """Forget what was read of manifests: the files may be others the next time."""
    for cached in (_read_stimuli, _select, _shared_ids):
        cached.cache_clear()


def works_of(
    manifests: Manifests,
    jobs: Sequence[JobRecord],
    shard_size: int,
    options: ScoreOptions,
    *,
    common: bool = False,
    unfinished: bool = False,
) -> list[Work]:
    """Return what is to be done for observers.

    Parameters
    ----------
    manifests, jobs, shard_size, options
        As in ``Work``.
    common : bool
        Only the stimuli that all observers have answered.
    unfinished : bool
        Shards that are not there yet are left out; by default they are a failure of the observer.

    Raises
    ------
    UserError
        With ``common``, where there are no such stimuli.
    """
    works = [
        Work(manifests, job, shard_size, options, _missing(manifests, job, shard_size) if unfinished else ())
        for job in jobs
    ]
    shared = tuple(sorted({work.shown for work in works}, key=repr)) if common else ()
    if shared and not _shared_ids(manifests, shared):
        observers = ", ".join(job.observer for job in jobs)
        raise UserError(f"no stimulus was shown to all of {observers}", "score without --common (--all)")
    return [replace(work, shared=shared) for work in works]


def _missing(manifests: Manifests, job: JobRecord, shard_size: int) -> tuple[range, ...]:
    """Return the stimuli whose shards are not there; none where no shard is: that is a failure."""
    shards = Shards.of_key(manifests.answers / job.folder, job.key)
    parts = list(batches(manifests.read(job.stimuli).stimuli, shard_size))
    missing = tuple(range(start, start + len(part)) for start, part in parts if not shards.path(part).is_file())
    return missing if len(missing) < len(parts) else ()


# ------------------------------------------------------------------------------------------ the answers of one observer


class Unreadable(Exception):
    """Stored answers that cannot be read, with the message and the hint for the user."""


def read_responses(work: Work, shards: Shards, memory: Memory, condense: Reduce | None = None) -> Responses:
    """Read the stored answers of one observer.

    Raises
    ------
    Unreadable
        Where an answer is missing or damaged.
    """
    job = work.job
    manifest = work.manifests.read(job.stimuli)
    labels = labels_of(job)
    classes = None if labels is None else len(labels)
    columns, excluded = _columns(shards, work, memory, condense, classes)
    # How words were read is known from the answers alone, whichever observer gave them.
    read_by, decisions = (columns.get(name, np.empty(0)).tolist() for name in ("read_by", "decisions"))
    in_words = reading_notes(read_by, decisions) if read_by else ()
    responses = Responses(
        observer=job.observer,
        kind=job.kind,  # type: ignore[arg-type]
        stimuli=manifest,
        stimulus=columns.pop("stimulus"),
        columns=columns,
        labels=labels,
        view=job.view,
        excluded=excluded,
        notes=(
            *job.notes,
            *in_words,
            *[PROBABILITIES] * bool(shards.probabilities),
            *missing_members(manifest.targets, labels),
        ),
        baseline_of=job.baseline_of,
    )
    return only_selected(responses, work.selection)


def _check_width(columns: Mapping[str, Array], classes: int | None) -> None:
    """Refuse logits of more or fewer classes than the record names: they would be read as those of others."""
    logits = columns.get("logits")
    if logits is not None and classes is not None and logits.shape[1:] != (classes,):
        width = " × ".join(map(str, logits.shape[1:]))
        raise UserError(
            f"its answers are for {width} classes, and the record names {classes}", "run the same command again"
        )


def _columns(
    shards: Shards, work: Work, memory: Memory, condense: Reduce | None, classes: int | None
) -> tuple[Columns, dict[str, str]]:
    stimuli, missing = work.manifests.read(work.job.stimuli).stimuli, {positions.start for positions in work.missing}
    raised: list[Exception] = []

    def condensed(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        assert condense is not None
        _check_width(columns, classes)
        try:
            return condense(columns, shown)
        except Exception as error:
            raised.append(error)
            raise

    try:
        if condense is None:
            columns, excluded = gather(shards, stimuli, work.shard_size, memory, missing)
            _check_width(columns, classes)
            return columns, excluded
        return gather_condensed(shards, stimuli, work.shard_size, condensed, missing)
    except UserError as error:
        if raised:  # what a protocol says of the answers is not damage
            raise
        raise Unreadable(error.message, error.hint) from error


def labels_of(job: JobRecord) -> LabelSpace | None:
    """Return what the answers of an observer stand for."""
    labels = job.labels
    return LabelSpace(labels["name"], tuple(labels["names"]), tuple(labels["ids"])) if labels else None


def only_selected(responses: Responses, selection: Selection) -> Responses:
    """Return the answers to the selected stimuli."""
    if selection.place is None:
        return responses
    rows = selection.place[responses.stimulus] >= 0
    ids = {s.id for s in selection.stimuli}
    return replace(
        responses,
        stimuli=selection.stimuli,
        stimulus=selection.place[responses.stimulus[rows]],
        columns={name: values[rows] for name, values in responses.columns.items()},
        excluded={i: why for i, why in responses.excluded.items() if i in ids},
    )


# ------------------------------------------------------------------------------------------ one observer in any process


class Outcome(NamedTuple):
    """What came of one observer.

    ``packed`` is what was measured, with everything but the answers and the stimuli; None where the answers cannot be
    read, and ``problem`` and ``hint`` say why. ``unchecked`` counts files without a checksum.
    """

    packed: bytes | None
    unchecked: int = 0
    problem: str = ""
    hint: str = ""


def measure(work: Work) -> Outcome:
    """Read the answers of an observer and measure them, in whichever process this is."""
    protocol: Protocol = protocols.get(work.job.protocol)
    score = protocol.score
    assert isinstance(score, ByObserver)
    shards = Shards.of_key(work.manifests.answers / work.job.folder, work.job.key)
    stimuli = work.manifests.read(work.job.stimuli)
    condense = score.condense(stimuli, labels_of(work.job)) if score.condense else None
    try:
        responses = read_responses(work, shards, Memory(work.memory), condense)
    except Unreadable as error:
        return Outcome(None, len(shards.unchecked), *error.args)
    measured = score.measure(responses, work.options)
    return Outcome(_pack(measured, responses), len(shards.unchecked))


_RESPONSES, _STIMULI = "responses", "stimuli"


class _Packer(pickle.Pickler):
    """Packs what was measured; answers and stimuli are left out, by name."""

    def __init__(self, file: io.BytesIO, responses: Responses) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._responses = responses
        none: Any = None
        self._rowless = _RESPONSES, replace(responses, stimulus=np.zeros(0, np.intp), columns={}, stimuli=none)

    def persistent_id(self, value: Any) -> Any:
        if value is self._responses:
            return self._rowless
        return _STIMULI if value is self._responses.stimuli else None


class _Unpacker(pickle.Unpickler):
    """Unpacks what was measured, with the stimuli of this process."""

    def __init__(self, file: io.BytesIO, stimuli: StimulusSet) -> None:
        super().__init__(file)
        self._stimuli = stimuli
        self._responses: Responses | None = None

    def persistent_load(self, name: Any) -> Any:
        if name == _STIMULI:
            return self._stimuli
        if self._responses is None:
            self._responses = replace(name[1], stimuli=self._stimuli)
        return self._responses


def _pack(measured: Any, responses: Responses) -> bytes:
    file = io.BytesIO()
    _Packer(file, responses).dump(measured)
    return file.getvalue()


def unpack(outcome: Outcome, stimuli: StimulusSet) -> Any:
    """Return what was measured of an observer."""
    assert outcome.packed is not None
    return _Unpacker(io.BytesIO(outcome.packed), stimuli).load()


# ------------------------------------------------------------------------------------------ all observers


def choose_workers(wanted: int | None, answers: int, observers: int) -> int:
    """Return how many processes to use; 0: the work is done here.

    Parameters
    ----------
    wanted : int or None
        What the user asked for; None: one for each core, or none where there is little to do.
    answers, observers : int
        What there is to do.
    """
    if wanted is None:
        wanted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        wanted = 0 if answers < SMALL or observers < 2 else wanted
    if wanted < 0:
        raise UserError(f"workers must be 0 (none) or more; got {wanted}")
    return min(wanted, observers)


def measure_all(works: Sequence[Work], workers: int, tell: Callable[[str], None]) -> Iterator[Outcome]:
    """Yield the outcome of every observer, in order.

    Raises
    ------
    UserError
        Where a worker process died twice over the same observer.
    """
    with ProcessPool(workers, tell=tell) as pool:
        waiting: deque[tuple[Work, Future[Outcome]]] = deque()
        left = deque(works)
        while left or waiting:
            # A few ahead: what is measured but not yet asked for takes memory.
            while left and len(waiting) <= 2 * workers:
                work = left.popleft()
                waiting.append((work, pool.submit(measure, replace(work, memory=IN_MEMORY // max(workers, 1)))))
            work, future = waiting.popleft()
            try:
                yield future.result()
            except WorkerDied as error:
                raise UserError(
                    f"{work.job.observer} could not be scored for {work.job.protocol}: {error}",
                    "score with fewer processes: --workers 1, or 0 for none",
                ) from error


@contextmanager
def one_thread() -> Iterator[None]:
    """Let numpy multiply matrices with one thread, as in the workers: sums of fractions depend on how they are split.

    Done where numpy uses OpenBLAS, as in its own wheels; elsewhere nothing happens.
    """
    from numpy.linalg import _umath_linalg

    library = ctypes.CDLL(_umath_linalg.__file__)
    for form in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_"):
        get, change = (getattr(library, form.format(verb), None) for verb in ("get", "set"))
        if get is not None and change is not None:
            break
    else:
        yield
        return
    before = get()
    change(1)
    try:
        yield
    finally:
        change(before)
