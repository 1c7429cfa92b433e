"""A finding: what a paper prints, what follows from its own numbers, and whether the two agree.

Inputs are printed with three or four digits, so a recomputed figure is known up to a range: all values that unrounded
inputs could give. A printed figure agrees where some of these values, rounded, is what is printed. A finding is
*strict* where the plainest reading (the printed inputs themselves) already gives the printed digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from cuebench.arrays import Floats
from cuebench.published.tables import Entry
from cuebench.statistics.intervals import child_generator

Kind = Literal["derived", "repeated", "stated"]
DRAWS = 2000
_EPS = 1e-9


@dataclass(frozen=True)
class Finding:
    """One row of ``cuebench published check``."""

    paper: str
    table: str
    quantity: str
    printed: float | str
    recomputed: float | str
    agrees: bool
    note: str = ""
    kind: Kind = "derived"
    strict: bool = True

    def row(self) -> dict[str, Any]:
        """Return the documented fields."""
        return {k: getattr(self, k) for k in ("paper", "table", "quantity", "printed", "recomputed", "agrees", "note")}


def judge(
    entry: Entry,
    value: float,
    reach: tuple[float, float] | None = None,
    *,
    quantity: str = "",
    note: str = "",
    kind: Kind = "derived",
) -> Finding:
    """Compare a printed number with the recomputed one and with the range that rounding allows."""
    low, high = reach or (value, value)
    low, high = min(low, value), max(high, value)
    slack = entry.half * (1 + 1e-6) + _EPS
    strict = abs(value - entry.value) <= slack
    agrees = low - slack <= entry.value <= high + slack
    if agrees and not strict:
        note = "; ".join(filter(None, (f"within rounding: the printed inputs allow {low:.5g} … {high:.5g}", note)))
    name = quantity or f"{entry.model}: {entry.quantity}"
    return Finding(entry.paper, entry.table, name, entry.value, value, agrees, note, kind, strict)


def corners(function: Callable[..., float], inputs: Sequence[Entry]) -> tuple[float, float]:
    """Return the range of a function that is monotone in each input, from the corners of the box of roundings."""
    ends = [(e.value - e.half, e.value + e.half) for e in inputs]
    values = [function(*point) for point in product(*ends)]
    return min(values), max(values)


def jitter(inputs: Sequence[Entry], stream: str, draws: int = DRAWS) -> Floats:
    """Return draws × inputs: tables that, rounded, would print the same digits. The same stream gives the same ones."""
    value, half = np.array([e.value for e in inputs]), np.array([e.half for e in inputs])
    return value + child_generator(0, f"published|{stream}").uniform(-1, 1, (draws, len(value))) * half


def same(first: Entry, second: Entry, *, note: str = "") -> Finding:
    """Compare two places where the same figure is printed, to the digits of the coarser one."""
    coarse = max(first.half, second.half)
    agrees = abs(first.value - second.value) <= (coarse if first.half != second.half else 0.0) + _EPS
    where = f"as in table {second.table}" if second.paper == first.paper else f"as in {second.paper} {second.table}"
    name = f"{first.model}: {first.quantity}, {where}"
    return Finding(first.paper, first.table, name, first.value, second.value, agrees, note, "repeated", agrees)
