"""Rankings that do not claim more than the data: tie groups and ranges of ranks.

Two models are *separable* where the interval of their difference leaves out 0 (after correction for all pairs). A tie
group is a longest run of models, in order of their values, in which no two are separable; groups may overlap, as in a
display by letters. The rank of a model is a range: 1 + the number of models surely above it … n − the number surely
below it.

References
----------
Piepho 2004, J. Comput. Graph. Stat. 13 (letter displays); Goldstein & Spiegelhalter 1996, JRSS A 159 (ranks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Bools, Floats
from cuebench.errors import UserError
from cuebench.statistics.multiple import Correction, adjust


class RankRange(NamedTuple):
    """The best and the worst rank that a model can have; 1 is the highest value."""

    best: int
    worst: int


def separable_by_draws(draws: Floats, *, level: float = 0.95, correction: Correction = "holm") -> Bools:
    """Return models × models: is the difference of two models other than 0, from joint bootstrap draws?

    Parameters
    ----------
    draws : resamples × models
        Of the same resamples for all models, so that what they share cancels (a paired comparison).
    level, correction
        Of all pairs together. p of a pair = 2·min(share of draws ≥ 0, share ≤ 0), at least 1/resamples.
    """
    if draws.ndim != 2 or len(draws) < 2:
        raise UserError(f"draws must be resamples × models; got shape {draws.shape}")
    i, j = np.triu_indices(draws.shape[1], 1)
    p = np.array([_two_sided(draws[:, a] - draws[:, b]) for a, b in zip(i, j)])
    out = np.zeros((draws.shape[1],) * 2, bool)
    out[i, j] = out[j, i] = adjust(p, correction) <= 1 - level
    return out


def separable_by_intervals(low: Sequence[float] | Floats, high: Sequence[float] | Floats) -> Bools:
    """Return models × models: do the intervals not overlap?

    All that can be said where only intervals are published. Too strict for two models (not overlapping is more than a
    difference at the same level) and uncorrected for many.
    """
    a, b = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise UserError(f"{a.shape} lower and {b.shape} upper ends of intervals")
    if (a > b).any():
        raise UserError(f"{int((a > b).sum())} intervals end before they begin")
    return (a[:, None] > b[None, :]) | (a[None, :] > b[:, None])


def tie_groups(values: Sequence[float] | Floats, separable: Bools) -> list[tuple[int, ...]]:
    """Return the tie groups, highest first; each is a tuple of positions in order of their values.

    Parameters
    ----------
    values : sequence of float
        One for each model.
    separable : bool array models × models
        Symmetric.

    Examples
    --------
    >>> tie_groups([0.9, 0.5, 0.4], separable_by_intervals([0.8, 0.4, 0.3], [1.0, 0.6, 0.5]))
    [(0,), (1, 2)]
    """
    order = _order(values, separable)
    runs: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not separable[order[end], order[start:end]].any():
            end += 1
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    return [tuple(int(k) for k in order[a:b]) for a, b in runs]


def letters(groups: Sequence[Sequence[int]], number: int) -> list[str]:
    """Return the letters of each of ``number`` observers: those with a letter in common are not separable.

    Parameters
    ----------
    groups : sequence of sequences of int
        From ``ranking.tie_groups``, highest first.
    number : int
        Of observers.

    Examples
    --------
    >>> letters([(0, 1), (1, 2)], 3)
    ['a', 'ab', 'b']
    """
    if any(not 0 <= i < number for group in groups for i in group):
        raise UserError(f"groups of {number} observers name others")
    return ["".join(_letter(k) for k, group in enumerate(groups) if i in group) for i in range(number)]


def _letter(position: int) -> str:
    letter = chr(ord("a") + position % 26)
    return letter if position < 26 else f"{letter}{position // 26}"


def rank_ranges(values: Sequence[float] | Floats, separable: Bools) -> list[RankRange]:
    """Return the range of ranks of each model, in the order of the values."""
    _order(values, separable)
    x = np.asarray(values, np.float64)
    above = (separable & (x[None, :] > x[:, None])).sum(axis=1)
    below = (separable & (x[None, :] < x[:, None])).sum(axis=1)
    return [RankRange(int(1 + a), int(len(x) - b)) for a, b in zip(above, below)]


def _order(values: Sequence[float] | Floats, separable: Bools) -> np.ndarray[Any, np.dtype[np.intp]]:
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or separable.shape != (len(x), len(x)) or (separable != separable.T).any():
        raise UserError(f"{x.shape} values with a comparison of shape {separable.shape}", "it must be symmetric")
    if not np.isfinite(x).all():
        raise UserError(f"{int((~np.isfinite(x)).sum())} values are missing", "rank only the models that have one")
    return np.argsort(-x, kind="stable")


def _two_sided(difference: Floats) -> float:
    n = len(difference)
    smaller = min(int((difference >= 0).sum()), int((difference <= 0).sum()))
    return min(1.0, max(2 * smaller, 1) / n)
