"""Trials → numbers: protocols declare their quantities, and the engine computes them.

From the same declarations come the scores, what each answer adds to the headline (`sums`: for paired comparison, power
and steering) and the condition of each row of `cuebench trials`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.metrics.base import Metric
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import mean_of_subjects, missing, ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters, ways_of
from cuebench.statistics.means import mean_estimates
from cuebench.statistics.ratios import Terms
from cuebench.tables.trials import Trials, Words
from cuebench.types import Estimate, IntervalKind

SOURCES: Mapping[IntervalKind, str] = {
    "images": "id", "shape_sources": "shape_source", "texture_sources": "texture_source", "classes": "label",
}  # fmt: skip
"""Kind of interval → the field of the stimuli whose values would be drawn anew."""


if TYPE_CHECKING:
    import pyarrow as pa


def everything(trials: Trials) -> Bools:
    """Choose all trials."""
    return np.ones(len(trials), bool)


def first_space(trials: Trials) -> Bools:
    """Choose one set of classes: that of the stimuli, or the only one that the answers can be read in."""
    return np.asarray(trials.space.codes == 0)


Choice = Callable[[Trials], Bools]
Estimator = Callable[[Sequence[Terms], Trials, Sequence[IntervalKind]], list[Estimate]]


def ratios(terms: Sequence[Terms], trials: Trials, kinds: Sequence[IntervalKind]) -> list[Estimate]:
    """Return Σ numerator / Σ denominator with closed-form intervals."""
    images, shapes, textures = (trials.clusters(SOURCES[kind]) for kind in KINDS[:3])
    clusters = Clusters(images, shapes, textures, None if trials.subject is None else trials.subject.codes)
    return ratio_estimates(terms, clusters, kinds)


def means(terms: Sequence[Terms], trials: Trials, kinds: Sequence[IntervalKind]) -> list[Estimate]:
    """Return the mean numerator with intervals from leaving each cluster out."""
    clusters = {kind: _cluster(trials, kind) for kind in kinds}
    return [mean_estimates({"": np.asarray(t.numerator, np.float64)}, clusters, "")[""] for t in terms]


def _cluster(trials: Trials, kind: IntervalKind) -> Array:
    if kind == "subjects":
        assert trials.subject is not None
        return trials.subject.codes
    return trials.clusters(SOURCES[kind])


def by_subject(terms: Sequence[Terms], trials: Trials, kinds: Sequence[IntervalKind]) -> list[Estimate]:
    """Return the mean over people of each one's ratio."""
    assert trials.subject is not None
    return [mean_of_subjects(t, trials.subject.codes) for t in terms]


class Measurement(NamedTuple):
    """One number of one observer, before it becomes rows of the result."""

    responses: Responses
    condition: str
    metric: str
    estimate: Estimate
    partial: tuple[str, ...]


@dataclass
class Result:
    """What a protocol found: numbers, and tables that do not fit the tidy form (a confusion matrix)."""

    measurements: list[Measurement] = field(default_factory=list)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def add(
        self,
        responses: Responses,
        condition: str,
        metric: str,
        estimate: Estimate,
        *,
        partial: Iterable[str] | None = None,
    ) -> None:
        """Add a number.

        Parameters
        ----------
        responses : Responses
            Whose answers it was computed from.
        condition, metric : str
            As they appear in the result.
        estimate : Estimate
            The number. What is partial or unreadable, and the observer's own notes, are added to it later.
        partial : iterable of str, optional
            The reasons why the stimuli behind this number are incomplete, where they are not those of the whole set.
        """
        reasons = responses.stimuli.partial if partial is None else tuple(partial)
        # The parts of thousands of numbers would fill the memory, and nothing is derived from a finished number.
        self.measurements.append(Measurement(responses, condition, metric, replace(estimate, left_out={}), reasons))

    def extend(self, other: Result) -> None:
        """Add the numbers and tables of another result."""
        self.measurements += other.measurements
        self.tables |= other.tables


class Quantity(NamedTuple):
    """A number that a protocol has.

    Parameters
    ----------
    metric : Metric
        What it is.
    terms : callable
        ``terms(trials) -> Terms``: what each trial adds to numerator and denominator.
    condition : str
        The name of each of its conditions, with columns in braces: grouping, naming and order in one text.
    about : callable
        Which trials it is about.
    counted : callable
        Which of these enter it.
    outside : mapping of str to callable
        Why trials are outside its denominator → which; the first reason that holds is said.
    kinds : tuple of str
        Kinds of interval; those of people where there are several.
    estimate : callable
        ``estimate(terms, trials, kinds)``: how the number and its intervals are made.
    absent : bool
        Say why sets of classes are missing, as rows without a number.
    """

    metric: Metric
    terms: Callable[[Trials], Terms]
    condition: str = "{space}"
    about: Choice = everything
    counted: Choice = everything
    outside: Mapping[str, Choice] = {}
    kinds: tuple[IntervalKind, ...] = KINDS
    estimate: Estimator = ratios
    absent: bool = False

    @property
    def fields(self) -> list[str]:
        """The columns that its conditions are made of."""
        return [name for _, name, _, _ in Formatter().parse(self.condition) if name]

    def excluded(self, trials: Trials) -> dict[str, int]:
        """Return why trials are outside the denominator → how many."""
        left = np.ones(len(trials), bool)
        reasons = {}
        for why, choice in self.outside.items():
            here = left & choice(trials)
            reasons[why] = int(here.sum())
            left &= ~here
        return reasons


class Group(NamedTuple):
    """One condition of a quantity: its name, its trials, and the positions of the stimuli that it is about."""

    condition: str
    trials: Trials
    stimuli: Array


def every_stimulus(trials: Trials) -> Trials:
    """Return a row for each stimulus in each set of classes, answered or not: what conditions are made of."""
    number, spaces = len(trials.asked.stimuli), len(trials.space.words)
    among = np.zeros(spaces, bool)
    among[trials.space.codes] = trials.among_targets
    zeros = np.zeros(number * spaces, np.int32)
    return Trials(
        asked=trials.asked,
        stimulus=np.tile(np.arange(number), spaces),
        space=Words(np.repeat(np.arange(spaces, dtype=np.int32), number), trials.space.words),
        among_targets=np.repeat(among, number),
        answer=Words(zeros, trials.answer.words),
        outcome=Words(zeros, trials.outcome.words),
        correct=zeros.astype(bool),
        row=zeros,
        subject=trials.subject and Words(zeros, trials.subject.words),
    )


def groups(trials: Trials, quantity: Quantity) -> Iterator[Group]:
    """Yield the conditions of a quantity, in the order of their words."""
    asked, fields = every_stimulus(trials), quantity.fields
    asked = asked.only(quantity.about(asked))
    about = trials.only(quantity.about(trials))
    keys = [_combined(table, fields) for table in (asked, about)]
    for key in np.unique(keys[0]):
        stimuli = asked.stimulus[here := keys[0] == key]
        first = asked.only(np.flatnonzero(here)[:1])
        words = {name: first.words(name).texts()[0] for name in fields}
        yield Group(quantity.condition.format(**words), about.only(keys[1] == key), stimuli)


def _combined(table: Trials, fields: Sequence[str]) -> Array:
    """Return one number for each row: equal where all fields are equal, in the order of their words."""
    key = np.zeros(len(table), np.int64)
    for name in fields:
        column = table.words(name)
        key = key * len(column.words) + column.codes
    return key


def measure(trials: Trials, quantities: Sequence[Quantity], result: Result) -> None:
    """Add every number of one observer; quantities that stand together and rest on the same trials are made at once."""
    for _, alike in groupby(quantities, lambda q: (q.condition, q.about, q.counted, q.kinds, q.estimate, q.absent)):
        together = list(alike)
        first = together[0]
        kinds = [k for k in first.kinds if "subjects" not in ways_of(k) or trials.subject is not None]
        found = []
        for group in groups(trials, first):
            counted = group.trials.only(first.counted(group.trials))
            found.append((group, first.estimate([q.terms(counted) for q in together], counted, kinds)))
        for i, quantity in enumerate(together):
            for group, estimates in found:
                estimate = _with_exclusions(estimates[i], quantity, group, trials)
                result.add(trials.asked, group.condition, quantity.metric.name, estimate)
            if first.absent:
                _add_absent(result, trials, quantity)


def _with_exclusions(estimate: Estimate, quantity: Quantity, group: Group, trials: Trials) -> Estimate:
    if quantity.estimate is by_subject:
        return estimate
    excluded, stimuli = trials.asked.excluded, trials.asked.stimuli.stimuli
    unreadable = sum(stimuli[i].id in excluded for i in group.stimuli) * trials.people if excluded else 0
    unanswered = len(group.stimuli) * trials.people - len(group.trials) - unreadable
    reasons = {**quantity.excluded(group.trials), "unreadable": unreadable, "unanswered": unanswered}
    return estimate.excluding(reasons)


def _add_absent(result: Result, trials: Trials, quantity: Quantity) -> None:
    """Say for each condition in which sets of classes the answers cannot be read, and why."""
    for space, why in trials.absent.items():
        conditions = Counter(
            quantity.condition.format(space=space, condition=s.condition) for s in trials.asked.stimuli
        )
        for name, number in conditions.items():
            # Version 3 of pure_shape, the protocol with jackknives, counts stimuli here; the others count answers.
            each = 1 if quantity.estimate is means else trials.people
            absent = missing(why, excluded={"without logits": number * each})
            result.add(trials.asked, name, quantity.metric.name, absent)


def sums(trials: Trials, quantity: Quantity, condition: str) -> Sums | None:
    """Return what each answer adds to a number in one condition; None where there is no such condition."""
    for group in groups(trials, quantity):
        if group.condition == condition and len(group.trials):
            counted = group.trials.only(quantity.counted(group.trials))
            images = np.array([s.image for s in trials.asked.stimuli])[counted.stimulus]
            sources: dict[IntervalKind, Array] = {
                kind: counted.words(SOURCES[kind]).texts().astype(np.str_)
                for kind in quantity.kinds
                if kind in SOURCES and kind != "images"
            }
            if counted.subject is not None:
                sources["subjects"] = counted.subject.texts().astype(np.str_)
            return Sums.of_ratio(quantity.terms(counted), images, sources)
    return None
