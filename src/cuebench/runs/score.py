"""``score``: from the stored answers of a run folder to its scores. Needs no model, no image, no network."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import UserError
from cuebench.processes import warn
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, score_rows, unmeasured_row
from cuebench.reading import user_path
from cuebench.registry import BUILT_IN, OBJECT, SCHEME, named_by_data, protocols
from cuebench.responses.events import Event, OnEvent, ignore
from cuebench.responses.job import failure_of
from cuebench.responses.store import Memory, Shards
from cuebench.runs.joining import failures_in_order, settings_of
from cuebench.runs.measuring import (
    Manifests,
    Unreadable,
    Work,
    choose_workers,
    forget_manifests,
    measure_all,
    one_thread,
    read_responses,
    unpack,
    works_of,
)
from cuebench.runs.notebook import listening
from cuebench.runs.record import JobRecord, RunOptions, RunRecord, locked, note_scored, parse_settings
from cuebench.runs.results import remove_other_tables, unfinished, write_scores
from cuebench.runs.scores import Scores
from cuebench.runs.share import SHARED, with_parts
from cuebench.tables.engine import Result
from cuebench.types import Failure, Score

MY_PROTOCOL = "cuebench.score(RUN, protocols=[MY_PROTOCOL])"


def score(
    run: str | Path,
    *,
    seed: int | None = None,
    resamples: int | None = None,
    common: bool | None = None,
    settings: Mapping[str, Any] | None = None,
    protocols: Iterable[str | Protocol] = (),
    workers: int | None = None,
    on_event: OnEvent | None = None,
) -> Scores:
    """Score a run folder again and write ``scores.parquet``, ``scores.json`` and ``tables/``.

    Parameters
    ----------
    run : path
        The run folder.
    seed, resamples, common
        As in ``evaluate``; default: as the run was made.
    settings : mapping, optional
        Options of single protocols: ``{"cue_decomposition.leave_out": "some model"}``.
    protocols : sequence of Protocol, optional
        Protocols of the run that were objects of another Python session; all others are found again by themselves.
    workers : int, optional
        Processes, each of which scores one observer at a time; 0: none but this one. Default: one for each core, where
        there is enough to do. The scores do not depend on it.
    on_event : callable, optional
        Told of progress (``responses.events.Event``). Default: a bar in a notebook, nobody elsewhere.

    Returns
    -------
    Scores
        The same bytes on disk every time for the same answers and options.
    """
    folder = user_path(run)
    if not isinstance(settings or {}, Mapping):
        raise UserError(f"settings: expected a dictionary; got {type(settings).__name__}", '{"PROTOCOL.OPTION": value}')
    RunRecord.read(folder)  # no lock in a folder that is no run
    with listening(on_event) as tell, locked(folder):
        record = RunRecord.read(folder)
        if record.status == SHARED:
            record = with_parts(folder, record)
        find_protocols(record, protocols)
        options = record.options
        _refuse_what_was_shown(record, settings or {})
        options = replace(
            options,
            seed=options.seed if seed is None else seed,
            resamples=options.resamples if resamples is None else resamples,
            common=options.common if common is None else common,
            settings={**options.settings, **(settings or {})},
        )
        if why := unfinished(folder, record):
            text = f"{why}; only what it has is scored. Run the same command again: it goes on where it stopped"
            warn(text) if tell is ignore else tell(Event("notice", text))
        rows = score_run(folder, record, options, workers=workers, unfinished=bool(why), on_event=tell)
        note_scored(folder, record)
    return Scores(tuple(rows), folder, record)


def _refuse_what_was_shown(record: RunRecord, settings: Mapping[str, Any]) -> None:
    """Raise for another value of an option that decides what observers are shown: the answers are given."""
    problems = []
    for name, chosen in parse_settings(record.protocol_names(), settings).items():
        protocol: Protocol = protocols.get(name)
        if protocol.configure is None:  # then nothing but its scoring is told of options
            continue
        made = settings_of(name, record.options.settings)
        for key in (key for key in settings if key.partition(".")[0] == name):
            option = key.partition(".")[2]
            if not protocol.options[option].scoring and chosen[option] != made[option]:
                problems.append(f"{key} was {made[option]!r}")
    if problems:
        flags = shlex.join(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))
        raise UserError(
            f"what was shown cannot be changed by scoring: {'; '.join(problems)}",
            f"measure it in another folder: cuebench run … {flags} --out DIR",
        )


def find_protocols(record: RunRecord, objects: Iterable[str | Protocol] = ()) -> None:
    """Make sure that every protocol of a run is in the registry: built in, installed, in its file, or passed here.

    Raises
    ------
    UserError
        For a protocol that cannot be found: where it came from, and how to get it.
    """
    parts = [objects] if isinstance(objects, str) or not isinstance(objects, Iterable) else objects
    names = {protocols.resolve(part) for part in parts}
    for name in record.protocol_names():
        origin = record.protocols.get(name, {}).get("origin", BUILT_IN)
        if name in names or (name in protocols and not origin.startswith(SCHEME)):
            continue
        if origin.startswith(SCHEME):
            with named_by_data(f"the record of this run, for its protocol {name!r},"):
                protocols.resolve(origin)
        elif origin == BUILT_IN:
            protocols.get(name)  # raises, with the names that there are
        elif origin in (OBJECT, "an object of this session"):
            raise UserError(f"protocol {name!r} of this run was {origin}", f"pass it again: {MY_PROTOCOL}")
        else:
            package = origin.rpartition(" ")[0] or origin
            raise UserError(
                f"protocol {name!r} of this run came from {origin}, which is not installed", f"pip install {package}"
            )


def score_run(
    folder: Path,
    record: RunRecord,
    options: RunOptions,
    *,
    workers: int | None = None,
    most_workers: int | None = None,
    unfinished: bool = False,
    on_event: OnEvent | None = None,
) -> list[Score]:
    """Score a run folder that is locked, and return the rows; the record then says what was scored and what failed.

    An observer whose answers cannot be read is a failure of its own; the others are scored.

    Parameters
    ----------
    folder : Path
        The run folder.
    record, options
        What was run, and how it is scored.
    workers : int, optional
        Processes, each of which scores one observer at a time; 0: none but this one. Default: one for each core, where
        there is enough to do.
    most_workers : int, optional
        Never more processes than this, whatever there is to do.
    unfinished : bool
        Score what there is: answers that are not there yet are left out. By default they are a failure.
    on_event : callable, optional
        Told of progress.
    """
    scored = scores_of(
        folder,
        record,
        options,
        workers=workers,
        most_workers=most_workers,
        unfinished=unfinished,
        on_event=on_event,
    )
    scores = write_scores(folder, scored.rows, scored.tables)
    remove_other_tables(folder, scored.tables, [*protocols, *record.protocol_names()])
    manifests = {name: digest for name, digest in record.files.items() if name.startswith("stimuli/")}
    record.files, record.scored, record.failures = {**manifests, **scores}, options.scoring(), scored.failures
    if scored.unchecked:
        notice = (
            f"{scored.unchecked} files of answers, written by an earlier cuebench, have no checksum or do not say "
            "whose they are: damage may go unseen"
        )
        record.notices = [n for n in record.notices if not n.endswith("damage may go unseen")] + [notice]
    return scored.rows


class Scored(NamedTuple):
    """What the answers of a run give: rows, tables by name, who failed, and files of answers without a checksum."""

    rows: list[Score]
    tables: dict[str, Any]
    failures: list[Failure]
    unchecked: int


def scores_of(
    folder: Path,
    record: RunRecord,
    options: RunOptions,
    *,
    workers: int | None = None,
    most_workers: int | None = None,
    unfinished: bool = False,
    on_event: OnEvent | None = None,
) -> Scored:
    """Compute the scores of a run folder from its answers, and write nothing; see `score_run`."""
    values = parse_settings(record.protocol_names(), options.settings)
    tell = on_event or ignore
    scoring = _Scoring(folder, record, options, workers=workers, most=most_workers, unfinished=unfinished, tell=tell)
    rows: list[Score] = []
    tables: dict[str, Any] = {}
    with one_thread():
        for name in dict.fromkeys(job.protocol for job in record.jobs):
            protocol_rows, tables_of = scoring.of(name, ScoreOptions(options.seed, options.resamples, values[name]))
            rows += protocol_rows
            tables |= {f"{name}.{key}": table for key, table in tables_of.items()}
    skipped, failures = failures_in_order(record.skipped, record), failures_in_order(scoring.failures, record)
    rows += [_unmeasured(f, "not_applicable") for f in skipped]
    rows += [_unmeasured(f, "failed") for f in failures]
    return Scored(rows, tables, failures, scoring.unchecked)


class _Scoring:
    """The scoring of one run, protocol by protocol: what failed on the way, and how far it is."""

    def __init__(
        self,
        folder: Path,
        record: RunRecord,
        options: RunOptions,
        *,
        workers: int | None,
        most: int | None,
        unfinished: bool,
        tell: OnEvent,
    ) -> None:
        forget_manifests()  # of an earlier scoring in this process
        self._record, self._options, self._tell = record, options, tell
        self._workers, self._most, self._unfinished = workers, most, unfinished
        self._manifests = Manifests.of(folder, record)
        self._done = 0
        self._without_answers: set[int] = set()
        # What failed at an earlier scoring may have been repaired.
        self.failures = [f for f in record.failures if not f.details.get("scoring")]
        self.unchecked = 0

    def of(self, name: str, options: ScoreOptions) -> tuple[list[Score], Mapping[str, Any]]:
        """Return the rows and tables of a protocol; who has no readable answers is added to the failures."""
        jobs = [job for job in self._record.jobs if job.protocol == name]
        protocol: Protocol = protocols.get(name)
        score = self._by_observer if isinstance(protocol.score, ByObserver) else self._all_at_once
        try:
            result = score(protocol, jobs, options)
            return score_rows(protocol, result), result.tables
        except Exception as error:
            if protocols.origin(name) == BUILT_IN:
                raise
            # A protocol of somebody else's may raise anything; the other protocols are scored.
            for job in jobs:
                if id(job) not in self._without_answers:
                    failure = failure_of(job.observer, error, name)
                    self.failures.append(replace(failure, details={**failure.details, "scoring": True}))
            return [], {}

    def _works(self, jobs: Sequence[JobRecord], options: ScoreOptions) -> list[Work]:
        run = self._options
        return works_of(self._manifests, jobs, run.shard_size, options, common=run.common, unfinished=self._unfinished)

    def _by_observer(self, protocol: Protocol, jobs: Sequence[JobRecord], options: ScoreOptions) -> Result:
        """Measure one observer after the other, or several at once; then what needs all of them."""
        assert isinstance(protocol.score, ByObserver)
        works = self._works(jobs, options)
        answers = sum(len(self._manifests.read(job.stimuli)) for job in jobs)
        workers = choose_workers(self._workers, answers, len(jobs))
        workers = workers if self._most is None else min(workers, self._most)
        # A protocol of this session or of a file is not known to another process.
        known = not protocols.origin(protocol.name).startswith((OBJECT, SCHEME))
        parts: list[Any] = []
        read: list[JobRecord] = []
        for work, outcome in zip(works, measure_all(works, workers if known else 0, self._notice)):
            self.unchecked += outcome.unchecked
            self._progress(work.job)
            if outcome.packed is None:
                self._unreadable(work.job, outcome.problem, outcome.hint)
            else:
                parts.append(unpack(outcome, work.selection.stimuli))
                read.append(work.job)
        if self._options.common and read and {j.stimuli for j in read} != {j.stimuli for j in jobs}:
            self._done -= len(read)
            return self._by_observer(protocol, read, options)  # those who could not be read do not count
        return protocol.score.together(parts, options) if parts else Result()

    def _all_at_once(self, protocol: Protocol, jobs: Sequence[JobRecord], options: ScoreOptions) -> Result:
        """Read the answers of all observers and score them: what is asked of a protocol at the least."""
        memory = Memory()  # one for all observers: they are scored together
        responses, read = [], []
        for work in self._works(jobs, options):
            shards = Shards.of_key(self._manifests.answers / work.job.folder, work.job.key)
            try:
                responses.append(read_responses(work, shards, memory))
                read.append(work.job)
            except Unreadable as error:
                self._unreadable(work.job, *error.args)
            self.unchecked += len(shards.unchecked)
            self._progress(work.job)
        if self._options.common and read and {j.stimuli for j in read} != {j.stimuli for j in jobs}:
            self._done -= len(read)
            return self._all_at_once(protocol, read, options)
        return protocol.score(responses, options) if responses else Result()

    def _unreadable(self, job: JobRecord, problem: str, hint: str) -> None:
        self._without_answers.add(id(job))
        self.failures.append(Failure(job.observer, problem, job.protocol, {"hint": hint, "scoring": True}))

    def _progress(self, job: JobRecord) -> None:
        self._done += 1
        total = len(self._record.jobs)
        self._tell(Event("scored", f"scoring {job.protocol}: {job.observer}", self._done, total))

    def _notice(self, text: str) -> None:
        self._tell(Event("notice", text))


def _unmeasured(failure: Failure, metric: str) -> Score:
    """Return the row of an observer without scores: the reason is its note."""
    version = protocols.get(failure.protocol).version if failure.protocol else 0
    return unmeasured_row(failure, metric, version)
