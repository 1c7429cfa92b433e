"""What simulated studies say of each kind of interval: how often it held the truth.

The table ``interval_coverage.csv`` beside this file is made by ``python -m benchmarks.coverage --write``: each interval
against the truth that it claims to hold (``calibration/coverage.csv`` measures protocols, for planted observers).
A setting is a number of images and sources, a true rate and what the sources differ by; settings go where intervals
break.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

COVERAGE = Path(__file__).parent / "interval_coverage.csv"
LEAST, MOST = 0.93, 0.97
"""How often a 95 % interval should hold the truth."""


@dataclass(frozen=True)
class Coverage:
    """How often one kind of interval of one metric held the truth in one setting.

    ``bias`` is the mean of the value minus the truth, ``mean_width`` that of the interval.
    """

    protocol: str
    metric: str
    kind: str
    setting: str
    studies: int
    coverage: float
    mean_width: float
    bias: float


@lru_cache(maxsize=1)
def coverages() -> tuple[Coverage, ...]:
    """Read the table."""
    with COVERAGE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {"studies": int, "coverage": float, "mean_width": float, "bias": float}
    return tuple(Coverage(**{name: numbers.get(name, str)(text) for name, text in row.items()}) for row in rows)


def measured(kind: str) -> list[str]:
    """Say how often a kind of interval held the truth, for each metric that was simulated; empty where none was.

    Examples
    --------
    >>> measured("two_way")[0].split(":")[0]
    'shape_bias (cue_conflict)'
    """
    groups: dict[str, list[Coverage]] = {}
    for row in coverages():
        name, _, more = row.kind.partition(", ")
        if name == kind:
            groups.setdefault(f"{row.metric} ({row.protocol})" + (f", {more}" if more else ""), []).append(row)
    lines = []
    for name, rows in groups.items():
        shares = [row.coverage for row in rows]
        span = f"{100 * min(shares):.0f}–{100 * max(shares):.0f} %" if len(rows) > 1 else f"{100 * shares[0]:.0f} %"
        inside = sum(LEAST <= share <= MOST for share in shares)
        settings = f"{len(rows)} settings, {inside} of them within 93–97 %" if len(rows) > 1 else rows[0].setting
        lines.append(f"{name}: held the truth in {span} of studies ({settings})")
    return lines
