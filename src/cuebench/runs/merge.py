"""``merge``: one run folder from several, for example from several machines. Needs no model, no image, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.errors import UserError
from cuebench.files import hash_file, make_folder, write_atomic
from cuebench.labels import map_file
from cuebench.processes import warn
from cuebench.protocols.base import Protocol
from cuebench.reading import user_path, user_paths
from cuebench.responses.job import JobRecord
from cuebench.responses.store import Columns, Shards, batches
from cuebench.runs.joining import check_conditions, differing_scoring, join
from cuebench.runs.people import is_brought
from cuebench.runs.record import RunRecord, locked, now
from cuebench.runs.results import read_stimuli
from cuebench.runs.score import find_protocols, score_run
from cuebench.runs.scores import Scores
from cuebench.types import Stimulus, StimulusSet

_SCORING = ("resamples", "common")
"""Options that change the scores of the same answers; runs that are merged may differ in them."""
_LEAVE_OUT = "leave one of the runs out, or measure it again under the same conditions"


class _Run(NamedTuple):
    """A run that is merged."""

    folder: Path
    record: RunRecord

    def shards(self, job: JobRecord) -> Shards:
        return Shards.of_key(self.record.options.responses_in(self.folder) / job.folder, job.key)

    def batches(self, job: JobRecord) -> list[Sequence[Stimulus]]:
        stimuli = read_stimuli(self.folder, job.stimuli, self.record).stimuli
        return [batch for _, batch in batches(stimuli, self.record.options.shard_size)]


def merge(runs: Iterable[str | Path], out: str | Path, *, protocols: Iterable[str | Protocol] = ()) -> Scores:
    """Join run folders of the same conditions into a new one, and score it.

    Answers are copied and compared with their checksums. An observer that several runs hold must have given the same
    answers in all of them.

    Parameters
    ----------
    runs : sequence of path
        Finished run folders with the same seed, limit and batch size, the same stimuli and the same options of each
        protocol. They are not changed.
    out : path
        The new run folder. The same call again goes on where it stopped.
    protocols : sequence of Protocol, optional
        Protocols of the runs that were objects of another Python session; all others are found by themselves.

    Returns
    -------
    Scores
        Of all observers, as one run with all of them would have given.

    Raises
    ------
    UserError
        Where a run is not finished or damaged, where conditions differ, or where an observer answered differently.
    """
    folders = list(dict.fromkeys(run.absolute() for run in user_paths(runs)))
    if len(folders) < 2:
        raise UserError(
            f"two or more different runs can be merged; got {len(folders)}", "cuebench merge RUN RUN --out DIR"
        )
    merged = [_Run(folder, _finished(folder)) for folder in folders]
    folder = user_path(out).absolute()
    if folder in folders:
        raise UserError(f"{folder} is one of the runs that are merged", "choose a new folder for --out")
    make_folder(folder)
    with locked(folder):
        _check_target(folder, folders)
        parts = [protocols] if isinstance(protocols, str) or not isinstance(protocols, Iterable) else list(protocols)
        for run in merged:  # their options are read before anything is joined
            find_protocols(run.record, parts)
        first, *others = merged
        record = replace(first.record, jobs=list(first.record.jobs), arguments=dict(first.record.arguments))
        for index, other in enumerate(others):
            record = _joined(record, merged[: index + 1], other)
        record.arguments |= {name: getattr(first.record.options, name) for name in _SCORING}
        record.arguments["merged"] = [str(path) for path in folders]
        record.arguments["responses"] = ""  # they are copied
        record.status, record.scored, record.finished = "running", {}, ""
        find_protocols(record, parts)
        record.notices = [*record.notices, *_scored_otherwise(record, merged)]
        record.files = {}
        record.write(folder)  # first: it says what the folder is, should the process be killed
        for job in record.jobs:
            _copy(next(run for run in merged if any(_same_answers(job, own) for own in run.record.jobs)), job, folder)
        record.files = {f"stimuli/{n}": hash_file(folder / "stimuli" / n).sha256 for n in record.stimuli}
        record.status = "collected"
        record.write(folder)
        rows = score_run(folder, record, record.options)
        record.status, record.finished = "complete", now()
        record.write(folder)
    return Scores(tuple(rows), folder, record)


def _finished(folder: Path) -> RunRecord:
    record = RunRecord.read(folder)
    if record.status not in ("complete", "collected"):
        raise UserError(f"{folder} is not finished (status: {record.status})", "run its command to the end, then merge")
    return record


def _check_target(folder: Path, runs: Sequence[Path]) -> None:
    """Refuse a folder that holds anything but an unfinished or finished merge of the same runs."""
    if (folder / "run.json").is_file():
        earlier = RunRecord.read(folder).arguments.get("merged")
        if earlier != [str(path) for path in runs]:
            raise UserError(f"{folder} holds another run", "choose a new folder for --out")
    elif others := sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")):
        raise UserError(f"{folder} is not empty: it holds {', '.join(others[:5])}", "choose a new folder for --out")


def _joined(record: RunRecord, merged: Sequence[_Run], other: _Run) -> RunRecord:
    """Return the record of the runs so far and another one."""
    names = list(other.record.arguments["protocols"])
    again = f"measure {other.folder} again"
    check_conditions(record, other.record.options, names, str(merged[0].folder), "leave one of the runs out", again)
    for job in other.record.jobs:
        for run in merged:
            for same in [j for j in run.record.jobs if _same_question(j, job)]:
                # People whom a protocol brought along give way to those that somebody named.
                if is_brought(same, run.record) == is_brought(job, other.record):
                    _check_equal(run, same, other, job)
    added = replace(other.record, jobs=list(other.record.jobs), arguments=dict(other.record.arguments))
    join(record, added, str(merged[0].folder), _LEAVE_OUT, merging=True)
    known = {job.stimuli: run for run in merged for job in _left(run, added)}
    for name in {job.stimuli: None for job in _left(other, added)}:
        if name in known and not _same_set(known[name], other, name):
            raise UserError(
                f"{known[name].folder} and {other.folder} have other label maps or notes for {name}", _LEAVE_OUT
            )
    return added


def _scored_otherwise(record: RunRecord, merged: Sequence[_Run]) -> list[str]:
    """Say which runs were scored with other options than the merged one is: by ``run``, or by ``score`` afterwards."""
    ours = record.options.scoring()
    notices = []
    for run in merged:
        theirs = {**run.record.options.scoring(), **run.record.scored}
        differing = [f"{name} {then!r}, here {here!r}" for name, then, here in
                     differing_scoring(theirs, ours, run.record.protocol_names())]  # fmt: skip
        if differing:
            notices.append(
                f"{run.folder} was scored with other options than those that {merged[0].folder} was made with, with "
                f"which the merged run is scored: {'; '.join(differing)}; choose others with: cuebench score RUN"
            )
    for text in notices:
        warn(text)
    return notices


def _same_set(run: _Run, other: _Run, name: str) -> bool:
    """Tell whether two manifests are the same; the data may lie elsewhere on another machine."""

    def comparable(which: _Run) -> StimulusSet:
        stimuli = read_stimuli(which.folder, name, which.record)
        return replace(stimuli, root="", targets=Path(stimuli.targets).name)

    return comparable(run) == comparable(other)


def _check_equal(run: _Run, job: JobRecord, other: _Run, same: JobRecord) -> None:
    """Refuse two runs in which the same observer answered differently."""
    equal = job.key == same.key and job.stimuli == same.stimuli
    if equal:
        pairs = [(run.shards(job).read(batch), other.shards(same).read(batch)) for batch in run.batches(job)]
        equal = all(_same_columns(a, b) and errors == others for (a, errors), (b, others) in pairs)
    if not equal:
        raise UserError(
            f"{job.observer} answered {job.protocol!r} differently in {run.folder} and in {other.folder}",
            "leave one of the runs out, or give the observer another name in one of them",
        )


def _same_question(job: JobRecord, other: JobRecord) -> bool:
    return (job.protocol, job.view, job.observer) == (other.protocol, other.view, other.observer)


def _same_answers(job: JobRecord, other: JobRecord) -> bool:
    """Tell whether two jobs have the same answers; their specs may be written in other ways."""
    return _same_question(job, other) and (job.key, job.stimuli) == (other.key, other.stimuli)


def _left(run: _Run, record: RunRecord) -> list[JobRecord]:
    """Return the jobs of a run that a record of several holds."""
    return [job for job in run.record.jobs if any(_same_answers(job, one) for one in record.jobs)]


def _same_columns(columns: Columns, others: Columns) -> bool:
    return columns.keys() == others.keys() and all(
        a.dtype == others[name].dtype and np.array_equal(a, others[name], equal_nan=a.dtype.kind == "f")
        for name, a in columns.items()
    )


def _copy(run: _Run, job: JobRecord, folder: Path) -> None:
    """Copy the answers of an observer and its manifest; every file of answers is compared with its checksum."""
    stimuli = read_stimuli(run.folder, job.stimuli, run.record)
    file = map_file(stimuli.targets)
    names = [job.stimuli] + ([] if file is None else [file.path.name])
    for name in names:
        write_atomic(folder / "stimuli" / name, (run.folder / "stimuli" / name).read_bytes())
    source = run.shards(job)
    target = Shards.of_key(folder / "responses" / job.folder, job.key)
    write_atomic(target.folder / "key.json", (source.folder / "key.json").read_bytes())
    for batch in run.batches(job):
        try:
            source.count_rows(batch)
        except UserError as error:
            raise UserError(f"{run.folder}: {error.message}", "run its command again, then merge") from None
        if target.stored(batch) is None:
            write_atomic(target.path(batch), source.path(batch).read_bytes())
