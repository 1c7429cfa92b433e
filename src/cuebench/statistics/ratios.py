"""Ratios of sums: what each trial adds to a numerator and to a denominator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
