"""Pearson, Spearman and Kendall correlations with intervals, for whole tables at once.

A bootstrap draw gives model i the multinomial weight w_i. Its ranks need no new sorting: with the values sorted once,
the mean rank of a group of equal values is Σ_{before} w + (w_group + 1)/2, a cumulative sum. A resampled Spearman
correlation is then the weighted Pearson correlation of such ranks, and all pairs of columns of all draws are matrix
products. Kendall's τ_b weighs the pair (i, j) by w_i·w_j; an item drawn twice is tied with itself and drops out.

Of twenty models or fewer neither the bootstrap nor a normal approximation holds what it promises (of five in 62 to 86 %
of studies where the true correlation is .8 or .95: five models in perfect order would be certain). Their interval
inverts the test: it holds the correlations under which a sample like this one is not among the 2.5 % lowest or highest,
for values that some increasing function makes bivariate normal. Simulated once for each number of models.

References
----------
Fisher 1921 (z); Bonett & Wright 2000, Psychometrika 65 (Spearman's standard error); Fieller, Hartley & Pearson 1957,
Biometrika 44 (Kendall's); Kendall 1945 (τ_b).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from math import factorial, isnan, log
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError, did_you_mean
from cuebench.statistics.intervals import child_generator, weights

Method = Literal["pearson", "spearman", "kendall"]
How = Literal["bootstrap", "fisher"]

_CHUNK = 2_000_000  # float64 numbers in memory at once: 16 MB
_EXACT = 8
"""Most models for which all orders are tried (8! = 40,320). The t distribution that is used above this says p = 0 of
five models in perfect order; 2 of their 120 orders are."""
_PERFECT = 1 - 1e-12
"""From here on a correlation is 1 but for rounding."""
_FEW: Mapping[Method, int] = {"pearson": 20, "spearman": 20, "kendall": 30}
"""Up to this many models the interval of a rank correlation is an inverted test, that of Pearson's is Fisher's. Of 21
models Fisher's holds a τ of .8 in 92.7 % of studies."""
_ROUGH = 5
"""Models below which it is too wide or too narrow by some percent: there are too few different orders."""
_SAMPLES = 10_000
_FAR = (3.8, 4.5, 5.3, 6.2)
_GRID = np.tanh(np.r_[np.negative(_FAR[::-1]), np.linspace(-3.2, 3.2, 41), _FAR])
"""True correlations that are tried; those at both ends decide about samples of many models in perfect order."""


class Correlation(NamedTuple):
    """A correlation, its interval, the two-sided p-value of no association, how many pairs, and what was left out."""

    value: float
    low: float
    high: float
    p: float
    n: int
    note: str = ""

    @property
    def text(self) -> str:
        """The value with its interval, as tables have it; a dash where it is undefined."""
        if isnan(self.value):
            return "–"
        return f"{self.value:+.2f}" + ("" if isnan(self.low) else f" [{self.low:+.2f}, {self.high:+.2f}]")


class Matrix(NamedTuple):
    """The correlations of all pairs of columns; each array is columns × columns."""

    names: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    n: int


def correlate(
    x: Sequence[float] | Floats,
    y: Sequence[float] | Floats,
    method: Method = "spearman",
    *,
    how: How = "fisher",
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> Correlation:
    """Return the correlation of two columns with an interval.

    Parameters
    ----------
    x, y : sequences of float
        One value for each model. Pairs with a missing value (NaN) are left out, and the note says how many.
    method : ``pearson``, ``spearman`` or ``kendall``
        Kendall is τ_b.
    how : ``fisher`` or ``bootstrap``
        Of more than twenty models (Kendall: thirty): atanh(r) ± z·se with se² = 1/(n−3) for Pearson, (1 + r²/2)/(n−3)
        for Spearman and .437/(n−4) for Kendall; or percentiles over resampled models, which held Pearson's correlation
        of 40 models in 92 to 94 % of simulated studies. Of fewer models: an inverted test, see above. For a perfect
        correlation see `fisher_interval`.
    seed, resamples, level
        The same three give the same bytes.

    Returns
    -------
    Correlation
        NaN with a reason where a column is constant. The p-value is exact for eight models or fewer: the share of all
        n! orders of y that correlate at least as much. Of more models it is never below 2/n!, which is what the
        perfect order and its reverse are among all orders.

    Examples
    --------
    >>> round(correlate([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], how="fisher").value, 3)
    0.8
    """
    _check(method, how)
    a, b, missing = _pairs(x, y)
    left_out = f"{missing} pair{'s' * (missing != 1)} with a missing value left out" if missing else ""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        reason = "undefined: a column is constant"
        return Correlation(np.nan, np.nan, np.nan, np.nan, len(a), "; ".join(filter(None, (reason, left_out))))
    value, p = _tested(a, b, method)
    if len(a) <= _FEW[method]:
        low, high = few_interval(value, len(a), method, level)
    elif how == "fisher":
        low, high = fisher_interval(value, len(a), method, level)
    else:
        matrix = correlation_matrix({"x": a, "y": b}, method, seed=seed, resamples=resamples, level=level)
        low, high = float(matrix.low[0, 1]), float(matrix.high[0, 1])
    limits = f"{len(a)} models: the interval is rough" if len(a) < _ROUGH else ""
    if np.isnan(low):
        limits = "no interval: " + ("all lie on one line" if abs(value) >= _PERFECT else f"{len(a)} models are too few")
    return Correlation(value, low, high, p, len(a), "; ".join(filter(None, (left_out, limits))))


def fisher_interval(value: float, n: int, method: Method = "pearson", level: float = 0.95) -> tuple[float, float]:
    """Return tanh(atanh(r) ± z·se); (NaN, NaN) where n is too small for the standard error.

    Of a perfect rank correlation one end is ±1. The other is Fisher's of the value halfway to the next order for
    Spearman, and for Kendall, where Fisher's is far too narrow so near to 1, it is where the expected number of pairs
    out of order is −ln(1 − level). Pearson's at ±1 has none: nothing says how far other models are from the line.

    Examples
    --------
    >>> [round(end, 3) for end in fisher_interval(1.0, 30, "spearman")]
    [0.999, 1.0]
    """
    from scipy.stats import norm

    spare = n - (4 if method == "kendall" else 3)
    perfect = abs(value) >= _PERFECT
    if spare < 1 or (perfect and method == "pearson"):
        return np.nan, np.nan
    if perfect and method == "kendall":
        inner = 1 + 4 * log(1 - level) / (n * (n - 1))
        return (inner, 1.0) if value > 0 else (-1.0, -inner)
    # Two neighbours that change places change Spearman's ρ by 12/(n(n² − 1)).
    most = 1 - 6 / (n * (n * n - 1)) if method == "spearman" else 1.0
    r = min(max(value, -most), most)
    numerator = {"pearson": 1.0, "spearman": 1 + r**2 / 2, "kendall": 0.437}[method]
    reach = norm.ppf((1 + level) / 2) * np.sqrt(numerator / spare)
    low, high = (float(np.tanh(np.arctanh(r) + d)) for d in (-reach, reach))
    if perfect:
        return (low, 1.0) if value > 0 else (-1.0, high)
    return low, high


def few_interval(value: float, n: int, method: Method = "spearman", level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a correlation of few models: an inverted test for ranks, Fisher's for Pearson's.

    Examples
    --------
    >>> [round(end, 1) for end in few_interval(1.0, 5)]
    [0.5, 1.0]
    """
    if method == "pearson" or not np.isfinite(value):
        return fisher_interval(value, n, method, level)
    return _inverted(float(value), n, method, level)


@lru_cache(maxsize=4096)  # few models have few different correlations
def _inverted(value: float, n: int, method: Method, level: float) -> tuple[float, float]:
    true, samples = _copula(n, method)
    below, upto = (
        np.array([np.searchsorted(row, value + step) for row in samples]) / _SAMPLES for step in (-1e-9, 1e-9)
    )
    # Share of samples that are lower, ties counting half; it falls with the true correlation.
    lower, tail = np.minimum.accumulate((below + upto) / 2), (1 - level) / 2
    low = -1.0 if lower[0] < 1 - tail else float(np.interp(tail - 1, -lower, true))
    high = 1.0 if lower[-1] > tail else float(np.interp(-tail, -lower, true))
    return min(low, value), max(high, value)


@lru_cache(maxsize=32)
def _copula(n: int, method: Method) -> tuple[Floats, Floats]:
    """Return true rank correlations, and sorted correlations of samples of n with each of them."""
    rng = child_generator(0, f"correlations/{method}/{n}")
    rho = _GRID
    first, noise = rng.normal(size=(2, _SAMPLES, n))
    i, j = np.triu_indices(n, 1)
    signs = (first[:, i] > first[:, j]) if method == "kendall" else np.empty(0)
    order = first.argsort(axis=1).argsort(axis=1)
    samples = np.empty((len(rho), _SAMPLES))
    for row, r in enumerate(rho):
        second = r * first + np.sqrt(1 - r * r) * noise
        if method == "kendall":
            samples[row] = 2 * (signs == (second[:, i] > second[:, j])).mean(axis=1) - 1
        else:
            distance = ((order - second.argsort(axis=1).argsort(axis=1)) ** 2).sum(axis=1)
            samples[row] = 1 - 6 * distance / (n * (n * n - 1))
    true = 2 / np.pi * np.arcsin(rho) if method == "kendall" else 6 / np.pi * np.arcsin(rho / 2)
    return true, np.sort(samples, axis=1)


def correlation_matrix(
    columns: Mapping[str, Sequence[float] | Floats],
    method: Method = "spearman",
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> Matrix:
    """Return the correlations of all pairs of columns with bootstrap intervals, all from the same resamples.

    Parameters
    ----------
    columns : mapping of name to values
        Equally long, without missing values: a table has one set of models.
    method, seed, resamples, level
        As in ``correlate``.
    """
    _check(method, "bootstrap")
    table = _table(columns)
    value = _draws(table, np.ones((1, table.shape[1])), method)[0]
    if table.shape[1] <= _FEW[method]:
        ends = [[few_interval(v, table.shape[1], method, level) for v in row] for row in value]
        low, high = np.moveaxis(np.array(ends), -1, 0)
        return Matrix(tuple(columns), value, low, high, table.shape[1])
    drawn = weights("models", table.shape[1], seed, resamples)
    rows = max(1, _CHUNK // (table.shape[1] * max(len(table), table.shape[1])))
    parts = [_draws(table, drawn[i : i + rows].astype(np.float64), method) for i in range(0, resamples, rows)]
    draws, tail = np.concatenate(parts), (1 - level) / 2
    quantile = np.nanquantile if np.isnan(draws).any() else np.quantile  # the former is much slower
    low, high = quantile(draws, [tail, 1 - tail], axis=0)
    for place in np.argwhere(np.abs(value) >= _PERFECT):  # resampled models are in perfect order too
        i, j = place
        low[i, j], high[i, j] = fisher_interval(value[i, j], table.shape[1], method, level)
    return Matrix(tuple(columns), value, low, high, table.shape[1])


def ranks(values: Floats, counts: Floats) -> Floats:
    """Return the mean ranks of items of which item i occurs ``counts[:, i]`` times, draws × items.

    Ties share the mean of the ranks they span. An item with count 0 gets a rank too; its weight is 0 wherever it is
    used.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    group = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(ordered)]))
    size = np.add.reduceat(counts[:, order], first, axis=1)
    middle = np.cumsum(size, axis=1) - (size - 1) / 2
    out = np.empty_like(counts)
    out[:, order] = middle[:, group]
    return out


def _draws(table: Floats, counts: Floats, method: Method) -> Floats:
    """Return draws × columns × columns of correlations; NaN where a resampled column is constant."""
    if method == "kendall":
        return _kendall(table, counts)
    if method == "spearman":
        scores = np.stack([ranks(row, counts) for row in table], axis=1)
    else:
        scores = np.broadcast_to(table, (len(counts), *table.shape))
    total = counts.sum(axis=1)[:, None, None]
    centred = scores - (scores * counts[:, None, :]).sum(axis=2, keepdims=True) / total
    return _normalised(centred * counts[:, None, :] @ centred.transpose(0, 2, 1))


def _kendall(table: Floats, counts: Floats) -> Floats:
    i, j = np.triu_indices(table.shape[1], 1)
    sign = np.sign(table[:, i] - table[:, j])
    pairs = counts[:, i] * counts[:, j]
    a, b = np.triu_indices(len(table))
    sums = pairs @ (sign[a] * sign[b]).T
    out = np.empty((len(counts), len(table), len(table)))
    out[:, a, b] = out[:, b, a] = sums
    return _normalised(out)


def _normalised(products: Floats) -> Floats:
    spread = np.sqrt(np.einsum("bii->bi", products))
    # A constant column leaves rounding noise behind where the exact product is 0.
    spread = np.where(spread > 1e-12, spread, np.nan)
    return np.clip(products / (spread[:, :, None] * spread[:, None, :]), -1, 1)


def _tested(a: Floats, b: Floats, method: Method) -> tuple[float, float]:
    """Return the correlation and its p-value."""
    from scipy import stats

    if len(a) <= _EXACT:
        return _exact(a, b, method)
    test = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[method](a, b)
    # Of more than 170 models, 2/n! is smaller than any float.
    return float(test.statistic), max(float(test.pvalue), 2 / factorial(min(len(a), 170)))


def _exact(a: Floats, b: Floats, method: Method) -> tuple[float, float]:
    """Return the correlation, and the share of all n! orders whose correlation is at least as far from 0."""
    orders = _orders(len(a))
    if method == "kendall":
        i, j = np.triu_indices(len(a), 1)
        x, y = (np.sign(np.subtract.outer(v, v)) for v in (a, b))
        x, arranged = x[i, j], y[orders[:, i], orders[:, j]]
    else:
        once = np.ones((1, len(a)))
        x, y = (v - v.mean() for v in ((a, b) if method == "pearson" else (ranks(v, once)[0] for v in (a, b))))
        arranged = y[orders]
    # The first order is that of the models as they are.
    found = arranged @ x / np.sqrt((x @ x) * (arranged[0] @ arranged[0]))
    return min(1.0, max(-1.0, float(found[0]))), float((np.abs(found) >= abs(found[0]) - 1e-9).mean())


@lru_cache(maxsize=_EXACT)
def _orders(n: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return all orders of n items, n! × n: listed once for all pairs of columns."""
    return np.array(list(permutations(range(n))), np.uint8)


def _check(method: str, how: str) -> None:
    if method not in get_args(Method):
        raise did_you_mean("correlation", method, get_args(Method))
    if how not in get_args(How):
        raise did_you_mean("kind of interval", how, get_args(How))


def _pairs(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> tuple[Floats, Floats, int]:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise UserError(f"correlation of {a.shape} and {b.shape} values: both columns need one value for each model")
    keep = np.isfinite(a) & np.isfinite(b)
    if keep.sum() < 3:
        raise UserError(f"correlation of {int(keep.sum())} pairs", "at least 3 models with both values are needed")
    return a[keep], b[keep], int(len(a) - keep.sum())


def _table(columns: Mapping[str, Sequence[float] | Floats]) -> Floats:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise UserError(f"columns of different lengths: {lengths}")
    table = np.array([np.asarray(v, np.float64) for v in columns.values()])
    missing = [name for name, row in zip(columns, table) if not np.isfinite(row).all()]
    if missing:
        raise UserError(f"missing values in {', '.join(missing)}", "keep only the models that have all columns")
    if table.shape[1] < 3:
        raise UserError(f"correlations over {table.shape[1]} models", "at least 3 are needed")
    return table
