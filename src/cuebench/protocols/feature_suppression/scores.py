"""From answers to suppressed photographs to rows. Private to ``feature_suppression``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics.relative_accuracy import resampled_accuracies
from cuebench.metrics.shape_reliance import shape_reliance
from cuebench.protocols import correctness
from cuebench.protocols.base import ScoreOptions, partial_notes
from cuebench.protocols.feature_suppression.suppressions import LEVELS, ORIGINAL, Suppression, suppressions
from cuebench.responses.table import Responses
from cuebench.statistics.intervals import Bootstrap, percentile, undefined
from cuebench.types import Score

NAME, VERSION = "feature_suppression", 1


@dataclass(frozen=True)
class Value:
    """What is known of one condition: the value, its draws, how many pictures it rests on."""

    value: float
    draws: Array
    n: int


@dataclass(frozen=True)
class Table:
    """Photographs × conditions of one observer: was the picture shown, was the answer right."""

    responses: Responses
    options: ScoreOptions
    conditions: tuple[Suppression, ...]
    shown: Array
    correct: Array

    @classmethod
    def of(cls, responses: Responses, options: ScoreOptions) -> Table:
        """Sort the answers into the table."""
        present = {s.condition for s in responses.stimuli}
        conditions = tuple(c for c in suppressions() if c.condition in present)
        column = {c.condition: i for i, c in enumerate(conditions)}
        ids = np.array([i.rpartition("|")[0] for i in responses.truth("id").tolist()], np.str_)
        names, row = np.unique(ids, return_inverse=True)
        where = (row.ravel(), np.array([column[c] for c in responses.truth("condition")], dtype=np.intp))
        shown, correct = (np.zeros((len(names), len(conditions)), bool) for _ in range(2))
        shown[where] = True
        correct[where] = correctness.right(responses)
        return cls(responses, options, conditions, shown, correct)

    @cached_property
    def _draws(self) -> Array:
        options = self.options
        return resampled_accuracies(self.correct, self.shown, seed=options.seed, resamples=options.resamples)

    @cached_property
    def _accuracy(self) -> dict[str, Value]:
        """Condition → accuracy."""
        found = {}
        for i, c in enumerate(self.conditions):
            n = int(self.shown[:, i].sum())
            found[c.condition] = Value(self.correct[:, i].sum() / n if n else np.nan, self._draws[:, i], n)
        return found

    @cached_property
    def _relative(self) -> dict[str, Value]:
        """Condition → accuracy over that of the original; empty where the original was not shown."""
        base = self._accuracy.get(ORIGINAL)
        if base is None:
            return {}
        return {
            name: Value(_over(v.value, base.value), _over(v.draws, base.draws), v.n)
            for name, v in self._accuracy.items()
            if name != ORIGINAL
        }

    def rows(self) -> list[Score]:
        """Return the summary first: reliance, kinds, suppressions; then every level and pair, then the accuracies."""
        kinds = dict(self._kinds())
        rows = [self._reliance(kinds)]
        rows += [self._row(f"suppress={kind}", "relative_accuracy", v) for kind, v in kinds.items()]
        rows += [
            self._row(name, "relative_accuracy", v) for name, v in self._names().items() if name not in self._relative
        ]
        rows += [self._row(name, "relative_accuracy", v) for name, v in self._relative.items()]
        return rows + [self._row(name, "accuracy", v) for name, v in self._accuracy.items()]

    def _names(self) -> dict[str, Value]:
        """Return suppression → mean over its levels."""
        levels: dict[str, list[Value]] = {}
        for c in self.conditions:
            if len(c.kinds) == 1 and c.condition in self._relative:
                levels.setdefault(c.name, []).append(self._relative[c.condition])
        return {name: _mean(values) for name, values in levels.items()}

    def _kinds(self) -> Iterator[tuple[str, Value]]:
        """Yield what is taken away and the mean over its suppressions, each of which weighs the same."""
        names = self._names()
        for kind, members in LEVELS.items():
            own = [names[n] for n in members if n in names]
            if own:
                yield kind, _mean(own)

    def _reliance(self, kinds: Mapping[str, Value]) -> Score:
        if not {"shape", "texture"} <= set(kinds):
            missing = Value(float("nan"), np.empty(0), 0)
            return self._row("all", "shape_reliance", missing, "needs suppressions of shape and of texture")
        shape, texture = kinds["shape"], kinds["texture"]
        lost = [np.maximum(0, 1 - v.draws) for v in (shape, texture)]
        draws = _over(lost[0], lost[0] + lost[1])
        value = shape_reliance(shape.value, texture.value)
        return self._row("all", "shape_reliance", Value(value, draws, shape.n + texture.n))

    def _row(self, condition: str, metric: str, found: Value, why: str = "") -> Score:
        boot = self._interval(found, why)
        stimuli = self.responses.stimuli
        photographs = len({s.path for s in stimuli})
        partial = partial_notes(stimuli.partial)
        unreadable = [f"{len(self.responses.excluded):,} unreadable"] if self.responses.excluded else []
        notes = [f"{len(self.shown):,} photographs", boot.note, *unreadable, *partial, *self.responses.notes]
        shown = sum(s.condition == condition for s in stimuli)
        return Score(
            protocol=NAME,
            protocol_version=VERSION,
            observer=self.responses.observer,
            condition=condition,
            metric=metric,
            value=float(found.value),
            ci_low=boot.interval.low,
            ci_high=boot.interval.high,
            ci_kind=boot.interval.kind,
            n=found.n,
            n_excluded=max(0, shown - found.n) if shown else photographs - len(self.shown),
            note="; ".join(n for n in notes if n),
        )

    def _interval(self, found: Value, why: str) -> Bootstrap:
        if why or len(self.shown) < 2:
            return undefined("images", why or f"{len(self.shown)} photograph: nothing to resample")
        return percentile(found.draws, "images")


def _over(top: Any, bottom: Any) -> Any:
    """Divide; NaN where the denominator is 0."""
    top, bottom = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    return np.divide(top, bottom, out=np.full(np.broadcast(top, bottom).shape, np.nan), where=bottom > 0)


def _mean(values: Sequence[Value]) -> Value:
    return Value(
        float(np.mean([v.value for v in values])), np.mean([v.draws for v in values], axis=0), sum(v.n for v in values)
    )
