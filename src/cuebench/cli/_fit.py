"""Tables that fit the screen: the least important columns are left out, and are named.

What is needed is never cut: on a screen that is too narrow for it, the lines are printed whole, and the terminal wraps
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2
NARROWEST = 18
"""Columns of names are folded down to this width before anything that is needed would be cut."""


class Column(NamedTuple):
    """One column: its heading (lines), its cells, and whether it may be left out.

    Columns of numbers are aligned to the right; the others may be folded.
    """

    heading: str
    cells: Sequence[str]
    needed: bool = False
    number: bool = True

    @property
    def width(self) -> int:
        """What it takes without folding."""
        return max(len(line) for text in (self.heading, *self.cells) for line in (text.splitlines() or [""]))


def print_columns(console: Console, columns: Sequence[Column], *, title: str = "") -> list[str]:
    """Print a table; return the headings of columns that were left out.

    Parameters
    ----------
    console : Console
        Its width is what must fit.
    columns : sequence of Column
        In the order in which they are shown; where there is no room, the last that is not needed goes first. Where
        the needed ones have no room either, the terminal wraps them: no number is cut.
    title : str
        Printed above.
    """
    from rich.segment import Segments
    from rich.table import Table
    from rich.text import Text

    kept = list(columns)
    while _width(kept) > console.width and (spare := [c for c in kept if not c.needed]):
        kept.remove(spare[-1])
    screen = console.width if _narrowest(kept) <= console.width else _width(kept)
    room = screen - _width([c for c in kept if c.number]) - GAP * (len([c for c in kept if not c.number]))
    names = [c for c in kept if not c.number]
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for column in kept:
        if column.number:
            table.add_column(Text(column.heading), justify="right", no_wrap=True)
        else:
            share = max(NARROWEST, room // max(1, len(names)))
            width = column.width if _width(kept) <= screen else min(column.width, share)
            table.add_column(Text(column.heading), overflow="fold", min_width=min(width, column.width))
    for cells in zip(*(c.cells for c in kept)):
        table.add_row(*map(Text, cells))
    if title:
        console.print(Text(title, "bold"), soft_wrap=True)
    if screen > console.width:
        whole = console.options.update(width=screen)
        console.print(Segments(list(console.render(table, whole))), soft_wrap=True, end="")
    else:
        console.print(table)
    return [c.heading.replace("\n", " ") for c in columns if c not in kept]


def fits(console: Console, columns: Sequence[Column]) -> bool:
    """Tell whether all columns have room side by side."""
    return _width(columns) <= console.width


def _narrowest(columns: Sequence[Column]) -> int:
    """Return the width below which a number would be cut: names can be folded, numbers cannot."""
    widths = (c.width if c.number else min(c.width, NARROWEST) for c in columns)
    return sum(widths) + GAP * max(0, len(columns) - 1)


def _width(columns: Sequence[Column]) -> int:
    return sum(c.width for c in columns) + GAP * max(0, len(columns) - 1)
