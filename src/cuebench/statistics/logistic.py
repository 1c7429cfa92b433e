"""Rates whose log odds vary normally: between people, images or sources."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Floats


@lru_cache(maxsize=8)
def normal_nodes(number: int) -> tuple[Floats, Floats]:
    """Return values of a standard normal variable and their weights: a mean over the variable is a weighted sum."""
    values, weights = np.polynomial.hermite_e.hermegauss(number)
    return values, weights / weights.sum()


@lru_cache(maxsize=4096)
def central_log_odds(rate: float, spread: float, number: int) -> float:
    """Return m such that the mean of 1/(1 + exp(−m − spread·Z)) is the rate, Z standard normal.

    Parameters
    ----------
    rate : float
        From 0 to 1; both ends have infinite log odds.
    spread : float
        Standard deviation of the log odds.
    number : int
        Of the values that stand for Z.

    Examples
    --------
    >>> round(central_log_odds(0.5, 2.0, 41), 6), central_log_odds(1.0, 2.0, 41)
    (0.0, inf)
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    if rate > 0.5:  # a mean next to 1 is rounded, one next to 0 is not
        return -central_log_odds(1 - rate, spread, number)
    if rate <= 0:
        return -np.inf
    values, weights = normal_nodes(number)
    # From −750 on exp(x) is 0, so that even the largest effect leaves a mean of 0.
    least = -750 - spread * values.max()
    return float(brentq(lambda m: float(weights @ expit(m + spread * values)) - rate, least, 1.0))
