"""Estimates: values with their intervals, from trials, from leaving clusters out, or derived from other estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.interval_methods import FIELLER, JACKKNIFE, LINEARISED, LOGIT, STUDENT, WELCH, WILSON
from cuebench.statistics.clustered import (
    NOTHING,
    all_alike,
    bounded_interval,
    ratio_intervals,
    share_interval,
    t_quantile,
)
from cuebench.statistics.intervals import Clusters, undefined
from cuebench.statistics.ratios import Terms, total
from cuebench.types import Estimate, Interval, IntervalKind, LeftOut

ALL_ALIKE = "all alike: nothing says how far others would vary"
"""Why a number that does not vary has no interval."""
MEAN_OVER = "mean over "
"""How the note begins of a number whose n counts people or random initialisations, not trials."""
NORMAL = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


def ratio_estimates(
    terms: Sequence[Terms],
    clusters: Clusters,
    kinds: Sequence[IntervalKind],
    *,
    shared: Sequence[Mapping[IntervalKind, Terms]] = (),
) -> list[Estimate]:
    """Return one estimate for each ratio, with one closed-form interval for each kind.

    Parameters
    ----------
    terms : sequence of Terms
        What each trial adds to numerator and denominator, one for each metric.
    clusters : Clusters
        Of the same trials.
    kinds : sequence of str
        Kinds of interval.
    shared : sequence of mappings of kind to Terms, optional
        As in `ratio_intervals`, for trials that show several images.
    """
    ratios = (total(t) for t in terms)
    intervals = ratio_intervals(terms, clusters, kinds, shared=shared)
    return [Estimate(r.value, int(r.denominator), of_ratio) for r, of_ratio in zip(ratios, intervals)]


def mean_of_subjects(terms: Terms, subjects: Array) -> Estimate:
    """Return the mean over subjects of each subject's ratio, with n = number of subjects and an interval over them.

    Every subject weighs the same, whereas pooled trials weigh subjects by how often they decided. Subjects without a
    trial in the denominator are excluded.
    """
    names, code = np.unique(subjects, return_inverse=True)
    top, bottom = (np.bincount(code.ravel(), t, len(names)) for t in terms)
    ratios = top[bottom > 0] / bottom[bottom > 0]
    return mean_of_shares(ratios, "subjects").excluding({"subjects without a ratio": len(names) - len(ratios)})


def mean_of_shares(shares: Array, kind: IntervalKind) -> Estimate:
    """Return the mean of numbers between 0 and 1, n = how many, with Student's interval on the logit scale.

    A note says what n counts.

    Parameters
    ----------
    shares : float array
        One for each subject or initialisation.
    kind : str
        What they belong to.
    """
    ones = np.ones(len(shares))
    numbers = Clusters(*[np.arange(len(shares))] * 3)
    (intervals,) = ratio_intervals([Terms(np.asarray(shares, np.float64), ones)], numbers, ["images"])
    method = LOGIT if intervals[0].method == LINEARISED else intervals[0].method
    interval = replace(intervals[0], kind=kind, method=method)
    if len(shares) < 2:
        interval = undefined(
            kind, f"{len(shares)} {kind.removesuffix('s') if len(shares) else kind}: nothing to resample"
        )
    value, counted = float(np.mean(shares)) if len(shares) else math.nan, _COUNTED.get(kind, kind)
    return Estimate(value, len(shares), (interval,), notes=(f"{MEAN_OVER}{len(shares)} {counted}",))


_COUNTED: Mapping[IntervalKind, str] = {"seeds": "random initialisations"}


def jackknifed(
    value: float,
    n: int,
    left_out: LeftOut,
    reasons: Mapping[IntervalKind, str] | None = None,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Return an estimate with an interval of each kind, from leaving out each cluster.

    Parameters
    ----------
    value, n : float, int
        The number and what it was divided by.
    left_out : mapping of kind to mapping of part to array
        The number without each cluster. Parts of the set have clusters of their own: shape cues and texture cues.
    reasons : mapping of kind to str, optional
        Why a kind has no interval; default where nothing could be left out: too few images.
    bounds : pair of float, optional
        Smallest and largest possible value; see `jackknife_interval`.
    """
    intervals = []
    for kind, parts in left_out.items():
        reason = (reasons or {}).get(kind, "")
        if not reason and not all(len(values) for values in parts.values()):
            reason = f"{n} image{'s' * (n != 1)}: nothing to resample"
        intervals.append(undefined(kind, reason) if reason else jackknife_interval(value, parts, kind, bounds))
    return Estimate(float(value), n, tuple(intervals), left_out=left_out)


def jackknife_interval(
    value: float,
    parts: Mapping[str, Array],
    kind: IntervalKind,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Interval:
    """Return Tukey's interval of a number from its values without each cluster.

    Its centre is the number without the bias that leaving out shows (Quenouille): a mean IoU of few images is too small
    where classes are rare. Student's t has Satterthwaite's degrees of freedom over the parts, fewer where a few
    clusters make most of the variance.

    Parameters
    ----------
    value : float
        The number.
    parts : mapping of str to array
        The number without each cluster, for each part of the set.
    kind, bounds, level
        As in `jackknifed`. Between two bounds the interval is symmetric on the logit scale, above a single one on that
        of the logarithm.

    Returns
    -------
    Interval
        What does not vary says nothing about others: where the number is the same without any cluster there is no
        interval, but for a number between 0 and 1 that of a share of as many trials as there are clusters.

    References
    ----------
    Quenouille 1956, Biometrika 43; Tukey 1958, Ann. Math. Stat. 29; Efron & Tibshirani 1993, chapter 11; O'Neill 2014,
    Am. Stat. 68(4) (degrees of freedom of a variance, by the kurtosis).
    """
    variance = bias = doubt = 0.0
    lost, number = 0, 0
    for values in parts.values():
        defined = values[~np.isnan(values)]
        if len(defined) < 2:
            return undefined(kind, "undefined without some of them", level)
        g = len(defined)
        lost, number = lost + len(values) - g, number + len(values)
        mean, part = float(defined.mean()), jackknife_variance(defined)
        variance, doubt = variance + part, doubt + part**2 / freedom(defined - mean)
        bias += (g - 1) * (mean - value)
    note = f"undefined without {lost:,} of {number:,}" if lost else ""
    low, high = bounds or (-math.inf, math.inf)
    if not np.isfinite(value):
        return undefined(kind, note, level)
    if variance < NOTHING:
        fewest = min(len(values) for values in parts.values())
        if (low, high) == (0.0, 1.0):
            if value in (low, high):
                return all_alike(value, fewest, kind, kind, level)
            return share_interval(value, 0.0, fewest - 1, fewest, kind, level)
        same = f"the same without any of the {number:,} {kind.replace('_', ' ')}: no 95 % interval"
        return undefined(kind, "; ".join(filter(None, (same, note))), level)
    centre = value - bias if low < value - bias < high else value
    interval = bounded_interval(centre, variance, variance**2 / doubt, kind, (low, high), level)
    ends = min(max(interval.low, low), value), max(min(interval.high, high), value)
    return replace(interval, low=ends[0], high=ends[1], note=note, method=JACKKNIFE)


def jackknife_variance(without: Array) -> float:
    """Return the variance of a number from its values without each cluster; NaN where there is one only."""
    g = len(without)
    apart = without - without.mean() if g else without
    return float((g - 1) / g * (apart @ apart)) if g > 1 else math.nan


def freedom(apart: Array) -> float:
    """Return the degrees of freedom of the variance of so many numbers, from how much each is apart from their mean.

    n − 1 for normal ones; fewer where the kurtosis says that a few of them make most of the variance, because another
    sample could be without these.

    Examples
    --------
    >>> freedom(np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])), round(freedom(np.array([-1.0] * 9 + [9.0])), 1)
    (5, 1.6)
    """
    n, squares = len(apart), float(apart @ apart)
    if n < 4 or squares < 1e-300:
        return n - 1
    excess = n * float((apart**2) @ (apart**2)) / squares**2 - 3
    excess = max(0.0, (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6))
    return n - 1 if not excess else 2 / (2 / (n - 1) + excess / n)


def derived(
    function: Callable[..., Any],
    *estimates: Estimate,
    n: int | None = None,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Return a function of estimates, with intervals from the same function of their values without each cluster.

    Parameters
    ----------
    function : callable
        Of floats and of arrays alike, element by element.
    estimates : Estimate
        Its arguments. Value i of one kind and part belongs to the same cluster in each. An estimate that does not know
        a kind or part is a constant in it.
    n : int, optional
        What the result rests on; default: the sum over the arguments.
    bounds : pair of float, optional
        Smallest and largest possible value; default: those of a metric.
    """
    value = float(function(*(e.value for e in estimates)))
    total_n = sum(e.n for e in estimates) if n is None else n
    left_out: dict[IntervalKind, dict[str, Array]] = {}
    for kind in dict.fromkeys(kind for e in estimates for kind in e.left_out):
        known = [e.left_out.get(kind, {}) for e in estimates]
        left_out[kind] = {}
        for part in dict.fromkeys(part for parts in known for part in parts):
            columns = [parts.get(part, e.value) for parts, e in zip(known, estimates)]
            lengths = {len(c) for c in columns if np.ndim(c)}
            empty = len(lengths) != 1 or 0 in lengths
            left_out[kind][part] = np.empty(0) if empty else np.asarray(function(*columns), np.float64)
    # Where nothing could be left out, the arguments know why.
    reasons = {
        kind: "; ".join(dict.fromkeys(i.note for e in estimates for i in e.intervals if i.kind == kind and i.note))
        for kind, parts in left_out.items()
        if not all(len(values) for values in parts.values())
    }
    return jackknifed(value, total_n, left_out, reasons, bounds or getattr(function, "bounds", None))


def part_of(
    function: Callable[..., Any], part: Callable[..., Any], whole: Callable[..., Any], *estimates: Estimate
) -> Estimate:
    """Return a share, part / whole, of functions of estimates that can both be near 0, with Fieller's intervals.

    The interval holds every share ρ with which part − ρ·whole is not clearly apart from 0: near 0 and 1, and where
    little is left to be shared, it stays as wide as it should be, and is [0, 1] where the whole could be 0.

    Parameters
    ----------
    function : callable
        The share itself, between 0 and 1, as in `derived`.
    part, whole : callable
        What it is the share of, without limits: they may be below 0 by chance.
    estimates : Estimate
        Arguments of all three.

    References
    ----------
    Fieller 1954, Some problems in interval estimation, J. R. Stat. Soc. B 16(2).
    """
    ratio = derived(function, *estimates, bounds=(0.0, 1.0))
    top, bottom = (derived(of, *estimates) for of in (part, whole))
    intervals = []
    for kind, wholes in bottom.left_out.items():
        pairs = [np.stack([top.left_out[kind][name], values]) for name, values in wholes.items()]
        pairs = [pair[:, ~np.isnan(pair).any(axis=0)] for pair in pairs]
        same_kind = next(i for i in ratio.intervals if i.kind == kind)
        if math.isnan(ratio.value) or min(pair.shape[1] for pair in pairs) < 2:
            intervals.append(undefined(kind, same_kind.note or "nothing to be shared"))
            continue
        if np.ptp(np.concatenate([pair[0] - ratio.value * pair[1] for pair in pairs])) < 1e-12:
            intervals.append(same_kind)  # the same share without any of them: what varies is rounding
            continue
        low, high = _fieller(top.value, bottom.value, pairs)
        ends = min(max(low, 0.0), ratio.value), max(min(high, 1.0), ratio.value)
        intervals.append(Interval(*ends, kind, method=FIELLER))
    return replace(ratio, intervals=tuple(intervals))


def _fieller(top: float, bottom: float, pairs: Sequence[Array], level: float = 0.95) -> tuple[float, float]:
    """Return the ends for top / bottom from both without each cluster, 2 × clusters for each part of the set."""
    if bottom <= 0:
        return -math.inf, math.inf
    moments, doubt, ratio = np.zeros((2, 2)), 0.0, top / bottom
    for values in pairs:
        g = values.shape[1]
        apart = values - values.mean(axis=1, keepdims=True)
        moments += (g - 1) / g * (apart @ apart.T)
        along = apart[0] - ratio * apart[1]
        doubt += ((g - 1) / g * float(along @ along)) ** 2 / freedom(along)
    (aa, ab), (_, bb) = moments.tolist()
    along_all = aa - 2 * ratio * ab + ratio**2 * bb
    t = t_quantile(along_all**2 / doubt if doubt else 1.0, level)
    g2 = t * t * bb / bottom**2
    if g2 >= 1:
        return -math.inf, math.inf
    half = t / bottom * math.sqrt(max(0.0, along_all - g2 * (aa - (ab * ab / bb if bb else 0.0))))
    centre = ratio - (g2 * ab / bb if bb else 0.0)
    return (centre - half) / (1 - g2), (centre + half) / (1 - g2)


def missing(reason: str, kind: IntervalKind = "", excluded: Mapping[str, int] | None = None) -> Estimate:
    """Return the estimate of a number that cannot be had, with the reason as its note."""
    return Estimate(math.nan, 0, (undefined(kind, reason),)).excluding(excluded or {})


def share(hits: int, n: int, kind: IntervalKind = "images") -> Estimate:
    """Return hits / n with Wilson's interval, which stays inside [0, 1] and holds near its ends."""
    if not n:
        return Estimate(math.nan, 0, (undefined(kind, "nothing to count"),))
    p, z = hits / n, NORMAL
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Estimate(p, n, (Interval(max(0.0, centre - half), min(1.0, centre + half), kind, method=WILSON),))


def mean(values: Array, kind: IntervalKind = "images") -> Estimate:
    """Return the mean of independent values with Student's interval."""
    n = len(values)
    if n < 2:
        return Estimate(float(values[0]) if n else math.nan, n, (undefined(kind, "fewer than two values"),))
    return mean_of_sums(float(values.mean()), float(values.var(ddof=1)) / n, n, n - 1, kind)


def mean_of_sums(
    value: float, variance: float, n: int, freedom: float, kind: IntervalKind = "images", method: str = STUDENT
) -> Estimate:
    """Return an estimate with Student's interval from the variance of the mean and its degrees of freedom."""
    if variance < NOTHING:
        return Estimate(value, n, (undefined(kind, ALL_ALIKE),))
    half = t_quantile(freedom, 0.95) * math.sqrt(variance)
    return Estimate(value, n, (Interval(value - half, value + half, kind, method=method),))


def difference_of_means(first: Array, second: Array, kind: IntervalKind = "images") -> Estimate:
    """Return the mean of the first minus that of the second sample, with Welch's interval."""
    n = len(first) + len(second)
    if min(len(first), len(second)) < 2:
        return Estimate(math.nan, n, (undefined(kind, "fewer than two values in a group"),))
    a, b = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    freedom = (a + b) ** 2 / max(a**2 / (len(first) - 1) + b**2 / (len(second) - 1), 1e-300)
    return mean_of_sums(float(first.mean() - second.mean()), float(a + b), n, float(freedom), kind, WELCH)


def difference_from_intervals(
    first: tuple[float, float, float], second: tuple[float, float, float], correlation: float = 0.0
) -> tuple[float, float]:
    """Return the interval of a difference of two numbers from their own intervals.

    With estimates a, b, intervals [l, u] and correlation ρ: a − b − √((a − l_a)² − 2ρ(a − l_a)(u_b − b) + (u_b − b)²)
    to a − b + √((u_a − a)² − 2ρ(u_a − a)(b − l_b) + (b − l_b)²), which keeps what is asymmetric in them (Newcombe 1998,
    Stat. Med. 17, method 10, for shares; Zou & Donner 2008, Stat. Med. 27).

    Parameters
    ----------
    first, second : (value, low, high)
        Numbers with their intervals.
    correlation : float
        Of the two; 0 where they rest on different images or people.

    Examples
    --------
    >>> [round(end, 4) for end in difference_from_intervals((0.8, 0.69183, 0.87695), (0.6, 0.49045, 0.70038))]
    [0.0524, 0.3339]
    """
    (a, low_a, high_a), (b, low_b, high_b) = first, second

    def reach(of_a: float, of_b: float) -> float:
        return math.sqrt(max(0.0, of_a**2 - 2 * correlation * of_a * of_b + of_b**2))

    return a - b - reach(a - low_a, high_b - b), a - b + reach(high_a - a, b - low_b)
