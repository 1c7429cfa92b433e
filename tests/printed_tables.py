"""Tables that pages show, compared with what commands print now: cell by cell, to the character."""

from __future__ import annotations

import re
from collections.abc import Collection


def cells(line: str) -> list[str]:
    """Return the cells of a printed row: they are separated by two spaces or more."""
    return re.split(r"\s{2,}", line.strip())


def differences(shown: str, printed: str, leave_out: Collection[str] = ()) -> list[str]:
    """Return every row of a table on a page that the command does not print so.

    Parameters
    ----------
    shown : str
        What the page shows.
    printed : str
        What the command prints: the same rows or more, perhaps with other widths.
    leave_out : collection of str
        How rows begin that are not compared: of observers that were not run again.

    Raises
    ------
    AssertionError
        Where the page shows no row that could be compared.
    """
    now = [cells(line) for line in printed.splitlines()]
    rows = [cells(line) for line in shown.splitlines() if re.search(r"\S  +-?\d", line)]
    rows = [row for row in rows if not row[0].startswith(tuple(leave_out))]
    assert rows, "the page shows no table"
    return [f"{'  '.join(row)}\n  now: {_nearest(row, now)}" for row in rows if row not in now]


def _nearest(row: list[str], now: list[list[str]]) -> str:
    return " | ".join("  ".join(other) for other in now if other[0] == row[0]) or "no such row"
