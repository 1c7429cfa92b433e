"""Ratios of sums: what each trial adds to a numerator and to a denominator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cuebench.arrays import Bools


@dataclass(frozen=True)
class Ratio:
    """A numerator and a denominator. Counts of shards add up: ``a + b`` is the count of both."""

    numerator: float
    denominator: float

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.numerator + other.numerator, self.denominator + other.denominator)

    @property
    def value(self) -> float:
        """The quotient; NaN where the denominator is 0, because nothing was measured."""
        return self.numerator / self.denominator if self.denominator else float("nan")


class Terms(NamedTuple):
    """What each trial adds to the numerator and to the denominator."""

    numerator: Bools
    denominator: Bools


def total(terms: Terms) -> Ratio:
    """Sum the terms of all trials."""
    return Ratio(float(terms.numerator.sum()), float(terms.denominator.sum()))
