"""Ratios of sums: what each trial adds to a numerator and to a denominator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Bools, Floats


@dataclass(frozen=True)
class Ratio:
    """A numerator and a denominator."""

    numerator: float
    denominator: float

    @property
    def value(self) -> float:
        """The quotient; NaN where the denominator is 0, because nothing was measured."""
        return self.numerator / self.denominator if self.denominator else float("nan")


class Terms(NamedTuple):
    """What each trial adds to the numerator and to the denominator: 0 or 1, or a count."""

    numerator: Bools | Floats
    denominator: Bools | Floats


def total(terms: Terms) -> Ratio:
    """Sum the terms of all trials."""
    return Ratio(float(terms.numerator.sum()), float(terms.denominator.sum()))


def quotient(numerator: Any, denominator: Any) -> Any:
    """Divide element by element; NaN where the denominator is 0. Two numbers give a float.

    >>> quotient(1, 4), quotient(1, 0)
    (0.25, nan)
    """
    top, bottom = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    ratio = np.divide(top, bottom, out=np.full(np.broadcast(top, bottom).shape, np.nan), where=bottom != 0)
    return ratio if ratio.ndim else float(ratio)
