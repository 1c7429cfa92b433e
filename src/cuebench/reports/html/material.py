"""What a report is made from: the scores and records of one run or of several, read and put side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.observers.baselines import RANDOM
from cuebench.protocols.headline import Column, headline_column, headline_of, measured, one_row_each
from cuebench.reading import user_paths
from cuebench.registry import metrics, protocols
from cuebench.responses.job import JobRecord
from cuebench.runs.scores import Scores, load
from cuebench.types import Headline, Score

PEOPLE = ("people", "person")
"""Kinds of observers that are human."""


@dataclass(frozen=True)
class Run:
    """One run of the report, with the names that its observers have there.

    Parameters
    ----------
    scores : Scores
        As they were read.
    names : dict
        Observer of the run → its name in the report: another one where two runs have an observer of the same name.
    """

    scores: Scores
    names: dict[str, str]

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.scores.out

    @cached_property
    def rows(self) -> list[Score]:
        """The rows, with the names of the report."""
        return [replace(s, observer=self.names.get(s.observer, s.observer)) for s in self.scores]

    def named(self, job: JobRecord) -> str:
        """Return the name that the observer of a job has in the report."""
        return self.names.get(job.observer, job.observer)


@dataclass(frozen=True)
class Material:
    """All runs of a report."""

    runs: tuple[Run, ...]

    @cached_property
    def rows(self) -> list[Score]:
        """The rows of all runs."""
        return [row for run in self.runs for row in run.rows]

    @cached_property
    def numbers(self) -> list[Score]:
        """One row for each number, with its widest interval."""
        return one_row_each(measured(self.rows))

    @cached_property
    def protocols(self) -> list[str]:
        """The protocols that anybody was measured with: what speaks of shape and texture first, accuracies last."""
        present = list(dict.fromkeys(row.protocol for row in measured(self.rows)))
        return sorted(present, key=lambda name: direction(name) == "correct")

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Observer → ``model``, ``person``, ``people`` or ``ideal``."""
        return {run.named(job): job.kind for run in self.runs for job in run.scores.record.jobs}

    @cached_property
    def observers(self) -> list[str]:
        """The observers that were measured: models, then people, then ideal observers."""
        present = list(dict.fromkeys(row.observer for row in measured(self.rows)))
        order = {"model": 0, "people": 1, "person": 2, "ideal": 3}
        return sorted(present, key=lambda o: (order.get(self.kinds.get(o, "model"), 0), RANDOM in o))

    def headline(self, protocol: str) -> Column | None:
        """Return the headline of a protocol for every observer that has it, in the order of ``observers``."""
        if headline(protocol) is None:
            return None
        column = headline_column(self.rows, protocol)
        if column is None:
            return None
        return column._replace(rows={o: column.rows[o] for o in self.observers if o in column.rows})

    def shows_published(self, protocol: str) -> bool:
        """Tell whether the stimuli are those of the paper, all or some: only then its values can be compared with."""
        records = [(run.scores.record, job) for run in self.runs for job in run.scores.record.jobs]
        return any(r.stimuli.get(j.stimuli, {}).get("expected") for r, j in records if j.protocol == protocol)

    def of_kind(self, observers: Iterable[str], *kinds: str) -> list[str]:
        """Return the observers of some kinds; untrained networks, which are baselines, are left out."""
        return [o for o in observers if self.kinds.get(o, "model") in kinds and RANDOM not in o]


def read_runs(runs: str | Path | Scores | Sequence[str | Path | Scores]) -> Material:
    """Read the runs of a report.

    An observer that two runs measured with the same protocol appears twice, with the folder behind its name.

    Raises
    ------
    UserError
        Where there is no run, a folder is none, or nothing was measured.
    """
    given = user_paths(runs, Scores)
    if not given:
        raise UserError("no run was named", "cuebench report RUN --out report.html")
    loaded = [run if isinstance(run, Scores) else load(run) for run in given]
    owners: dict[tuple[str, str], int] = {}
    for number, scores in enumerate(loaded):
        for key in {(s.protocol, s.observer) for s in measured(scores)}:
            owners[key] = -1 if key in owners else number
    labels = _labels(loaded)
    material = []
    for scores, label in zip(loaded, labels):
        twice = {o for s in measured(scores) if owners[s.protocol, (o := s.observer)] == -1}
        material.append(Run(scores, {o: f"{o} ({label})" for o in twice}))
    result = Material(tuple(material))
    if not result.protocols:
        reasons = [reason for scores in loaded for reason in scores.failures]
        raise UserError("nothing was measured in these runs: there is nothing to report", "; ".join(reasons[:3]))
    return result


def _labels(runs: Sequence[Scores]) -> list[str]:
    """Return a short name for each run: its folder, with a number where two are called the same."""
    names = [run.out.resolve().name or "run" for run in runs]
    return [name if names.count(name) == 1 else f"{name} {i + 1}" for i, name in enumerate(names)]


def headline(protocol: str) -> Headline | None:
    """Return the headline of a protocol; None for a protocol that is neither installed here nor recorded."""
    try:
        return headline_of(protocol)
    except UserError:
        return None


def declared(protocol: str) -> Any:
    """Return a protocol; None where it is not installed here."""
    try:
        return protocols.get(protocol) if protocol in protocols else None
    except UserError:
        return None


def metric_of(name: str) -> Any:
    """Return a metric; None where it is not installed here."""
    try:
        return metrics.get(name) if name in metrics else None
    except UserError:
        return None


def direction(protocol: str) -> str:
    """Return what a larger headline means; ``correct`` for a protocol that is not known here."""
    axis = headline(protocol)
    return axis.direction if axis else "correct"
