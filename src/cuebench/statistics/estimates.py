"""Estimates: values with their intervals, from trials, from leaving clusters out, or derived from other estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.statistics.clustered import all_alike, ratio_intervals, share_interval
from cuebench.statistics.intervals import Clusters, undefined
from cuebench.statistics.ratios import Terms, total
from cuebench.types import Estimate, Interval, IntervalKind, LeftOut

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
    interval = replace(intervals[0], kind=kind)
    if len(shares) < 2:
        interval = undefined(
            kind, f"{len(shares)} {kind.removesuffix('s') if len(shares) else kind}: nothing to resample"
        )
    return Estimate(float(np.mean(shares)) if len(shares) else math.nan, len(shares), (interval,))


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
        Smallest and largest possible value: the interval is symmetric on the logit scale between them.
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
    where classes are rare. Student's t has Satterthwaite's degrees of freedom over the parts.

    Parameters
    ----------
    value : float
        The number.
    parts : mapping of str to array
        The number without each cluster, for each part of the set.
    kind, bounds, level
        As in `jackknifed`.

    References
    ----------
    Quenouille 1956, Biometrika 43; Tukey 1958, Ann. Math. Stat. 29; Efron & Tibshirani 1993, chapter 11.
    """
    variance = bias = doubt = 0.0
    lost, number = 0, 0
    for values in parts.values():
        defined = values[~np.isnan(values)]
        if len(defined) < 2:
            return undefined(kind, "undefined without some of them", level)
        g = len(defined)
        lost, number = lost + len(values) - g, number + len(values)
        part = float((g - 1) / g * ((defined - defined.mean()) ** 2).sum())
        variance, doubt = variance + part, doubt + part**2 / (g - 1)
        bias += (g - 1) * (float(defined.mean()) - value)
    note = f"undefined without {lost:,} of {number:,}" if lost else ""
    if not np.isfinite(value) or variance < 1e-20:
        fewest = min(len(values) for values in parts.values())
        if bounds == (0.0, 1.0) and value in bounds:
            return all_alike(value, fewest, "images" if kind == "images" else kind, kind, level)
        return Interval(value, value, kind, level, note)
    df = variance**2 / doubt
    low, high = bounds or (-math.inf, math.inf)
    centre = value - bias if low < value - bias < high else value
    if math.isfinite(high - low) and low < centre < high:
        span = high - low
        found = share_interval((centre - low) / span, variance / span**2, df, kind, level)
        found = replace(found, low=low + span * found.low, high=low + span * found.high)
    else:
        found = share_interval(centre, variance, df, kind, level, logit_scale=False)
    ends = min(max(found.low, low), value), max(min(found.high, high), value)
    return replace(found, low=ends[0], high=ends[1], note=note)


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
    return Estimate(p, n, (Interval(max(0.0, centre - half), min(1.0, centre + half), kind),))


def mean(values: Array, kind: IntervalKind = "images") -> Estimate:
    """Return the mean of independent values with Student's interval."""
    n = len(values)
    if n < 2:
        return Estimate(float(values[0]) if n else math.nan, n, (undefined(kind, "fewer than two values"),))
    return mean_of_sums(float(values.mean()), float(values.var(ddof=1)) / n, n, n - 1, kind)


def mean_of_sums(value: float, variance: float, n: int, freedom: float, kind: IntervalKind = "images") -> Estimate:
    """Return an estimate with Student's interval from the variance of the mean and its degrees of freedom."""
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 0.975)) * math.sqrt(variance)
    return Estimate(value, n, (Interval(value - half, value + half, kind),))


def difference_of_means(first: Array, second: Array, kind: IntervalKind = "images") -> Estimate:
    """Return the mean of the first minus that of the second sample, with Welch's interval."""
    n = len(first) + len(second)
    if min(len(first), len(second)) < 2:
        return Estimate(math.nan, n, (undefined(kind, "fewer than two values in a group"),))
    a, b = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    freedom = (a + b) ** 2 / max(a**2 / (len(first) - 1) + b**2 / (len(second) - 1), 1e-300)
    return mean_of_sums(float(first.mean() - second.mean()), float(a + b), n, float(freedom), kind)


def difference_from_intervals(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> tuple[float, float]:
    """Return the interval of a difference of two independent numbers from their own intervals.

    With estimates a, b and intervals [l, u]: a − b − √((a − l_a)² + (u_b − b)²) to a − b + √((u_a − a)² + (b − l_b)²),
    which keeps what is asymmetric in them (Newcombe 1998, Stat. Med. 17, method 10, for shares; Zou & Donner 2008).

    Parameters
    ----------
    first, second : (value, low, high)
        Numbers that rest on different images or people.

    Examples
    --------
    >>> [round(end, 4) for end in difference_from_intervals((0.8, 0.69183, 0.87695), (0.6, 0.49045, 0.70038))]
    [0.0524, 0.3339]
    """
    (a, low_a, high_a), (b, low_b, high_b) = first, second
    return a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b)
