"""Adjusting p-values for many comparisons.

``bonferroni`` and ``holm`` bound the chance of a single false alarm (holm is never weaker, so it is the default);
``benjamini_hochberg`` bounds the expected share of false alarms among the findings when the tests are independent or
positively dependent, ``benjamini_yekutieli`` under any dependence.

References
----------
Holm 1979, Scand. J. Stat. 6; Benjamini & Hochberg 1995, JRSS B 57; Benjamini & Yekutieli 2001, Ann. Stat. 29.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError, did_you_mean

Correction = Literal["holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli", "none"]


def adjust(p: Sequence[float] | Floats, method: Correction = "holm") -> Floats:
    """Return adjusted p-values in the same order: a finding holds at level α where its adjusted p ≤ α.

    Parameters
    ----------
    p : sequence of float
        Between 0 and 1. NaN (a test that could not be run) stays NaN and does not count as a comparison.
    method : str
        See the module.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    if method not in _METHODS:
        raise did_you_mean("correction", method, _METHODS)
    values = np.asarray(p, np.float64)
    real = ~np.isnan(values)
    if values.ndim != 1 or (values[real] < 0).any() or (values[real] > 1).any():
        raise UserError(f"p-values must be a list of numbers from 0 to 1; got {values.tolist()}")
    out = values.copy()
    if real.any():
        order = np.argsort(values[real], kind="stable")
        adjusted = np.empty(len(order))
        adjusted[order] = np.minimum(_METHODS[method](values[real][order]), 1)
        out[real] = adjusted
    return out


def _holm(p: Floats) -> Floats:
    return np.maximum.accumulate(p * (len(p) - np.arange(len(p))))


def _benjamini_hochberg(p: Floats) -> Floats:
    scaled = p * len(p) / np.arange(1, len(p) + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _benjamini_yekutieli(p: Floats) -> Floats:
    return _benjamini_hochberg(p) * np.sum(1 / np.arange(1, len(p) + 1))


_METHODS: dict[str, Callable[[Floats], Floats]] = {
    "holm": _holm,
    "bonferroni": lambda p: p * len(p),
    "benjamini_hochberg": _benjamini_hochberg,
    "benjamini_yekutieli": _benjamini_yekutieli,
    "none": lambda p: p,
}
