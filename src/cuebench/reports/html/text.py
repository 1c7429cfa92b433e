"""How numbers and names are written in a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuebench.types import Score
from cuebench.words import WORDS

MEANINGS = {word.pattern: word.meaning for word in WORDS if word.kind == "interval"}
"""Kind of interval → what it covers."""


def has_interval(row: Score) -> bool:
    """Tell whether a number has an interval."""
    return math.isfinite(row.ci_low) and math.isfinite(row.ci_high)


def number(row: Score) -> str:
    """Return a value and its interval as the terminal prints them: ``0.281 [0.15, 0.43]``."""
    if not math.isfinite(row.value):
        return "–"
    return f"{row.value:.3f}" + (f" {interval(row)}" if has_interval(row) else "")


def interval(row: Score) -> str:
    """Return the interval of a number: ``[0.15, 0.43]``."""
    return f"[{row.ci_low:.2f}, {row.ci_high:.2f}]"


def covers(kind: str) -> str:
    """Say what an interval covers, without its level: ``other objects and other textures``."""
    return MEANINGS.get(kind, "").partition(": ")[2]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names as a sentence has them: ``a, b and c``."""
    shown = list(names[:most])
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def counted(number: int, singular: str, many: str = "") -> str:
    """Return a number with its noun: ``1 image``, ``2 images``."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"
