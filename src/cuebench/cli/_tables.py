"""Tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cuebench.types import Score


def print_scores(scores: Sequence[Score]) -> None:
    """Print the headline of a run: one line for each observer, metric and condition, with its widest interval.

    Rows of single classes are in the files; a table of hundreds of lines tells nobody anything.
    """
    from rich.console import Console

    console = Console(highlight=False)
    measured = [s for s in scores if s.metric != "failed" and "class=" not in s.condition]
    for protocol in dict.fromkeys(s.protocol for s in measured):
        console.print(_headline(protocol, [s for s in measured if s.protocol == protocol]))
        for note in _shared_notes([s for s in measured if s.protocol == protocol]):
            console.print(f"  {note}", style="yellow")
    for failed in (s for s in scores if s.metric == "failed"):
        console.print(f"[red]failed[/]: {failed.observer}: ", end="")
        console.print(failed.note, markup=False)


def _headline(protocol: str, scores: Sequence[Score]) -> Any:
    from rich.table import Table

    metrics = list(dict.fromkeys(s.metric for s in scores))
    table = Table(title=f"{protocol} v{scores[0].protocol_version}", title_justify="left", caption=_caption(scores))
    table.add_column("observer")
    table.add_column("condition")
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    table.add_column("n", justify="right")
    for (observer, condition), cells in _lines(scores).items():
        if any(math.isfinite(rows[0].value) for rows in cells.values()):
            shown = [_cell(cells.get(metric, [])) for metric in metrics]
            table.add_row(observer, condition, *shown, f"{_count(cells):,}")
    return table


def _lines(scores: Sequence[Score]) -> dict[tuple[str, str], dict[str, list[Score]]]:
    lines: dict[tuple[str, str], dict[str, list[Score]]] = {}
    for s in scores:
        lines.setdefault((s.observer, s.condition), {}).setdefault(s.metric, []).append(s)
    return lines


def _count(cells: dict[str, list[Score]]) -> int:
    return max(rows[0].n for rows in cells.values())


def _cell(rows: Sequence[Score]) -> str:
    if not rows or not math.isfinite(rows[0].value):
        return "–"
    widest = widest_interval(rows)
    if widest is None:
        return f"{rows[0].value:.3f}"
    return f"{rows[0].value:.3f} [{widest.ci_low:.2f}, {widest.ci_high:.2f}]"


def widest_interval(rows: Sequence[Score]) -> Score | None:
    """Return the row whose interval makes the weakest claim: what holds for new shapes and textures too."""
    finite = [r for r in rows if math.isfinite(r.ci_low) and math.isfinite(r.ci_high)]
    return max(finite, key=lambda r: r.ci_high - r.ci_low, default=None)


def _caption(scores: Sequence[Score]) -> str:
    kinds = [k for k in dict.fromkeys(s.ci_kind for s in scores) if k]
    return f"95 % intervals, the widest of: {', '.join(kinds)}" if kinds else ""


def _shared_notes(scores: Sequence[Score]) -> list[str]:
    """Return what makes the run partial, once for each reason."""
    found = dict.fromkeys(
        part.strip() for s in scores for part in s.note.split(";") if part.strip().startswith("partial")
    )
    return list(found)
