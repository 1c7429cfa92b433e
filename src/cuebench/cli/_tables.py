"""Tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cuebench.protocols.base import PARTIAL
from cuebench.types import Score


def print_scores(scores: Sequence[Score]) -> None:
    """Print the headline of a run: a table for each condition, a line for each observer.

    Rows of single classes are in the files; a table of hundreds of lines tells nobody anything.
    """
    from rich.text import Text

    from cuebench.cli._console import plain_console

    console = plain_console()
    measured = [s for s in scores if "class=" not in s.condition and s.metric not in _REASONS]
    for protocol in dict.fromkeys(s.protocol for s in measured):
        own = [s for s in measured if s.protocol == protocol]
        shown, more = _chosen_conditions(own)
        for condition in shown:
            console.print(_headline([s for s in own if s.condition == condition], console.width))
            console.print()
        if more:
            console.print(f"{protocol}: {more} more conditions are in scores.json\n", style="dim")
    for line in (_caption(measured), *_undefined(measured), *_shared_notes(measured)):
        console.print(line, style="dim")
    for failed in (s for s in scores if s.metric == "failed"):
        console.print(Text.assemble(("failed", "red"), f": {failed.observer}: {failed.note}"))


_REASONS = frozenset({"failed", "not_applicable"})
"""Rows that hold a reason instead of a number."""
_MOST = 6
"""Conditions of a protocol that are printed."""


def _chosen_conditions(scores: Sequence[Score]) -> tuple[list[str], int]:
    """Return the conditions to print, the coarsest first by their depth, and how many are left."""
    conditions = list(dict.fromkeys(s.condition for s in scores))
    kept = sorted(conditions, key=lambda c: c.count("/"))[:_MOST]
    return [c for c in conditions if c in kept], len(conditions) - len(kept)


def _headline(scores: Sequence[Score], width: int) -> Any:
    """Build the table of one condition.

    The first metric is what the protocol is about: it has its interval; the others follow as far as the screen goes.
    """
    from rich.table import Table

    metrics = _that_fit(scores, width)
    title = f"{scores[0].protocol} v{scores[0].protocol_version} · {scores[0].condition}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("observer", overflow="fold", min_width=_NAME)
    for metric in metrics:
        table.add_column(metric.replace("_", "\n", 1), justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    lines = _lines(scores)
    for observer, cells in lines.items():
        shown = [_cell(cells.get(metric, []), interval=metric == metrics[0]) for metric in metrics]
        if any(math.isfinite(r.value) for rows in cells.values() for r in rows) or len(lines) < _MOST:
            table.add_row(observer, *shown, f"{_count(cells):,}")
    return table


_NAME, _INTERVAL, _COUNT = 26, 20, 8
"""Least widths of the columns: observer, value with interval, n."""


def _that_fit(scores: Sequence[Score], width: int) -> list[str]:
    metrics = list(dict.fromkeys(s.metric for s in scores))
    left = width - _NAME - _INTERVAL - _COUNT
    kept = metrics[:1]
    for metric in metrics[1:]:
        left -= 2 + max(len(word) for word in metric.split("_", 1))
        if left >= 0:
            kept.append(metric)
    return kept


def _lines(scores: Sequence[Score]) -> dict[str, dict[str, list[Score]]]:
    lines: dict[str, dict[str, list[Score]]] = {}
    for s in scores:
        lines.setdefault(s.observer, {}).setdefault(s.metric, []).append(s)
    return lines


def _count(cells: dict[str, list[Score]]) -> int:
    return max(rows[0].n for rows in cells.values())


def _cell(rows: Sequence[Score], *, interval: bool) -> str:
    if not rows or not math.isfinite(rows[0].value):
        return "–"
    widest = widest_interval(rows) if interval else None
    if widest is None:
        return f"{rows[0].value:.3f}"
    return f"{rows[0].value:.3f} [{widest.ci_low:.2f}, {widest.ci_high:.2f}]"


def widest_interval(rows: Sequence[Score]) -> Score | None:
    """Return the row whose interval makes the weakest claim: what holds for new shapes and textures too."""
    finite = [r for r in rows if math.isfinite(r.ci_low) and math.isfinite(r.ci_high)]
    return max(finite, key=lambda r: r.ci_high - r.ci_low, default=None)


def _caption(scores: Sequence[Score]) -> str:
    kinds = [k for k in dict.fromkeys(s.ci_kind for s in scores) if k]
    return f"[95 % interval], the widest of: {', '.join(kinds)}; all of them are in scores.json" if kinds else ""


def _undefined(scores: Sequence[Score]) -> list[str]:
    """Return which numbers of the main conditions have no value, and why: a line for each reason."""
    found: dict[tuple[str, str], list[Score]] = {}
    for s in scores:
        if not math.isfinite(s.value) and "/" not in s.condition:
            found.setdefault((s.condition, s.note), []).append(s)
    lines = []
    for (condition, note), rows in list(found.items())[:_MOST]:
        metrics, who = (list(dict.fromkeys(getattr(s, f) for s in rows)) for f in ("metric", "observer"))
        lines.append(f"– {condition}: no {_some(metrics)} of {_some(who)}: {note or 'undefined'}")
    return lines


def _some(names: Sequence[str], most: int = 3) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _shared_notes(scores: Sequence[Score]) -> list[str]:
    """Return what makes the run partial, once for each reason."""
    parts = ((s.protocol, part.strip()) for s in scores for part in s.note.split(";"))
    return [f"{protocol}: {part}" for protocol, part in dict.fromkeys(parts) if part.startswith(PARTIAL)]
