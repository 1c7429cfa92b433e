"""Rows of the result: every number with its intervals, what it leaves out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cuebench.arrays import Bools, Floats
from cuebench.metrics.human_agreement import agreement, over_people
from cuebench.observers.model_vs_human import DATA_SETS, OTHERWISE_SPELLED
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.human_alignment.intervals import NO_INTERVAL, intervals
from cuebench.protocols.human_alignment.numbers import METRICS, Alignment, Numbers, align
from cuebench.protocols.human_alignment.trials import Contest, Measured
from cuebench.responses.table import Responses, once
from cuebench.stimuli.readers.model_vs_human import is_shortfall
from cuebench.tables.engine import Result
from cuebench.types import Estimate

if TYPE_CHECKING:
    import pyarrow as pa

MEAN = "mean"
ORDER = ("error_consistency", "error_consistency_bound", "accuracy", "observed_consistency", "accuracy_difference")
"""Metrics in the order of the rows: tables show those that fit, and no consistency stands without its bound."""
BY_VALUE, BY_SPELLING = "by_value", "by_spelling"
LEFT_OUT = "left out of the means: "
"""How the note of a condition begins that no mean contains."""


def left_out_conditions(rule: str) -> dict[str, str]:
    """Return ``<data set>/<condition>`` → why it is outside all means.

    Parameters
    ----------
    rule : str
        ``by_value``: the conditions of the paper. ``by_spelling``: without those that raw files spell otherwise.
    """
    return {
        f"{d.name}/{condition}": why
        for d in DATA_SETS.values()
        for condition, why in d.left_out.items()
        if rule == BY_VALUE or condition not in OTHERWISE_SPELLED.get(d.name, ())
    }


def together(everyone: Sequence[Measured], options: ScoreOptions) -> Result:
    """Compare all observers with people and return their numbers, one observer after the other."""
    contest = Contest.of(everyone)
    left_out = left_out_conditions(options.values.get("left_out", BY_VALUE))
    models = [
        k
        for k, m in enumerate(everyone)
        if m.responses.kind in ("model", "ideal") and not m.responses.baseline_of and len(contest.compared[k])
    ]
    result = Result(tables={"error_consistency": consistency_table(contest, left_out)})
    computed = align(contest, left_out, np.array(models, np.intp))
    for k in range(len(contest.observers)):
        _Rows(result, contest, computed, left_out, k).add()
    return result


class _Images(NamedTuple):
    """Images of one condition, of one observer: how many it was shown, and how many could not be read."""

    shown: Counter[str]
    unreadable: Counter[str]

    @classmethod
    def of(cls, responses: Responses) -> _Images:
        """Count them."""
        stimuli = responses.stimuli
        shown = once(stimuli, "images by condition", lambda: Counter(s.condition for s in stimuli))
        excluded = responses.excluded
        return cls(shown, Counter(s.condition for s in stimuli if s.id in excluded) if excluded else Counter())


class _Rows:
    """The rows of one observer."""

    def __init__(
        self, result: Result, contest: Contest, computed: Alignment, left_out: Mapping[str, str], k: int
    ) -> None:
        self._result, self._contest, self._computed, self._left_out, self._k = result, contest, computed, left_out, k
        self._responses = contest.observers[k].responses
        self._images = _Images.of(self._responses)
        partial = self._responses.stimuli.partial
        self._restricted = tuple(reason for reason in partial if not is_shortfall(reason))
        self._people = _people(contest, k)

    def add(self) -> None:
        """Add the mean first, then every data set with its conditions."""
        computed, sets = self._computed, self._contest.data_sets
        everywhere = [place for name in computed.data_sets for place in sets[name]]
        self._add(MEAN, computed.mean, everywhere, self._responses.stimuli.partial, self._mean_notes())
        self._add_rank()
        for name, places in sets.items():
            if name in computed.data_sets:
                self._add(name, computed.data_sets[name], places, self._partial(places), self._compared(name))
            for place in places if places != [name] else ():
                self._add(place, computed.conditions[place], [place], self._partial([place]))

    def _add(
        self, condition: str, numbers: Numbers, places: Sequence[str], partial: Sequence[str], notes: Sequence[str] = ()
    ) -> None:
        """Add the numbers of one condition, of a data set or of all; ``notes`` are about the people compared with."""
        if condition in self._left_out:
            kept, notes = places, (LEFT_OUT + self._left_out[condition],)
        else:
            kept = [place for place in places if place not in self._left_out]
        shown, unreadable = (sum(count[p] for p in kept) for count in self._images)
        outside = sum(self._images.shown[p] for p in places) - shown
        answered = int(numbers.images[0, self._k])
        pooled = self._contest.observers[self._k].subjects is not None
        for metric in ORDER:
            row = METRICS.index(metric)
            value, n = float(numbers.values[row, self._k]), int(numbers.images[row, self._k])
            if np.isnan(value):
                continue
            excluded = {"unreadable": unreadable, "unanswered": shown - answered - unreadable}
            excluded |= {"not seen by people": answered - n} if row else {}
            excluded |= {"in conditions left out": outside} if outside else {}
            estimate = Estimate(value, n, intervals(numbers, metric, self._k, pooled=pooled))
            estimate = estimate.excluding(excluded).noting(NO_INTERVAL.get(metric, ""), *notes)
            self._result.add(self._responses, condition, metric, estimate, partial=partial)

    def _add_rank(self) -> None:
        ranks = self._computed.ranks
        value = float(ranks[self._k])
        if np.isnan(value):
            return
        models, sets = int((~np.isnan(ranks)).sum()), self._computed.ranked_on
        note = f"mean of 3 ranks among {models} observers on {sets} data set{'s' * (sets != 1)}"
        estimate = Estimate(value, 3).noting(NO_INTERVAL["mean_rank"], note)
        self._result.add(self._responses, MEAN, "mean_rank", estimate)

    def _partial(self, places: Sequence[str]) -> tuple[str, ...]:
        """Return why the images of some conditions of one data set are incomplete."""
        name, _, condition = places[0].partition("/")
        shown = sum(self._images.shown[p] for p in places)
        expected = DATA_SETS[name].expected(condition if len(places) == 1 else "")
        short = (f"{shown:,} of {expected:,} images of {places[0] if len(places) == 1 else name}",)
        return (*self._restricted, *(short if shown != expected else ()))

    def _compared(self, name: str) -> tuple[str, ...]:
        number = self._people.get(name, 0)
        if self._contest.observers[self._k].subjects is not None:
            return (f"{number} people, each with each",)
        other = "other " if self._responses.kind == "person" else ""
        return (f"compared with {number} {other}people" if number else "no people answered these images",)

    def _mean_notes(self) -> tuple[str, ...]:
        numbers = [n for n in self._people.values() if n]
        if not numbers:
            return ("nobody to compare with: agreement with people needs their answers",)
        low, high = min(numbers), max(numbers)
        people = f"{low} people" if low == high else f"{low} to {high} people"
        sets = f"{len(numbers)} data set{'s' * (len(numbers) != 1)} with {people} each"
        if self._responses.kind == "person" and len(numbers) > 1:
            return (sets, "not the same person in every data set")
        return (sets,)


def _people(contest: Contest, k: int) -> dict[str, int]:
    """Return data set → with how many people an observer is compared there; of a pool, how many people it has."""
    people = {}
    pairs = contest.pairs[contest.compared[k]]
    pooled = contest.observers[k].subjects is not None
    for name, places in contest.data_sets.items():
        images = np.concatenate([contest.places[p] for p in places])
        here: Bools = np.asarray(contest.seen[:, images].any(axis=1))
        units = np.unique(pairs[here[pairs].all(axis=1)])
        people[name] = len(units if pooled else np.setdiff1d(units, contest.members[k]))
    return people


def consistency_table(contest: Contest, left_out: Mapping[str, str]) -> pa.Table:
    """Return the error consistency of all pairs of observers, by data set and in the mean.

    Columns ``observer``, ``other``, ``condition``, ``value``, ``n``: images that both saw. Pooled people are compared
    by the mean over them; with themselves, by the mean over their pairs. An observer is not compared with itself.
    """
    import pyarrow as pa

    by_set: dict[str, Floats] = {}
    shared: dict[str, Floats] = {}
    for name, places in contest.data_sets.items():
        parts = []
        for place in (p for p in places if p not in left_out):
            seen, right = (a[:, contest.places[place]].astype(np.float64) for a in (contest.seen, contest.correct))
            both_saw, first = seen @ seen.T, right @ seen.T
            parts.append(agreement(both_saw, first, first.T, right @ right.T).error_consistency)
            shared[name] = shared.get(name, np.zeros_like(both_saw)) + both_saw
        if parts:
            by_set[name] = over_people(np.stack(parts, axis=-1))
            np.fill_diagonal(by_set[name], np.nan)
    rows = []
    for observer, members in zip(contest.observers, contest.members):
        for other, others in zip(contest.observers, contest.members):
            block = np.ix_(members, others)
            values = {name: float(over_people(kappas[block].ravel())) for name, kappas in by_set.items()}
            images = {name: int(shared[name][block].max()) for name in by_set}
            values[MEAN], images[MEAN] = float(over_people(np.array([*values.values()]))), sum(images.values())
            names = observer.responses.observer, other.responses.observer
            rows += [(*names, name, v, images[name]) for name, v in values.items() if not np.isnan(v)]
    columns = zip(*rows) if rows else [()] * len(PAIRS)
    return pa.table({name: pa.array(c, kind) for (name, kind), c in zip(PAIRS.items(), columns)})


PAIRS = {"observer": "string", "other": "string", "condition": "string", "value": "double", "n": "int64"}
