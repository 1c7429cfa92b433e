"""Values and bootstrap draws of every observer in every condition, in every data set and in the mean.

Three kinds of draws: images within their condition (the same ones for all observers), people within their data set, and
data sets. Counts of right answers in resampled images are products of matrices: weights of the images times what each
image adds. They are made for some thousands of draws at a time, so that memory does not grow with the number of pairs.

Two accuracies differ more in resampled images than in the images themselves, so that draws of a squared difference lie
above its value, and those of the bound below. Intervals are percentiles of draws that are moved to have the value as
their mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuebench.arrays import Array, Bools, Floats, Positions
from cuebench.metrics.accuracy import terms as accuracy_terms
from cuebench.metrics.human_agreement import Agreement, agreement, mean_rank, over_people
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.human_alignment.trials import Contest
from cuebench.statistics.intervals import Limits, percentile_limits, weight_parts, weights
from cuebench.statistics.ratios import total
from cuebench.types import IntervalKind

METRICS = ("accuracy", *Agreement._fields)
"""Order of the first axis of values: one accuracy, then four comparisons with people."""
_AT_ONCE = 100_000  # draws × pairs: a chunk of every statistic stays in the processor's cache


@dataclass(frozen=True)
class Numbers:
    """The numbers of all observers in one condition, in one data set, or in the mean.

    Parameters
    ----------
    values : float array metrics × observers
        NaN where an observer has none.
    images : int array metrics × observers
        Images that each value rests on.
    limits : mapping of kind to Limits
        Ends of the intervals, metrics × observers.
    """

    values: Floats
    images: Positions
    limits: Mapping[IntervalKind, Limits]


@dataclass(frozen=True)
class Alignment:
    """Everything that was computed of a contest.

    Parameters
    ----------
    conditions, data_sets : mapping of str to Numbers
        By ``<data set>/<condition>`` and by data set.
    mean : Numbers
        Over all data sets in which an observer has a value.
    ranks : Numbers
        One row of mean ranks; NaN for those who are not ranked.
    """

    conditions: dict[str, Numbers]
    data_sets: dict[str, Numbers]
    mean: Numbers
    ranks: Numbers


def align(contest: Contest, left_out: Mapping[str, str], ranked: Positions, options: ScoreOptions) -> Alignment:
    """Compute every number of every observer.

    Parameters
    ----------
    contest : Contest
        Who was right in which trial.
    left_out : mapping of str to str
        Conditions outside the means of their data set → why.
    ranked : int array
        Observers that are ranked among each other.
    options : ScoreOptions
        Seed and resamples.
    """
    conditions, data_sets = dict[str, Numbers](), dict[str, Numbers]()
    everything, common = _Mean(options), _Mean(options)
    for name, places in contest.data_sets.items():
        kept = [place for place in places if place not in left_out]
        part = _DataSet(contest, name, places, kept, options)
        for place in places:
            conditions[place], _ = part.numbers([place], place)
        if kept:
            data_sets[name], draws = part.numbers(kept, "")
            everything.add(data_sets[name], draws)
            if not np.isnan(data_sets[name].values[1:, ranked]).any():
                common.add(data_sets[name], draws, ranked)
    nothing = np.full((len(METRICS), len(contest.observers)), np.nan)
    mean = everything.numbers() if len(everything) else Numbers(nothing, np.zeros(nothing.shape, np.intp), {})
    return Alignment(conditions, data_sets, mean, _ranks(common, ranked, len(contest.observers)))


class _Mean:
    """The mean over data sets, added up one after the other."""

    def __init__(self, options: ScoreOptions) -> None:
        self._options = options
        self._values = list[Floats]()
        self._images: Any = 0
        self._sums = dict[IntervalKind, Any]()

    def __len__(self) -> int:
        return len(self._values)

    def add(self, numbers: Numbers, draws: Mapping[IntervalKind, Array], observers: Any = slice(None)) -> None:
        """Add the numbers of a data set and their draws; of some observers only."""
        values = numbers.values[:, observers]
        self._values.append(values)
        self._images = self._images + numbers.images[:, observers]
        for kind, drawn in draws.items():
            part = np.where(np.isnan(values)[..., None], 0.0, drawn[:, observers])
            self._sums[kind] = self._sums.get(kind, 0.0) + part

    def draws(self) -> dict[IntervalKind, Array]:
        """Return kind → metrics × observers × draws of the mean."""
        values = np.stack(self._values, axis=-1)
        defined = ~np.isnan(values)
        number = defined.sum(axis=-1)[..., None]
        draws = {kind: _divided(sums, number) for kind, sums in self._sums.items()}
        if len(self) > 1:
            options = self._options
            drawn = weights("data_sets", len(self), options.seed, options.resamples).astype(np.float64).T
            draws["data_sets"] = _divided(np.where(defined, values, 0.0) @ drawn, defined.astype(np.float64) @ drawn)
        return draws

    def numbers(self) -> Numbers:
        """Return the means with their intervals."""
        values = over_people(np.stack(self._values, axis=-1))
        return Numbers(values, self._images, {kind: _limits(values, drawn) for kind, drawn in self.draws().items()})


def _ranks(common: _Mean, ranked: Positions, observers: int) -> Numbers:
    """Return the mean ranks on the data sets that all ranked observers answered, and their intervals."""
    values = np.full((1, observers), np.nan)
    images = np.zeros((1, observers), np.intp)
    if len(ranked) < 2 or not len(common):
        return Numbers(values, images, {})
    values[0, ranked] = mean_rank(*common.numbers().values[1:4])
    images[0, ranked] = len(common)
    limits = {}
    for kind, drawn in common.draws().items():
        within = percentile_limits(np.moveaxis(mean_rank(*np.moveaxis(drawn[1:4], 1, -1)), -1, 0))
        parts = [np.full((1, observers), empty) for empty in (np.nan, np.nan, 0)]
        for part, ends in zip(parts, within):
            part[0, ranked] = ends
        limits[kind] = Limits(*parts)
    return Numbers(values, images, limits)


def _limits(values: Floats, draws: Array) -> Limits:
    """Return the ends of intervals, from draws that are moved to have the values as their means."""
    low, high, defined = percentile_limits(draws)
    shift = values - over_people(draws)
    least = np.where(np.array(METRICS) == "error_consistency", -1.0, 0.0)[:, None]
    # Where draws are skewed, moving them can carry an end past the value, or out of the range of the metric.
    low, high = (np.clip(end + shift, least, 1.0) for end in (low, high))
    return Limits(np.minimum(low, values), np.maximum(high, values), defined)


def _divided(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0)


class _DataSet:
    """The conditions of one data set, with those who answered any of it."""

    def __init__(
        self, contest: Contest, name: str, places: Sequence[str], kept: Sequence[str], options: ScoreOptions
    ) -> None:
        self._name, self._places, self._kept, self._options = name, places, kept, options
        images = np.concatenate([contest.places[place] for place in places])
        here: Bools = np.asarray(contest.seen[:, images].any(axis=1))
        units = np.flatnonzero(here)
        place_of = np.full(len(here), -1)
        place_of[units] = np.arange(len(units))
        active: Bools = np.asarray(here[contest.pairs].all(axis=1))
        number = np.cumsum(active) - 1
        self._pairs = place_of[contest.pairs[active]]
        self._members = [place_of[m[here[m]]] for m in contest.members]
        self._compared = [number[c[active[c]]] for c in contest.compared]
        self._pooled = [m.subjects is not None for m in contest.observers]
        self._counts = {
            place: _Counts(contest.seen[np.ix_(units, at)], contest.correct[np.ix_(units, at)], self._pairs)
            for place in places
            for at in (contest.places[place],)
        }
        self._by_unit = {place: counts.accuracies() for place, counts in self._counts.items()}
        self._by_pair = {place: counts.compare(counts.totals())[:, 0] for place, counts in self._counts.items()}
        self._images = self._draw_images()

    def numbers(self, places: Sequence[str], drawn: str) -> tuple[Numbers, dict[IntervalKind, Array]]:
        """Return the numbers over some conditions, mean over conditions, then over people; and their draws.

        ``drawn`` is the condition, or empty for the mean over those that are not left out.
        """
        by_unit, by_pair = (_mean([of[place] for place in places]) for of in (self._by_unit, self._by_pair))
        images = np.sum([self._counts[place].images(self._members, self._compared) for place in places], axis=0)
        draws: dict[IntervalKind, Array] = {
            "images": self._images.pop(drawn),
            "subjects": self._draw_people(by_unit, by_pair),
        }
        values = self._of_observers(by_unit, by_pair)
        return Numbers(values, images, {kind: _limits(values, array) for kind, array in draws.items()}), draws

    def _of_observers(self, by_unit: Floats, by_pair: Floats) -> Floats:
        """Return metrics × observers (× draws) from (draws ×) units and comparisons × (draws ×) pairs."""
        out = np.full((len(METRICS), len(self._members), *by_unit.shape[:-1]), np.nan)
        for k, (members, compared) in enumerate(zip(self._members, self._compared)):
            if len(members):
                out[0, k] = over_people(by_unit[..., members])
            if len(compared):
                out[1:, k] = over_people(by_pair[..., compared])
        return out

    def _draw_images(self) -> dict[str, Array]:
        """Return condition → metrics × observers × draws; the empty name stands for the mean over conditions."""
        options = self._options
        shape = (len(METRICS), len(self._members), options.resamples)
        out = {place: np.full(shape, np.nan, np.float32) for place in (*self._places, "")}
        rows = max(64, _AT_ONCE // max(len(self._pairs), 1))
        streams = {
            place: weight_parts(
                f"human_alignment/{place}", counts.size, options.seed, options.resamples, rows, keep=False
            )
            for place, counts in self._counts.items()
            if counts.size > 1
        }
        for start in range(0, options.resamples, rows):
            chunk = slice(start, min(start + rows, options.resamples))
            units, pairs = [], []
            for place, stream in streams.items():
                counts = self._counts[place]
                drawn = counts.totals(next(stream))
                by_unit, by_pair = counts.accuracies(drawn), counts.compare(drawn)
                if place in self._kept:
                    units.append(by_unit)
                    pairs.append(by_pair)
                out[place][..., chunk] = self._of_observers(by_unit, by_pair)
            if units and len(units) == len(self._kept):
                out[""][..., chunk] = self._of_observers(_mean(units), _mean(pairs))
        return out

    def _draw_people(self, by_unit: Floats, by_pair: Floats) -> Array:
        """Return metrics × observers × draws with other people; of a pool, pairs of different people who are drawn."""
        options = self._options
        out = np.full((len(METRICS), len(self._members), options.resamples), np.nan, np.float32)
        for k, (members, compared) in enumerate(zip(self._members, self._compared)):
            compared = compared[~np.isnan(by_pair[0, compared])]
            pairs = self._pairs[compared]
            people = np.unique(pairs) if self._pooled[k] else np.setdiff1d(pairs, members)
            if len(people) < 2:
                continue
            drawn = self._people(len(people), least=2 if self._pooled[k] else 1)
            if self._pooled[k]:
                first, second = np.searchsorted(people, pairs.T)
                weight = drawn[:, first] * drawn[:, second]
                out[0, k] = drawn @ by_unit[people] / len(people)
            else:
                # A pair has the observer itself on one side and a person on the other.
                person = np.where(pairs[:, 0] == members[0], pairs[:, 1], pairs[:, 0])
                weight = drawn[:, np.searchsorted(people, person)]
            out[1:, k] = by_pair[:, compared] @ weight.T / weight.sum(axis=1)
        return out

    def _people(self, number: int, least: int) -> Floats:
        """Return draws × people: how often each is drawn, where at least so many different ones are."""
        drawn = weights(f"people/{self._name}", number, self._options.seed, self._options.resamples).astype(np.float64)
        enough = np.count_nonzero(drawn, axis=1) >= least
        if not enough.all():
            usable = drawn[enough]
            drawn[~enough] = np.resize(usable, (int((~enough).sum()), number))
        return drawn


class _Counts:
    """What each image of one condition adds to the counts of units and pairs; equal columns are summed once."""

    def __init__(self, seen: Bools, correct: Bools, pairs: Positions) -> None:
        self._seen, self._correct = seen, correct
        first, second = pairs.T
        self._shared = seen[first] & seen[second]
        wanted = [
            seen,
            correct,
            self._shared,
            self._shared & correct[first],
            self._shared & correct[second],
            correct[first] & correct[second],
        ]
        columns = np.concatenate(wanted)
        known: dict[bytes, int] = {}
        back = np.array([known.setdefault(c.tobytes(), len(known)) for c in columns], np.intp)
        self._columns = columns[np.unique(back, return_index=True)[1]].T.astype(np.float32)
        sizes = np.cumsum([len(part) for part in wanted])
        self._parts = [back[a:b] for a, b in zip((0, *sizes[:-1]), sizes)]

    @property
    def size(self) -> int:
        """How many images there are."""
        return len(self._columns)

    def images(self, members: Sequence[Positions], compared: Sequence[Positions]) -> Positions:
        """Return metrics × observers: images that the value of each rests on."""
        answered = [int(self._seen[m].any(axis=0).sum()) for m in members]
        shared = [int(self._shared[c].any(axis=0).sum()) for c in compared]
        return np.array([answered, *[shared] * (len(METRICS) - 1)], np.intp)

    def totals(self, drawn: Array | None = None) -> Floats:
        """Return draws × columns, the sums over images, each as often as it was drawn; None: each once, one draw."""
        weights = np.ones((1, self.size), np.float32) if drawn is None else drawn.astype(np.float32)
        # Whole numbers below 2²⁴: exact in single precision, and twice as fast.
        return np.asarray((weights @ self._columns).astype(np.float64))

    def accuracies(self, totals: Floats | None = None) -> Floats:
        """Return draws × units, or units for the images as they are."""
        if totals is None:
            # The function of the metric itself, not another one that gives the same.
            return np.array([total(accuracy_terms(c, s)).value for c, s in zip(self._correct, self._seen)])
        seen, correct = (totals[:, part] for part in self._parts[:2])
        return np.divide(correct, seen, out=np.full(seen.shape, np.nan), where=seen > 0)

    def compare(self, totals: Floats) -> Floats:
        """Return comparisons × draws × pairs."""
        return np.stack(agreement(*(totals[:, part] for part in self._parts[2:])))


def _mean(parts: Sequence[Floats]) -> Floats:
    """Return the mean of arrays of one shape; NaN are left out."""
    if len(parts) == 1:
        return parts[0]
    if not any(np.isnan(part).any() for part in parts):
        return np.asarray(sum(parts[1:], parts[0]) / len(parts))
    return over_people(np.stack(parts, axis=-1))
