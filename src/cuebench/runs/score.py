"""``score``: from the stored answers of a run folder to its scores. Needs no model, no image, no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.protocols.base import Protocol, Result, ScoreOptions, score_rows, unmeasured_row
from cuebench.registry import BUILT_IN, OBJECT, SCHEME, protocols
from cuebench.responses.job import failure_of
from cuebench.responses.store import Memory, Shards, gather
from cuebench.responses.table import Responses
from cuebench.runs.record import JobRecord, RunOptions, RunRecord, locked, note_scored, parse_settings
from cuebench.runs.results import read_stimuli, remove_other_tables, write_scores
from cuebench.runs.scores import Scores
from cuebench.types import Failure, Score, StimulusSet

MY_PROTOCOL = "cuebench.score(RUN, protocols=[MY_PROTOCOL])"


def score(
    run: str | Path,
    *,
    seed: int | None = None,
    resamples: int | None = None,
    common: bool | None = None,
    settings: Mapping[str, Any] | None = None,
    protocols: Iterable[str | Protocol] = (),
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

    Returns
    -------
    Scores
        The same bytes on disk every time for the same answers and options.
    """
    folder = Path(run).expanduser()
    RunRecord.read(folder)  # no lock in a folder that is no run
    with locked(folder):
        record = RunRecord.read(folder)
        find_protocols(record, protocols)
        options = record.options
        options = replace(
            options,
            seed=options.seed if seed is None else seed,
            resamples=options.resamples if resamples is None else resamples,
            common=options.common if common is None else common,
            settings={**options.settings, **(settings or {})},
        )
        rows = score_run(folder, record, options)
        note_scored(folder, record)
    return Scores(tuple(rows), folder, record)


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


def score_run(folder: Path, record: RunRecord, options: RunOptions) -> list[Score]:
    """Score a run folder that is locked, and return the rows; the record then says what was scored and what failed.

    An observer whose answers cannot be read is a failure of its own; the others are scored.
    """
    values = parse_settings(record.protocol_names(), options.settings)
    # What failed at an earlier scoring may have been repaired.
    failures = [f for f in record.failures if not f.details.get("scoring")]
    rows: list[Score] = []
    tables: dict[str, Any] = {}
    unchecked = 0
    for name in dict.fromkeys(job.protocol for job in record.jobs):
        protocol: Protocol = protocols.get(name)
        responses, without_checksum = _read_all(folder, record, name, options.shard_size, failures)
        unchecked += without_checksum
        if options.common and responses:
            responses = _restricted(responses)
        score_options = ScoreOptions(options.seed, options.resamples, values[name])
        try:
            result = protocol.score(responses, score_options) if responses else Result()
            rows += score_rows(protocol, result)
            tables |= {f"{name}.{key}": table for key, table in result.tables.items()}
        except Exception as error:
            if protocols.origin(name) == BUILT_IN:
                raise
            # A protocol of somebody else's may raise anything; the other protocols are scored.
            for answers in responses:
                failure = failure_of(answers.observer, error, name)
                failures.append(replace(failure, details={**failure.details, "scoring": True}))
    rows += [_unmeasured(f, "not_applicable") for f in record.skipped]
    rows += [_unmeasured(f, "failed") for f in failures]
    scores = write_scores(folder, rows, tables)
    remove_other_tables(folder, tables, [*protocols, *record.protocol_names()])
    manifests = {name: digest for name, digest in record.files.items() if name.startswith("stimuli/")}
    record.files, record.scored, record.failures = {**manifests, **scores}, options.scoring(), failures
    if unchecked:
        notice = (
            f"{unchecked} files of answers have no checksum, as an earlier cuebench wrote them: damage may go unseen"
        )
        record.notices = [n for n in record.notices if not n.endswith("damage may go unseen")] + [notice]
    return rows


def _read_all(
    folder: Path, record: RunRecord, protocol: str, shard_size: int, failures: list[Failure]
) -> tuple[list[Responses], int]:
    """Read the answers of all observers of a protocol; those that cannot be read are added to the failures.

    Also return how many files have no checksum.
    """
    jobs = [job for job in record.jobs if job.protocol == protocol]
    manifests = {name: read_stimuli(folder, name, record) for name in dict.fromkeys(job.stimuli for job in jobs)}
    memory = Memory()  # one for all observers: they are scored together
    responses, unchecked = [], 0
    for job in jobs:
        shards = Shards.of_key(folder / "responses" / job.folder, job.key)
        try:
            responses.append(_read_responses(shards, job, manifests[job.stimuli], shard_size, memory))
        except UserError as error:
            details = {"hint": error.hint, "scoring": True}
            failures.append(Failure(job.observer, error.message, job.protocol, details))
        unchecked += len(shards.unchecked)
    return responses, unchecked


def _read_responses(shards: Shards, job: JobRecord, stimuli: StimulusSet, shard_size: int, memory: Memory) -> Responses:
    """Read the stored answers of one observer."""
    columns, excluded = gather(shards, stimuli.stimuli, shard_size, memory)
    labels = job.labels
    return Responses(
        observer=job.observer,
        kind=job.kind,  # type: ignore[arg-type]
        stimuli=stimuli,
        stimulus=columns.pop("stimulus"),
        columns=columns,
        labels=LabelSpace(labels["name"], tuple(labels["names"]), tuple(labels["ids"])) if labels else None,
        view=job.view,
        excluded=excluded,
        notes=job.notes,
        baseline_of=job.baseline_of,
    )


def _restricted(responses: Sequence[Responses]) -> list[Responses]:
    """Keep the stimuli that every observer was asked about, so that all scores are about the same images."""
    shared = set.intersection(*({s.id for s in r.stimuli} for r in responses))
    if not shared:
        observers = ", ".join(r.observer for r in responses)
        raise UserError(f"no stimulus was shown to all of {observers}", "score without --common (--all)")
    return [_only(r, shared) for r in responses]


def _only(responses: Responses, ids: set[str]) -> Responses:
    """Return the answers to some of the stimuli."""
    keep = [i for i, s in enumerate(responses.stimuli) if s.id in ids]
    if len(keep) == len(responses.stimuli):
        return responses
    position = np.full(len(responses.stimuli), -1, dtype=np.intp)
    position[keep] = np.arange(len(keep))
    rows = position[responses.stimulus] >= 0
    why = f"only the {len(keep):,} of {len(responses.stimuli):,} stimuli that all observers saw"
    return replace(
        responses,
        stimuli=responses.stimuli.only([responses.stimuli.stimuli[i] for i in keep], why),
        stimulus=position[responses.stimulus[rows]],
        columns={name: values[rows] for name, values in responses.columns.items()},
        excluded={i: why for i, why in responses.excluded.items() if i in ids},
    )


def _unmeasured(failure: Failure, metric: str) -> Score:
    """Return the row of an observer without scores: the reason is its note."""
    version = protocols.get(failure.protocol).version if failure.protocol else 0
    return unmeasured_row(failure, metric, version)
