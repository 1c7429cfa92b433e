"""One-sample, paired and permutation tests.

The t-tests assume independent values with a normal mean; the permutation tests only that signs (one sample, pairs) or
labels (two samples) could have been exchanged. Small samples are enumerated completely; large ones are drawn by the
seed, and p = (hits + 1)/(draws + 1), so that p is never 0 (Phipson & Smyth 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from math import comb
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError
from cuebench.statistics.intervals import child_generator

_EXACT = 1 << 16
"""Up to this many rearrangements all of them are counted."""
_TIE = 1e-9
"""Sums in another order differ by rounding: rearrangements this close to the observed one are as extreme."""


class Verdict(NamedTuple):
    """A two-sided test: the estimate (a mean or a difference of means), its interval, the statistic and p."""

    estimate: float
    low: float
    high: float
    statistic: float
    df: float
    p: float
    n: int
    note: str = ""


def one_sample_t(values: Sequence[float] | Floats, against: float = 0.0, *, level: float = 0.95) -> Verdict:
    """Return Student's t-test of a mean: t = (mean − against) / (s/√n), n − 1 degrees of freedom.

    Parameters
    ----------
    values : sequence of float
        At least two; not all equal but for rounding, or t is undefined (NaN with a reason).
    against : float
        What the mean is compared with; the estimate and its interval are of mean − against.
    level : float
        Of the interval.

    References
    ----------
    Student 1908, The probable error of a mean, Biometrika 6.

    Examples
    --------
    >>> round(one_sample_t([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]).p, 4)
    0.2176
    """
    from scipy import stats

    x = _values(values, "values")
    if np.ptp(x) <= _TIE * np.abs(x).max():
        reason = "undefined: all values are equal"
        return Verdict(float(x[0] - against), np.nan, np.nan, np.nan, len(x) - 1, np.nan, len(x), reason)
    test = stats.ttest_1samp(x, against)
    interval = test.confidence_interval(level)
    low, high = float(interval.low) - against, float(interval.high) - against
    t, p = float(test.statistic), max(float(test.pvalue), np.finfo(np.float64).tiny)
    return Verdict(float(x.mean() - against), low, high, t, len(x) - 1, p, len(x))


def paired_t(first: Sequence[float] | Floats, second: Sequence[float] | Floats, *, level: float = 0.95) -> Verdict:
    """Return the t-test of the mean difference first − second of pairs."""
    a, b = _values(first, "first"), _values(second, "second")
    if len(a) != len(b):
        raise UserError(f"pairs of {len(a)} and {len(b)} values", "a paired test needs the same items twice")
    return one_sample_t(a - b, 0.0, level=level)


def sign_flip(
    values: Sequence[float] | Floats, against: float = 0.0, *, seed: int = 0, resamples: int = 100_000
) -> Verdict:
    """Return the permutation test of a mean (or of paired differences) by exchanging signs.

    p = share of the 2ⁿ assignments of signs whose |mean| is at least the observed one.

    Parameters
    ----------
    values : sequence of float
        Differences from ``against`` are symmetric around 0 under the null hypothesis.
    against : float
        What the mean is compared with.
    seed, resamples : int
        Used only where 2ⁿ > 65,536.

    Notes
    -----
    With n values the smallest possible p is 2/2ⁿ: five models cannot reach .05.

    References
    ----------
    Fisher 1935, The Design of Experiments, §21.
    """
    x = _values(values, "values") - against
    total = 1 << len(x) if len(x) < 60 else 0
    if total and total <= _EXACT:
        signs = 1 - 2 * ((np.arange(total)[:, None] >> np.arange(len(x))) & 1).astype(np.float64)
        return _permuted(x.mean(), signs @ x / len(x), len(x), exact=True)
    rng = child_generator(seed, "sign_flip")
    sums = [(2.0 * rng.integers(0, 2, (m, len(x))) - 1) @ x / len(x) for m in _portions(resamples, len(x))]
    return _permuted(x.mean(), np.concatenate(sums), len(x), exact=False)


def two_sample_permutation(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, *, seed: int = 0, resamples: int = 100_000
) -> Verdict:
    """Return the permutation test of mean(first) − mean(second) by exchanging labels; exact for small samples."""
    a, b = _values(first, "first"), _values(second, "second")
    both, n = np.concatenate([a, b]), len(a)
    observed = a.mean() - b.mean()
    scale, shift = 1 / n + 1 / len(b), both.sum() / len(b)
    if comb(len(both), n) <= _EXACT:
        chosen = _batched(combinations(range(len(both)), n), 4096)
        draws = [both[np.array(part)].sum(axis=1) * scale - shift for part in chosen]
        return _permuted(observed, np.concatenate(draws), len(both), exact=True)
    rng = child_generator(seed, "two_sample_permutation")
    order = (rng.permuted(np.tile(both, (m, 1)), axis=1) for m in _portions(resamples, len(both)))
    draws = [part[:, :n].sum(axis=1) * scale - shift for part in order]
    return _permuted(observed, np.concatenate(draws), len(both), exact=False)


def bootstrap_mean(
    values: Sequence[float] | Floats,
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
    statistic: Callable[[Floats], Floats] | None = None,
) -> tuple[float, float]:
    """Return the percentile interval of the mean (or of a statistic along the last axis) over resampled values."""
    x = _values(values, "values")
    drawn = x[child_generator(seed, "bootstrap_mean").integers(len(x), size=(resamples, len(x)))]
    draws = drawn.mean(axis=1) if statistic is None else statistic(drawn)
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return float(low), float(high)


def _permuted(observed: float, draws: Floats, n: int, *, exact: bool) -> Verdict:
    edge = abs(observed) - _TIE * max(1.0, abs(observed))
    hits = int((np.abs(draws) >= edge).sum())
    p = hits / len(draws) if exact else (hits + 1) / (len(draws) + 1)
    note = f"all {len(draws):,} rearrangements" if exact else f"{len(draws):,} random rearrangements"
    return Verdict(float(observed), np.nan, np.nan, float(observed), np.nan, p, n, note)


def _values(values: Sequence[float] | Floats, name: str) -> Floats:
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or len(x) < 2:
        raise UserError(f"{name}: a test needs a list of at least 2 numbers; got shape {x.shape}")
    if not np.isfinite(x).all():
        raise UserError(f"{name}: {int((~np.isfinite(x)).sum())} of {len(x)} are not numbers", "leave them out first")
    return x


def _portions(total: int, width: int) -> list[int]:
    step = max(1, 2_000_000 // width)
    return [min(step, total - done) for done in range(0, total, step)]


def _batched(items: Iterator[tuple[int, ...]], size: int) -> Iterator[list[tuple[int, ...]]]:
    while part := list(islice(items, size)):
        yield part
