"""Estimates: values with their intervals, from trials, from bootstrap draws, or derived from other estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.statistics.intervals import Clusters, percentile, ratio_intervals, undefined, weights
from cuebench.statistics.ratios import Terms, total
from cuebench.types import Estimate, Interval, IntervalKind

NORMAL = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


def ratio_estimates(
    terms: Sequence[Terms], clusters: Clusters, kinds: Sequence[IntervalKind], *, seed: int = 0, resamples: int = 10_000
) -> list[Estimate]:
    """Return one estimate for each ratio, with one interval for each kind.

    Parameters
    ----------
    terms : sequence of Terms
        What each trial adds to numerator and denominator, one for each metric.
    clusters : Clusters
        Of the same trials.
    kinds : sequence of str
        Kinds of interval.
    seed, resamples : int
        Of the bootstrap.
    """
    by_kind = [ratio_intervals(terms, clusters, kind, seed=seed, resamples=resamples) for kind in kinds]
    estimates = []
    for i, ratio in enumerate(total(t) for t in terms):
        intervals = tuple(of_kind[i] for of_kind in by_kind)
        if not ratio.denominator:
            intervals = tuple(undefined(kind, "no trial in the denominator") for kind in kinds)
        estimates.append(Estimate(ratio.value, int(ratio.denominator), intervals))
    return estimates


def mean_of_subjects(terms: Terms, subjects: Array, *, seed: int = 0, resamples: int = 10_000) -> Estimate:
    """Return the mean over subjects of each subject's ratio, with n = number of subjects and an interval over them.

    Every subject weighs the same, whereas pooled trials weigh subjects by how often they decided. Subjects without a
    trial in the denominator are excluded.
    """
    names, code = np.unique(subjects, return_inverse=True)
    top, bottom = (np.bincount(code.ravel(), t, len(names)) for t in terms)
    ratios = top[bottom > 0] / bottom[bottom > 0]
    estimate = resampled_mean(ratios, "subjects", seed=seed, resamples=resamples)
    return estimate.excluding({"subjects without a ratio": len(names) - len(ratios)})


def resampled_mean(values: Array, kind: IntervalKind, *, seed: int = 0, resamples: int = 10_000) -> Estimate:
    """Return the mean of values with a bootstrap interval over them, n = their number.

    Parameters
    ----------
    values : float array
        One for each subject, initialisation or class.
    kind : str
        What the values belong to; the draws of the bootstrap depend on it and on their number only.
    seed, resamples : int
        Of the bootstrap.
    """
    n = len(values)
    value = float(np.mean(values)) if n else math.nan
    if n < 2:
        noun = {"classes": "class"}.get(kind, kind.removesuffix("s")) if n else kind
        return Estimate(value, n, (undefined(kind, f"{n} {noun}: nothing to resample"),))
    draws = weights(kind, n, seed, resamples).astype(np.float64) @ values / n
    return Estimate(value, n, (percentile(draws, kind),))


def from_draws(
    value: float, n: int, draws: Mapping[IntervalKind, Array], reasons: Mapping[IntervalKind, str] | None = None
) -> Estimate:
    """Return an estimate with the percentile interval of each kind's draws, which it keeps for derived numbers.

    Parameters
    ----------
    value, n : float, int
        The number and what it was divided by.
    draws : mapping of kind to array
        Bootstrap draws; empty where nothing could be resampled.
    reasons : mapping of kind to str, optional
        Why a kind has no interval; default for empty draws: too few images.
    """
    intervals = []
    for kind, drawn in draws.items():
        reason = (reasons or {}).get(kind, "")
        if not reason and not len(drawn):
            reason = f"{n} image{'s' * (n != 1)}: nothing to resample"
        intervals.append(undefined(kind, reason) if reason else percentile(drawn, kind))
    return Estimate(float(value), n, tuple(intervals), draws=draws)


def derived(function: Callable[..., Any], *estimates: Estimate, n: int | None = None) -> Estimate:
    """Return a function of estimates, with intervals from the same function of their draws.

    Parameters
    ----------
    function : callable
        Of floats and of arrays alike, element by element.
    estimates : Estimate
        Its arguments. Draws of one kind belong together: resample i of each is the same resample. An estimate without
        draws of a kind is a constant in the intervals of that kind.
    n : int, optional
        What the result rests on; default: the sum over the arguments.
    """
    value = float(function(*(e.value for e in estimates)))
    total_n = sum(e.n for e in estimates) if n is None else n
    kinds = dict.fromkeys(kind for e in estimates for kind in e.draws)
    draws: dict[IntervalKind, Array] = {}
    for kind in kinds:
        columns = [e.draws.get(kind, e.value) for e in estimates]
        lengths = {len(c) for c in columns if np.ndim(c)}
        empty = len(lengths) != 1 or 0 in lengths
        draws[kind] = np.empty(0) if empty else np.asarray(function(*columns), np.float64)
    # Where nothing could be resampled, the arguments know why.
    reasons = {
        kind: "; ".join(dict.fromkeys(i.note for e in estimates for i in e.intervals if i.kind == kind and i.note))
        for kind, drawn in draws.items()
        if not len(drawn)
    }
    return from_draws(value, total_n, draws, reasons)


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
