"""From trials to rows: every measure of every cue, overall, without defective files, by patch size, by class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.metrics.sensitivity import Draws, mean, mean_estimates, preference_estimate, resampled_means
from cuebench.protocols.base import ScoreOptions, partial_notes
from cuebench.protocols.refined_bias.trials import MEASURES, Bools, Trials, defects_of, trials_of
from cuebench.responses.table import Responses
from cuebench.statistics.estimates import Estimate
from cuebench.statistics.intervals import undefined
from cuebench.stimuli.readers.refined_bias import CUES
from cuebench.stimuli.refined_bias.check import summary
from cuebench.types import IntervalKind, Score

if TYPE_CHECKING:
    import pyarrow as pa

NAME, VERSION = "refined_bias", 1
KINDS: tuple[IntervalKind, ...] = ("images", "classes")
METRICS = tuple(f"{cue}_{m}" for m in ("sensitivity", "preference", "top1", "top5") for cue in CUES)
_FIELD = {"images": "ids", "classes": "classes"}


@dataclass(frozen=True)
class Part:
    """Some of the stimuli of both cues: what one condition is about."""

    condition: str
    keep: Mapping[str, Bools]
    note: str = ""


@dataclass(frozen=True)
class Scorer:
    """All rows of one observer under one view."""

    responses: Responses
    options: ScoreOptions

    @cached_property
    def trials(self) -> dict[str, Trials]:
        """Cue → answers."""
        return trials_of(self.responses)

    def rows(self) -> list[Score]:
        """Return the rows: both cues and the preference, then clean files, patch sizes, classes, distortion."""
        view = self.responses.view
        everything = {cue: np.ones(len(t.shown), bool) for cue, t in self.trials.items()}
        rows = self._both(Part(view, everything))
        rows += self._both(self._clean(view))
        for part in self._patches(view):
            rows += self._cue(self.trials["texture"], part, self._kinds)
        for cue in CUES:
            for part in self._classes(view, cue):
                rows += self._cue(self.trials[cue], part, ("images",))
        return rows + self._distorted(view, everything)

    @cached_property
    def _kinds(self) -> tuple[IntervalKind, ...]:
        people = self.trials["shape"].subjects is not None
        return (*KINDS, "subjects") if people else KINDS

    # ------------------------------------------------------------------------------------------ parts of the set

    def _clean(self, view: str) -> Part:
        keep = {cue: t.shown.clean for cue, t in self.trials.items()}
        found = defects_of(self.responses.stimuli)
        return Part(f"{view}/clean", keep, f"left out: {summary(found, len(self.responses.stimuli))}")

    def _patches(self, view: str) -> Iterator[Part]:
        patch = self.trials["texture"].shown.patch
        for size in sorted({int(p) for p in patch if p}):
            yield Part(f"{view}/patch={size}", {"texture": patch == str(size)})

    def _classes(self, view: str, cue: str) -> Iterator[Part]:
        classes = self.trials[cue].shown.classes
        for name in sorted(set(classes.tolist())):
            yield Part(f"{view}/class={name}", {cue: classes == name})

    # ------------------------------------------------------------------------------------------------------ rows

    def _both(self, part: Part) -> list[Score]:
        """Return the rows of both cues, then the two preferences."""
        rows = [row for cue in CUES for row in self._cue(self.trials[cue], part, self._kinds)]
        rows += [row for cue in CUES for row in self._preference(cue, part)]
        return sorted(rows, key=lambda row: METRICS.index(row.metric))

    def _cue(self, trials: Trials, part: Part, kinds: Sequence[IntervalKind]) -> list[Score]:
        shown = part.keep[trials.cue]
        rows = shown[trials.stimulus]
        columns = {m: trials.values[m][rows].astype(np.float64) for m in MEASURES if m in trials.values}
        by_kind = {k: mean_estimates(columns, self._draws(trials, rows, k, columns), k) for k in kinds}
        return [
            self._row(
                part, f"{trials.cue}_{measure}", by_kind[kind].get(measure) or _missing(kind, trials.reason), shown
            )
            for measure in MEASURES
            for kind in (kinds if measure in columns else kinds[:1])
        ]

    def _draws(self, trials: Trials, rows: Bools, kind: IntervalKind, columns: Mapping[str, Any]) -> Draws:
        clusters = trials.subjects if kind == "subjects" else trials.of(_FIELD[kind])
        assert clusters is not None
        table = np.column_stack(list(columns.values())) if columns else np.empty((int(rows.sum()), 0))
        # A stream for each cue: shape and texture images are drawn independently of each other.
        stream = f"refined_bias/{trials.cue}/{kind}"
        return resampled_means(table, clusters[rows], stream, seed=self.options.seed, resamples=self.options.resamples)

    def _preference(self, cue: str, part: Part) -> list[Score]:
        other = CUES[1 - CUES.index(cue)]
        shown = np.concatenate([part.keep[c] for c in (cue, other)])
        return [self._row(part, f"{cue}_preference", self._preferred(cue, other, part, kind), shown) for kind in KINDS]

    def _preferred(self, cue: str, other: str, part: Part, kind: IntervalKind) -> Estimate:
        values, draws, reasons = [], [], []
        for name in (cue, other):
            trials = self.trials[name]
            if "sensitivity" not in trials.values:
                return _missing(kind, trials.reason)
            rows = part.keep[name][trials.stimulus]
            column = trials.values["sensitivity"][rows]
            drawn = self._draws(trials, rows, kind, {"sensitivity": column})
            values.append(column)
            draws.append(drawn.means[:, 0])
            reasons += [f"{name} cues: {drawn.reason}"] if drawn.reason else []
        return preference_estimate(values[0], values[1], draws[0], draws[1], kind, "; ".join(reasons))

    def _distorted(self, view: str, keep: Mapping[str, Bools]) -> list[Score]:
        rows = []
        for cue, trials in self.trials.items():
            if "distorted" in trials.values:
                everything = np.ones(len(trials.stimulus), bool)
                column = {"distorted": trials.values["distorted"].astype(np.float64)}
                drawn = self._draws(trials, everything, "images", column)
                made = mean_estimates(column, drawn, "images")["distorted"]
                note = f"{int(column['distorted'].sum()):,} images"
                part = Part(f"{view}/cue={cue}", keep, note)
                rows.append(self._row(part, "distorted_prediction", made, keep[cue]))
        return rows

    def _row(self, part: Part, metric: str, made: Estimate, shown: Bools) -> Score:
        stimuli, interval = self.responses.stimuli, made.bootstrap.interval
        each = 1
        if self.trials["shape"].subjects is not None:
            each = len(np.unique(np.concatenate([t.subjects for t in self.trials.values() if t.subjects is not None])))
        partial = partial_notes(stimuli.partial)
        unreadable = [f"{len(self.responses.excluded):,} unreadable"] if self.responses.excluded else []
        notes = [part.note, made.bootstrap.note, *unreadable, *partial, *self.responses.notes]
        return Score(
            protocol=NAME,
            protocol_version=VERSION,
            observer=self.responses.observer,
            condition=part.condition,
            metric=metric,
            value=made.value,
            ci_low=interval.low,
            ci_high=interval.high,
            ci_kind=interval.kind,
            n=made.n,
            n_excluded=len(shown) * each - made.n,
            note="; ".join(n for n in notes if n),
        )


def _missing(kind: IntervalKind, reason: str) -> Estimate:
    return Estimate(mean(np.zeros(0)), 0, undefined(kind, reason))


def rank_table(responses: Sequence[Responses]) -> pa.Table:
    """Return the rank of every answer: observer, view, stimulus, cue, class, patch, rank (1: right)."""
    import pyarrow as pa

    names = ("observer", "view", "stimulus", "cue", "class", "patch", "rank")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for one in responses:
        for cue, trials in trials_of(one).items():
            count = len(trials.ranks)
            columns["observer"] += [one.observer] * count
            columns["view"] += [one.view] * count
            columns["cue"] += [cue] * count
            for name, field in (("stimulus", "ids"), ("class", "classes"), ("patch", "patch")):
                columns[name] += trials.of(field).tolist() if count else []
            columns["rank"] += trials.ranks.tolist()
    types = [pa.string()] * 6 + [pa.int32()]
    return pa.table({n: pa.array(columns[n], t) for n, t in zip(names, types)})


def defect_table(responses: Sequence[Responses]) -> pa.Table:
    """Return what the data check found: stimulus, path, kind, detail."""
    import pyarrow as pa

    seen = {d: None for one in responses for d in defects_of(one.stimuli)}
    names = ("stimulus", "path", "kind", "detail")
    return pa.table({n: pa.array([getattr(d, n) for d in seen], pa.string()) for n in names})
