"""``score``: from the stored answers of a run folder to its scores. Needs no model, no image, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.options import parse
from cuebench.protocols.base import Protocol, Result, ScoreOptions, score_rows, unmeasured_row
from cuebench.registry import protocols
from cuebench.responses.gather import Memory, gather
from cuebench.responses.store import Shards
from cuebench.responses.table import Responses
from cuebench.runs.record import JobRecord, RunRecord, locked, note_scored
from cuebench.runs.results import remove_other_tables, write_scores
from cuebench.runs.sources import check_settings
from cuebench.stimuli.manifest import read_manifest
from cuebench.types import Failure, Score, StimulusSet


def score(
    run: str | Path,
    *,
    seed: int | None = None,
    resamples: int | None = None,
    common: bool | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[Score]:
    """Score a run folder again and write ``scores.parquet``, ``scores.json`` and ``tables/``.

    Parameters
    ----------
    run : path
        The run folder.
    seed, resamples, common
        As in ``evaluate``; default: as the run was made.
    settings : mapping, optional
        Options of single protocols: ``{"cue_decomposition.leave_out": "some model"}``.

    Returns
    -------
    list of Score
        The same bytes every time for the same answers and options.
    """
    folder = Path(run).expanduser()
    record = RunRecord.read(folder)
    given = record.arguments
    choice = Choice(
        seed=record.seed if seed is None else seed,
        resamples=int(given.get("resamples", 10_000)) if resamples is None else resamples,
        settings={**given.get("settings", {}), **(settings or {})},
        common=bool(given.get("common", False)) if common is None else common,
    )
    with locked(folder):
        rows, failures = score_run(folder, record, choice)
        note_scored(folder, vars(choice), failures)
    return rows


@dataclass(frozen=True)
class Choice:
    """What a user can choose when scoring; kept in ``run.json`` as ``scored``."""

    seed: int
    resamples: int
    settings: Mapping[str, str]
    common: bool

    def __post_init__(self) -> None:
        check_numbers(self.seed, self.resamples)


def check_numbers(seed: int, resamples: int) -> None:
    """Refuse numbers that no interval can be made with."""
    if seed < 0:
        raise UserError(f"seed must be 0 or more; got {seed}")
    if resamples < 100:
        raise UserError(f"resamples must be 100 or more for a 95 % interval; got {resamples}")


def score_run(folder: Path, record: RunRecord, choice: Choice) -> tuple[list[Score], list[Failure]]:
    """Score a run folder that nobody else writes to; return the rows, and everything that failed.

    An observer whose answers cannot be read is a failure of its own; the others are scored.
    """
    names = list(dict.fromkeys(job.protocol for job in record.jobs))
    check_settings(names, choice.settings)
    # What failed at an earlier scoring may have been mended.
    failures = [f for f in record.failures if not f.details.get("scoring")]
    results = [_scored(protocols.get(name), record, folder, choice, failures) for name in names]
    rows = [row for name, result in zip(names, results) for row in score_rows(protocols.get(name), result)]
    rows += [_unmeasured(f, "not_applicable") for f in record.skipped]
    rows += [_unmeasured(f, "failed") for f in failures]
    tables = {f"{n}.{key}": table for n, result in zip(names, results) for key, table in result.tables.items()}
    write_scores(folder, rows, tables)
    remove_other_tables(folder, tables, protocols)
    return rows, failures


def _scored(
    protocol: Protocol,
    record: RunRecord,
    folder: Path,
    choice: Choice,
    failures: list[Failure],
) -> Result:
    jobs = [job for job in record.jobs if job.protocol == protocol.name]
    manifests = {name: _manifest(folder / "stimuli", name) for name in dict.fromkeys(j.stimuli for j in jobs)}
    memory = Memory()  # one for all observers: they are scored together
    responses = []
    for job in jobs:
        try:
            responses.append(read_responses(folder, job, manifests[job.stimuli], record.batch_size, memory))
        except UserError as error:
            details = {"hint": error.hint, "scoring": True}
            failures.append(Failure(job.observer, error.message, job.protocol, details))
    if not responses:
        return Result()
    own = {k.partition(".")[2]: v for k, v in choice.settings.items() if k.partition(".")[0] == protocol.name}
    options = ScoreOptions(choice.seed, choice.resamples, parse(protocol.options, own, f"protocol {protocol.name!r}"))
    return protocol.score(_restricted(responses) if choice.common else responses, options)


def _manifest(place: Path, name: str) -> StimulusSet:
    """Read a manifest of the run; a user's label map lies beside it."""
    stimuli = read_manifest(place / name)
    return replace(stimuli, targets=str(place / stimuli.targets)) if Path(stimuli.targets).suffix else stimuli


def read_responses(
    folder: Path, job: JobRecord, stimuli: StimulusSet, batch_size: int, memory: Memory | None = None
) -> Responses:
    """Read the stored answers of one observer."""
    shards = Shards.of_key(folder / "responses" / job.folder, job.key)
    columns, excluded = gather(shards, stimuli.stimuli, batch_size, memory)
    return Responses(
        observer=job.observer,
        kind=job.kind,  # type: ignore[arg-type]
        stimuli=stimuli,
        stimulus=columns.pop("stimulus"),
        columns=columns,
        labels=_space(job),
        view=job.view,
        excluded=excluded,
        notes=job.notes,
        baseline_of=job.baseline_of,
    )


def _space(job: JobRecord) -> LabelSpace | None:
    if job.labels is None:
        return None
    return LabelSpace(job.labels["name"], tuple(job.labels["names"]), tuple(job.labels["ids"]))


def _restricted(responses: Sequence[Responses]) -> list[Responses]:
    """Keep the stimuli that every observer was asked about, so that all scores speak of the same images."""
    shared = set.intersection(*({s.id for s in r.stimuli} for r in responses))
    if not shared:
        who = ", ".join(r.observer for r in responses)
        raise UserError(f"no stimulus was shown to all of {who}", "score without --common (--all)")
    return [_kept(r, shared) for r in responses]


def _kept(responses: Responses, ids: set[str]) -> Responses:
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
