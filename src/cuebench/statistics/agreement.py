"""Agreement among raters: Cohen's κ of two, Fleiss' κ of many, with intervals.

κ = (P_o − P_e)/(1 − P_e): how far the observed agreement goes beyond what the raters' habits alone would give. κ is
undefined (NaN with a reason) where P_e = 1, that is where only one category was ever used.

References
----------
Cohen 1960, Educ. Psychol. Meas. 20; Fleiss, Cohen & Everitt 1969, Psychol. Bull. 72 (standard error of Cohen's κ);
Fleiss 1971, Psychol. Bull. 76; Fleiss, Nee & Landis 1979, Psychol. Bull. 86 (standard error of Fleiss' κ under κ = 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError
from cuebench.statistics.intervals import child_generator, weights

How = Literal["bootstrap", "asymptotic"]


class Kappa(NamedTuple):
    """κ, its interval, its standard error (asymptotic) and the number of items."""

    value: float
    low: float
    high: float
    se: float
    n: int
    note: str = ""


def counts_of(ratings: Sequence[Sequence[str]], categories: Sequence[str] = ()) -> Floats:
    """Return items × categories: how many raters chose each; an empty string is a missing rating.

    Parameters
    ----------
    ratings : items × raters
        Category names.
    categories : sequence of str
        The possible ones; default: those that occur.
    """
    names = list(categories) or sorted({r for item in ratings for r in item if r})
    unknown = sorted({r for item in ratings for r in item if r} - set(names))
    if unknown:
        raise UserError(f"ratings outside the categories: {', '.join(unknown)}", f"categories: {', '.join(names)}")
    return np.array([[sum(r == name for r in item) for name in names] for item in ratings], np.float64)


def fleiss_kappa(
    counts: Sequence[Sequence[float]] | Floats, *, seed: int = 0, resamples: int = 10_000, level: float = 0.95
) -> Kappa:
    """Return Fleiss' κ with the bootstrap interval over items.

    P_o = mean over items of Σ_j n_ij(n_ij − 1)/(n_i(n_i − 1)), P_e = Σ_j p_j² with p_j the share of category j among
    all ratings. Items may have different numbers of raters; an item with fewer than two is left out and counted.

    Parameters
    ----------
    counts : items × categories
        How many raters chose each category (``counts_of``).
    seed, resamples, level
        Of the interval. ``se`` is that of Fleiss, Nee & Landis under κ = 0 (equal numbers of raters; else NaN).
    """
    table = np.asarray(counts, np.float64)
    if table.ndim != 2 or (table < 0).any():
        raise UserError(f"Fleiss' κ needs counts, items × categories; got shape {table.shape}")
    raters = table.sum(axis=1)
    kept = table[raters >= 2]
    if len(kept) < 2:
        raise UserError(f"{len(kept)} items with two or more ratings", "at least 2 are needed")
    left_out = len(table) - len(kept)
    note = f"{left_out} item{'s' * (left_out != 1)} with fewer than two ratings left out" if left_out else ""
    value = float(_fleiss(kept, np.ones((1, len(kept))))[0])
    if np.isnan(value):
        return Kappa(np.nan, np.nan, np.nan, np.nan, len(kept), "undefined: only one category was ever used")
    draws = _fleiss(kept, weights("items", len(kept), seed, resamples).astype(np.float64))
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Kappa(value, float(low), float(high), _fleiss_se(kept), len(kept), note)


def cohen_kappa(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    how: How = "asymptotic",
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> Kappa:
    """Return Cohen's κ of two raters, P_o = Σ p_jj and P_e = Σ p_j·p_·j.

    Parameters
    ----------
    first, second : sequences of categories, one for each item
        In the same order.
    how : ``asymptotic`` or ``bootstrap``
        κ ± z·se with the standard error of Fleiss, Cohen & Everitt, or percentiles over resampled items.
    seed, resamples, level
        Of the interval.

    Examples
    --------
    >>> round(cohen_kappa(list("aaabbb"), list("aabbbb")).value, 3)
    0.667
    """
    table = _confusion(first, second)
    n = int(table.sum())
    share = table / n
    value = float(_cohen(share[None])[0])
    if np.isnan(value):
        return Kappa(np.nan, np.nan, np.nan, np.nan, n, "undefined: both raters used one and the same category only")
    se = _cohen_se(share, n)
    if how == "asymptotic":
        from scipy.stats import norm

        reach = float(norm.ppf((1 + level) / 2)) * se
        return Kappa(value, max(-1.0, value - reach), min(1.0, value + reach), se, n)
    drawn = child_generator(seed, "cohen_kappa").multinomial(n, share.ravel(), size=resamples)
    draws = _cohen(drawn.reshape(-1, *share.shape) / n)
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Kappa(value, float(low), float(high), se, n)


def _fleiss(table: Floats, counts: Floats) -> Floats:
    raters = table.sum(axis=1)
    agree = (table * (table - 1)).sum(axis=1) / (raters * (raters - 1))
    observed = counts @ agree / counts.sum(axis=1)
    share = counts @ table
    expected = ((share / share.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return _kappa(observed, expected)


def _fleiss_se(table: Floats) -> float:
    raters = table.sum(axis=1)
    if np.ptp(raters):
        return float("nan")
    p = table.sum(axis=0) / table.sum()
    q = 1 - p
    spread = (p * q).sum()
    inner = spread**2 - (p * q * (q - p)).sum()
    n = raters[0]
    return float(np.sqrt(2 * inner / (len(table) * n * (n - 1))) / spread)


def _confusion(first: Sequence[Any], second: Sequence[Any]) -> Floats:
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise UserError(
            f"Cohen's κ of {a.shape} and {b.shape} ratings", "both raters must rate the same items, 2 or more"
        )
    names, code = np.unique(np.concatenate([a, b]), return_inverse=True)
    table = np.zeros((len(names), len(names)))
    np.add.at(table, (code[: len(a)], code[len(a) :]), 1)
    return table


def _cohen(share: Floats) -> Floats:
    observed = np.einsum("bii->b", share)
    return _kappa(observed, (share.sum(axis=2) * share.sum(axis=1)).sum(axis=1))


def _cohen_se(p: Floats, n: int) -> float:
    row, column, diagonal = p.sum(axis=1), p.sum(axis=0), np.diag(p)
    expected, kappa = float(row @ column), float(_cohen(p[None])[0])
    same = (diagonal * (1 - (row + column) * (1 - kappa)) ** 2).sum()
    others = p * (column[:, None] + row[None, :]) ** 2
    cross = (1 - kappa) ** 2 * (others.sum() - np.diag(others).sum())
    variance = same + cross - (kappa - expected * (1 - kappa)) ** 2
    # A perfect table has variance 0, up to rounding.
    return float(np.sqrt(max(variance, 0.0) / n) / (1 - expected))


def _kappa(observed: Floats, expected: Floats) -> Floats:
    out = np.full(np.shape(observed), np.nan)
    np.divide(observed - expected, 1 - expected, out=out, where=expected < 1 - 1e-12)
    return out
