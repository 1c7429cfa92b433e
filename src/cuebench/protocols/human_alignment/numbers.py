"""Values of every observer in every condition, in every data set and in the mean, and what they would vary by.

Three things could be drawn anew: the images of a condition, the people of a data set, and data sets with all that is in
them. Images are left out one by one (the jackknife), within their condition; people, too. Data sets are compared with
each other. Leaving out images also shows the bias of a number: a squared difference of two accuracies is too large, and
κ a little too small, where there are few images. Intervals over images and data sets are centred on the number without
it; the number itself stays as published.

References
----------
Quenouille 1956, Biometrika 43; Tukey 1958, Ann. Math. Stat. 29; Satterthwaite 1946, Biometrics Bull. 2(6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools, Floats, Positions
from cuebench.metrics.accuracy import terms as accuracy_terms
from cuebench.metrics.human_agreement import Agreement, agreement, mean_rank, over_people
from cuebench.protocols.human_alignment.trials import Contest
from cuebench.statistics.ratios import total
from cuebench.types import IntervalKind

METRICS = ("accuracy", *Agreement._fields)
"""Order of the first axis of values: one accuracy, then four comparisons with people."""
_AT_ONCE = 400_000  # images × pairs: memory does not grow with the number of either


class Spread(NamedTuple):
    """What numbers would vary by if something were drawn anew; each an array metrics × observers.

    ``centre`` is where the interval has its middle, ``variance`` is NaN where nothing can be drawn anew, and ``doubt``
    is the sum of variance²/degrees of freedom over the independent parts.
    """

    centre: Floats
    variance: Floats
    doubt: Floats

    def of(self, row: int, k: int) -> tuple[float, float, float]:
        """Return centre, variance and Satterthwaite's degrees of freedom of one number; NaN where nothing varies."""
        centre, variance, doubt = (float(array[row, k]) for array in self)
        return centre, variance, variance**2 / doubt if doubt > 0 else float("nan")


@dataclass(frozen=True)
class Numbers:
    """The numbers of all observers in one condition, in one data set, or in the mean.

    Parameters
    ----------
    values : float array metrics × observers
        NaN where an observer has none.
    images : int array metrics × observers
        Images that each value rests on.
    spread : mapping of kind to Spread
        What intervals are made of.
    """

    values: Floats
    images: Positions
    spread: Mapping[IntervalKind, Spread]


@dataclass(frozen=True)
class Alignment:
    """Everything that was computed of a contest.

    Parameters
    ----------
    conditions, data_sets : mapping of str to Numbers
        By ``<data set>/<condition>`` and by data set.
    mean : Numbers
        Over all data sets in which an observer has a value.
    ranks : float array observers
        Mean ranks; NaN for those who are not ranked.
    ranked_on : int
        Number of data sets that all ranked observers answered.
    """

    conditions: dict[str, Numbers]
    data_sets: dict[str, Numbers]
    mean: Numbers
    ranks: Floats
    ranked_on: int


def align(contest: Contest, left_out: Mapping[str, str], ranked: Positions) -> Alignment:
    """Compute every number of every observer.

    Parameters
    ----------
    contest : Contest
        Who was right in which trial.
    left_out : mapping of str to str
        Conditions outside the means of their data set → why.
    ranked : int array
        Observers that are ranked among each other.
    """
    conditions, data_sets = dict[str, Numbers](), dict[str, Numbers]()
    for name, places in contest.data_sets.items():
        kept = [place for place in places if place not in left_out]
        part = _DataSet(contest, places)
        for place in places:
            conditions[place] = part.numbers([place])
        if kept:
            data_sets[name] = conditions[kept[0]] if len(kept) == 1 else part.numbers(kept)
    everything = list(data_sets.values())
    common = [numbers.values for numbers in everything if not np.isnan(numbers.values[1:, ranked]).any()]
    ranks = np.full(len(contest.observers), np.nan)
    if len(ranked) > 1 and common:
        ranks[ranked] = mean_rank(*over_people(np.stack(common, axis=-1))[1:4, ranked])
    return Alignment(conditions, data_sets, _mean_of(everything, len(contest.observers)), ranks, len(common))


# ------------------------------------------------------------------------------------------------ over data sets


def _mean_of(parts: Sequence[Numbers], observers: int) -> Numbers:
    """Return the mean over data sets: those in which an observer has a value."""
    if not parts:
        nothing = np.full((len(METRICS), observers), np.nan)
        return Numbers(nothing, np.zeros(nothing.shape, np.intp), {})
    values = np.stack([part.values for part in parts], axis=-1)
    number = (~np.isnan(values)).sum(axis=-1)
    spread: dict[IntervalKind, Spread] = {
        kind: _mean_spread([part.spread[kind] for part in parts], values, number) for kind in ("images", "subjects")
    }
    if len(parts) > 1:
        # The values of data sets are themselves too large or too small by what few images do.
        corrected = np.stack([part.spread["images"].centre for part in parts], axis=-1)
        spread["data_sets"] = _between(np.where(np.isnan(corrected), values, corrected), number)
    return Numbers(over_people(values), np.sum([part.images for part in parts], axis=0), spread)


def _mean_spread(parts: Sequence[Spread], values: Floats, number: Positions) -> Spread:
    """Return the spread of a mean of independent numbers; one without a variance leaves the mean without one."""
    centre, variance, doubt = (np.stack(arrays, axis=-1) for arrays in zip(*parts))
    there = ~np.isnan(values)
    centre = over_people(np.where(np.isnan(centre), values, centre))
    sums = (np.where(there, array, 0.0).sum(axis=-1) for array in (variance, doubt))
    return Spread(centre, *(_divided(array, number**power) for array, power in zip(sums, (2, 4))))


def _between(values: Floats, number: Positions) -> Spread:
    """Return the spread of the mean of data sets that were drawn anew, with all their images and people."""
    centre = over_people(values)
    squares = np.where(np.isnan(values), 0.0, (values - centre[..., None]) ** 2).sum(axis=-1)
    variance = _divided(squares, number * (number - 1))
    return Spread(centre, variance, _divided(variance**2, number - 1))


def _divided(top: Floats, bottom: Array) -> Floats:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0)


# --------------------------------------------------------------------------------------------- within a data set


class _DataSet:
    """The conditions of one data set, with those who answered any of it."""

    def __init__(self, contest: Contest, places: Sequence[str]) -> None:
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
        self._by_pair = {place: counts.compare(counts.totals)[:, 0] for place, counts in self._counts.items()}

    def numbers(self, places: Sequence[str]) -> Numbers:
        """Return the numbers over some conditions: mean over conditions, then over people."""
        by_unit, by_pair = (_mean([of[place] for place in places]) for of in (self._by_unit, self._by_pair))
        values = self._of_observers(by_unit, by_pair)
        images = np.stack([self._counts[place].images(self._members, self._compared) for place in places])
        spread: dict[IntervalKind, Spread] = {
            "images": self._over_images(places, values, images),
            "subjects": self._over_people(values, by_unit, by_pair),
        }
        return Numbers(values, images.sum(axis=0), spread)

    def _of_observers(self, by_unit: Floats, by_pair: Floats) -> Floats:
        """Return metrics × observers from units and comparisons × pairs."""
        out = np.full((len(METRICS), len(self._members)), np.nan)
        for k, (members, compared) in enumerate(zip(self._members, self._compared)):
            if len(members):
                out[0, k] = over_people(by_unit[members])
            if len(compared):
                out[1:, k] = over_people(by_pair[:, compared])
        return out

    # --------------------------------------------------------------------------------------------------- images

    def _over_images(self, places: Sequence[str], values: Floats, images: Positions) -> Spread:
        """Leave out each image of each condition in turn; NaN where a condition has one image only."""
        bias, variance, doubt = (np.zeros_like(values) for _ in range(3))
        units = np.array([~np.isnan(self._by_unit[place]) for place in places])
        pairs = np.array([~np.isnan(self._by_pair[place][0]) for place in places])
        for place, n, *defined in zip(places, images, units, pairs):
            moved, squares = self._moved(place, _shares(defined[0], units), _shares(defined[1], pairs))
            share = _divided(n - 1.0, np.where(n == 1, 0, n))
            part = share * (squares - _divided(moved**2, n))
            there = n > 0
            bias += np.where(there, share * moved, 0.0)
            variance += np.where(there, np.maximum(part, 0.0), 0.0)
            doubt += np.where(there, _divided(part**2, n - 1), 0.0)
        return Spread(values - bias, np.where(np.isnan(values), np.nan, variance), doubt)

    def _moved(self, place: str, of_unit: Floats, of_pair: Floats) -> tuple[Floats, Floats]:
        """Return the sum over images of how far leaving one out moves each number, and the sum of its square.

        ``of_unit`` and ``of_pair`` are what the condition weighs in the mean of a unit and of a pair.
        """
        counts = self._counts[place]
        sums = np.zeros((2, len(METRICS), len(self._members)))
        rows = max(16, _AT_ONCE // max(len(self._pairs), 1))
        for without in counts.without_each(rows):
            # A unit or pair that has this image only moves nothing: nothing is known without it.
            by_unit = np.nan_to_num((counts.accuracies(without) - self._by_unit[place]) * of_unit)
            by_pair = np.nan_to_num((counts.compare(without) - self._by_pair[place][:, None]) * of_pair)
            for k, (members, compared) in enumerate(zip(self._members, self._compared)):
                if len(members):
                    self._count(sums[:, 0, k], by_unit[:, members], of_unit[members])
                if len(compared):
                    self._count(sums[:, 1:, k], by_pair[..., compared], of_pair[compared])
        return sums[0], sums[1]

    @staticmethod
    def _count(sums: Floats, moves: Floats, known: Floats) -> None:
        """Add the moves, … × images × people, of a mean over the people that are known in any condition."""
        number = int((~np.isnan(known)).sum())
        if number:
            of_mean = moves.sum(axis=-1) / number
            sums += of_mean.sum(axis=-1), (of_mean**2).sum(axis=-1)

    # --------------------------------------------------------------------------------------------------- people

    def _over_people(self, values: Floats, by_unit: Floats, by_pair: Floats) -> Spread:
        """Leave out each person in turn, of the same images; NaN where too few would be left."""
        variance, doubt = np.full_like(values, np.nan), np.full_like(values, np.nan)
        for k, compared in enumerate(self._compared):
            compared = compared[~np.isnan(by_pair[0, compared])]
            pairs, of_pairs = self._pairs[compared], by_pair[:, compared]
            if self._pooled[k]:
                people = np.unique(pairs)
                number = len(people)
                if number < 3:  # without one of two people there is no pair
                    continue
                without = [of_pairs[:, (pairs != person).all(axis=1)].mean(axis=1) for person in people]
                variance[1:, k] = (number - 1) ** 2 / number * np.var(without, axis=0, ddof=1)
                variance[0, k] = by_unit[people].var(ddof=1) / number
            else:
                number = len(compared)
                if number < 2:
                    continue
                variance[1:, k] = of_pairs.var(axis=1, ddof=1) / number
            doubt[:, k] = variance[:, k] ** 2 / (number - 1)
        return Spread(values, variance, doubt)


def _shares(defined: Bools, everywhere: Bools) -> Floats:
    """Return what one condition weighs in the mean of each unit: 0 where it has no value there, NaN where nowhere."""
    return _divided(defined.astype(np.float64), everywhere.sum(axis=0))


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
        self._columns = columns[np.unique(back, return_index=True)[1]].T
        sizes = np.cumsum([len(part) for part in wanted])
        self._parts = [back[a:b] for a, b in zip((0, *sizes[:-1]), sizes)]

    def images(self, members: Sequence[Positions], compared: Sequence[Positions]) -> Positions:
        """Return metrics × observers: images that the value of each rests on."""
        answered = [int(self._seen[m].any(axis=0).sum()) for m in members]
        shared = [int(self._shared[c].any(axis=0).sum()) for c in compared]
        return np.array([answered, *[shared] * (len(METRICS) - 1)], np.intp)

    @property
    def totals(self) -> Floats:
        """The sums over all images, 1 × columns."""
        return self._columns.sum(axis=0, keepdims=True).astype(np.float64)

    def without_each(self, rows: int) -> Iterator[Floats]:
        """Yield the sums without each image, images × columns, so many rows at once."""
        totals = self.totals
        yield from (totals - self._columns[start : start + rows] for start in range(0, len(self._columns), rows))

    def accuracies(self, totals: Floats | None = None) -> Floats:
        """Return rows × units, or units for the images as they are."""
        if totals is None:
            # The function of the metric itself, not another one that gives the same.
            return np.array([total(accuracy_terms(c, s)).value for c, s in zip(self._correct, self._seen)])
        seen, correct = (totals[:, part] for part in self._parts[:2])
        return _divided(correct, seen)

    def compare(self, totals: Floats) -> Floats:
        """Return comparisons × rows × pairs."""
        return np.stack(agreement(*(totals[:, part] for part in self._parts[2:])))


def _mean(parts: Sequence[Floats]) -> Floats:
    """Return the mean of arrays of one shape; NaN are left out."""
    if len(parts) == 1:
        return parts[0]
    if not any(np.isnan(part).any() for part in parts):
        return np.asarray(sum(parts[1:], parts[0]) / len(parts))
    return over_people(np.stack(parts, axis=-1))
