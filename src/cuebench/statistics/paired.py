"""Two observers on the same images: the difference, its interval, its p-value, and what it would take to see it.

The interval of a difference d = p_A − p_B is made of the intervals [l, u] of both observers, each at its own number of
decisions, and of the correlation ρ that they owe to the same images and sources (MOVER):

    d − √((p_A − l_A)² − 2ρ(p_A − l_A)(u_B − p_B) + (u_B − p_B)²)  to
    d + √((u_A − p_A)² − 2ρ(u_A − p_A)(p_B − l_B) + (p_B − l_B)²),

    ρ = (1 − 1/m)·(V_A + V_B − V_d)/(2√(V_A·V_B)),  0 where one of them does not vary.

V are the variances of `clustered`, V_d that of the difference image by image, in which what makes an image easy for
both cancels. m is the number of images that the variance of an observer rests on, (Σψ²)²/Σψ⁴, of the one with fewer:
else one shape decision each, which two observers happen to make about the same image, is a correlation of 1.

For shares of decisions the intervals are those of `clustered.beta_ends`, so an observer that decided three times is as
uncertain as three decisions are, also where all of them are alike. Other headlines have the interval of their scores
(`clustered.bounded_interval`). The interval stays where differences can be, and p is the level at which one of its ends
reaches 0: p ≤ .05 exactly where the 95 % interval leaves out 0.

References
----------
Zou & Donner 2008, Stat. Med. 27 (MOVER); Newcombe 1998, Stat. Med. 17; Tang et al. 2010, J. Biopharm. Stat. 20 (paired
shares); Brown, Cai & DasGupta 2001, Stat. Sci. 16 (Jeffreys' interval).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Floats
from cuebench.interval_methods import MOVER
from cuebench.statistics.clustered import (
    NOTHING,
    Clustering,
    Sums,
    Variances,
    beta_ends,
    bounded_interval,
    variances,
)
from cuebench.statistics.estimates import difference_from_intervals
from cuebench.statistics.intervals import ways_of
from cuebench.statistics.power import Components
from cuebench.types import Interval, IntervalKind

FEWEST = 3
"""Decided trials, and sources with one, below which an observer is not compared."""
TOO_FEW = "too few decided trials"
SMALLEST = 1e-12
"""No p is said to be smaller."""


class More(NamedTuple):
    """What it would take to tell two observers apart.

    ``images``: further images of the same sources; infinite where the sources alone vary too much. ``times``: how many
    times as many images, each kind of source included. ``alone``: how many times as many sources of one kind, with
    their images.
    """

    images: float
    times: float
    alone: Mapping[IntervalKind, float]


@dataclass(frozen=True)
class Difference:
    """The paired difference of two observers, first minus second, on the images that both saw.

    Parameters
    ----------
    first, second, value : float
        The number of each on these images, and the difference.
    n : int
        Images that both saw.
    intervals : tuple of Interval
        By images, by each kind of source, ``two_way``, and where one observer is people, ``three_way``.
    p : float
        Two-sided: the level at which the interval to quote just reaches 0.
    variances : Variances
        Of the difference.
    note : str
        Why there is no interval or no p.
    decisions : int or None
        Of shares of decisions: how many the observer has that decided less often. None of other numbers.
    freedom : float
        Degrees of freedom of the variances of the two observers, the mean.
    """

    first: float
    second: float
    value: float
    n: int
    intervals: tuple[Interval, ...]
    p: float
    variances: Variances
    note: str = ""
    decisions: int | None = None
    freedom: float = 0.0

    @property
    def interval(self) -> Interval | None:
        """The interval to quote: over both kinds of source where there are two, else the widest."""
        return next((i for i in self.intervals if i.kind == self.variances.main), None)

    @property
    def components(self) -> Components:
        """What the variance of the difference is made of."""
        return Components.of(self.variances, self.n, self.freedom)

    def needed(self, comparisons: int = 1, level: float = 0.95) -> More:
        """Return what it would take to find this difference in four of five studies, if it is the true one.

        Parameters
        ----------
        comparisons : int
            How many pairs are compared: each is held to level/comparisons.
        level : float
            Of all comparisons together.
        """
        if not self.variances.by_kind or not self.value:
            return More(math.inf, math.inf, {})
        of, alpha = self.components, (1 - level) / comparisons
        images = self.n * (of.factor(self.value, (), alpha) - 1)
        alone = {kind: of.factor(self.value, (kind,), alpha) for kind in of.sources}
        return More(images, of.factor(self.value, tuple(of.sources), alpha), alone)


class Number(NamedTuple):
    """The number of one observer, and what its intervals are made of.

    Parameters
    ----------
    value : float
        The number.
    variances : Variances
        For each kind of interval; over people too where they are several.
    bounds : pair of float
        Smallest and largest possible value.
    decisions : int or None
        Of a share of decisions: how many there are. None for any other number.
    sources : mapping of kind to int
        How many images, and sources of each kind, have a decision.
    """

    value: float
    variances: Variances
    bounds: tuple[float, float]
    decisions: int | None
    sources: Mapping[IntervalKind, int]

    @classmethod
    def of(cls, sums: Sums) -> Number:
        """Return the number of a function of sums."""
        clustering = Clustering(len(sums.images), sums.sources, sums.strata, images=sums.images)
        decided = sums.decisions
        counts = np.ones(len(sums.images)) if decided is None else decided
        return cls(
            sums.value,
            clustering.variances(sums.influence(), sums.shared_influence()),
            sums.bounds,
            None if decided is None else round(float(decided.sum())),
            {kind: int((np.bincount(g.code, counts) > 0).sum()) for kind, g in clustering.groups.items()},
        )

    @property
    def too_few(self) -> str:
        """Say why nothing can be said of other images; empty where it can."""
        if self.decisions is not None and self.decisions < FEWEST:
            return f"{self.decisions} decided trial{'s' * (self.decisions != 1)}"
        number, kind = min(((n, k) for k, n in self.sources.items() if k != "subjects"), default=(0, "images"))
        return f"decisions on {number} {_noun(kind, number)}" if number < FEWEST else ""

    def _own(self, kind: IntervalKind) -> IntervalKind:
        """Return the kind of the interval of one who is no group of people."""
        return "two_way" if kind == "three_way" and kind not in self.variances.by_kind else kind

    def variance(self, kind: IntervalKind) -> float:
        """Return the variance of a kind; 0 where it is about people, and this is one."""
        return self.variances.by_kind.get(self._own(kind), 0.0)

    def freedom(self, kind: IntervalKind) -> float:
        """Return the degrees of freedom of the variance of a kind."""
        return self.variances.df.get(self._own(kind), math.inf)

    def ends(self, kind: IntervalKind, alpha: float) -> tuple[float, float]:
        """Return the ends of an interval of level 1 − alpha."""
        own = self._own(kind)
        if own not in self.variances.by_kind:
            return self.value, self.value
        variance, df = self.variances.by_kind[own], self.variances.df[own]
        if self.decisions is not None:
            fewest = min(self.sources[way] for way in ways_of(own))
            return beta_ends(self.value, variance, df, self.decisions, fewest, alpha)
        interval = bounded_interval(self.value, variance, df, own, self.bounds, 1 - alpha)
        return max(interval.low, self.bounds[0]), min(interval.high, self.bounds[1])


def _noun(kind: str, number: int) -> str:
    return kind.replace("_", " ").removesuffix("s" * (number == 1) if kind != "classes" else "es" * (number == 1))


def paired(first: Sums, second: Sums, *, level: float = 0.95) -> Difference:
    """Compare two observers on the images that both saw.

    Parameters
    ----------
    first, second : Sums
        Of the two observers.
    level : float
        Of the intervals.

    Returns
    -------
    Difference
        NaN with a note where fewer than two images were seen by both, and where one of them decided too rarely.
    """
    common = np.intersect1d(first.images, second.images)
    if len(common) < 2:
        return _not_compared(math.nan, math.nan, len(common), f"{len(common)} images in common")
    a, b = first.only(common), second.only(common)
    value = a.value - b.value
    if not math.isfinite(value):
        return _not_compared(a.value, b.value, len(common), "undefined")
    change = by_image(a, common) - by_image(b, common)
    variance = _variances_of_difference(a, b, common, change)
    numbers = Number.of(a), Number.of(b)
    variance, correlations = _with_people(variance, *numbers, min(_images_behind(by_image(s, common)) for s in (a, b)))
    if not change.any() and not value:
        return Difference(a.value, b.value, 0.0, len(common), (), 1.0, variance, "the same answers")
    few = [number.too_few for number in numbers if number.too_few]
    if few:
        return _not_compared(a.value, b.value, len(common), f"{TOO_FEW}: {' and '.join(dict.fromkeys(few))}", variance)
    if all(number.decisions is None and number.variance(variance.main) < NOTHING for number in numbers):
        return _not_compared(a.value, b.value, len(common), "neither number varies with the images", variance)
    intervals = tuple(
        Interval(*difference_ends(*numbers, rho, kind, 1 - level), kind, level, method=MOVER)
        for kind, rho in correlations.items()
    )
    p = p_of_difference(*numbers, correlations[variance.main], variance.main, 1 - level)
    decisions = min((n.decisions for n in numbers if n.decisions is not None), default=None)
    freedom = sum(number.freedom(variance.main) for number in numbers) / 2
    return Difference(a.value, b.value, value, len(common), intervals, p, variance, "", decisions, freedom)


def _not_compared(first: float, second: float, n: int, note: str, variance: Variances | None = None) -> Difference:
    return Difference(first, second, first - second, n, (), math.nan, variance or Variances({}, {}, {}), note)


def _variances_of_difference(a: Sums, b: Sums, images: Floats, change: Floats) -> Variances:
    """Return the variances of the difference, image by image."""
    mine, theirs = a.shared_influence(), b.shared_influence()
    shared = {k: by_image(a, images, psi) - by_image(b, images, theirs[k]) for k, psi in mine.items() if k in theirs}
    sources = {kind: names for kind, names in a.sources_of(images).items() if kind in b.sources}
    return variances(change, sources, a.strata, shared)


def _images_behind(influence: Floats) -> float:
    """Return how many images the variance of a number rests on: all where each moves it alike, 1 where one moves it."""
    squares = influence**2
    return float(squares.sum() ** 2 / (squares @ squares)) if squares.any() else 1.0


def _with_people(
    difference: Variances, a: Number, b: Number, images: float
) -> tuple[Variances, dict[IntervalKind, float]]:
    """Add what people bring to the variance of a difference; return it, and the correlation of each kind.

    People are independent of the other observer, whatever images both saw. ``images``: how many the variances rest on.
    """
    by_kind, clusters, df = dict(difference.by_kind), dict(difference.clusters), dict(difference.df)
    covariance = {k: (a.variance(k) + b.variance(k) - v) / 2 for k, v in by_kind.items()}
    people = [n.variances.clusters["subjects"] for n in (a, b) if "subjects" in n.variances.clusters]
    if people:
        kinds: tuple[IntervalKind, ...] = ("subjects", "three_way") if "two_way" in by_kind else ("subjects",)
        for kind in kinds:
            covariance[kind] = covariance["two_way"] if kind == "three_way" else 0.0
            by_kind[kind] = a.variance(kind) + b.variance(kind) - 2 * covariance[kind]
            df[kind] = min(n.variances.df[kind] for n in (a, b) if kind in n.variances.df)
        clusters["subjects"] = min(people)
    correlations: dict[IntervalKind, float] = {}
    for kind, shared in covariance.items():
        scale = math.sqrt(a.variance(kind) * b.variance(kind))
        correlations[kind] = (1 - 1 / images) * min(1.0, max(-1.0, shared / scale)) if scale > NOTHING else 0.0
    return Variances(by_kind, clusters, df, difference.pairs), correlations


def difference_ends(a: Number, b: Number, correlation: float, kind: IntervalKind, alpha: float) -> tuple[float, float]:
    """Return the ends of the interval of a − b, of level 1 − alpha."""
    (low_a, high_a), (low_b, high_b) = a.ends(kind, alpha), b.ends(kind, alpha)
    return difference_from_intervals((a.value, low_a, high_a), (b.value, low_b, high_b), correlation)


def p_of_difference(a: Number, b: Number, correlation: float, kind: IntervalKind, alpha: float = 0.05) -> float:
    """Return the two-sided p of a − b: the smallest alpha at which its interval still leaves out 0.

    It is at most `alpha` exactly where the interval of level 1 − alpha leaves out 0.
    """

    def leaves_out_0(level: float) -> bool:
        low, high = difference_ends(a, b, correlation, kind, level)
        return low > 0 or high < 0

    # The logarithm of p is found by halving: it leaves out 0 above the upper end, and holds it below the lower one.
    low, high = (math.log(SMALLEST), math.log(alpha)) if leaves_out_0(alpha) else (math.log(alpha), 0.0)
    if leaves_out_0(math.exp(low)):
        return math.exp(low)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if leaves_out_0(math.exp(middle)) else (middle, high)
    return math.exp(high)


def by_image(sums: Sums, images: Floats, influence: Floats | None = None) -> Floats:
    """Return by how much each of some images, sorted, moves a number; ``influence``: of each row, if not its own."""
    place = np.searchsorted(images, sums.images)
    weights = sums.influence() if influence is None else influence
    return np.asarray(np.bincount(place, weights, len(images)), np.float64)
