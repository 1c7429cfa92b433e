"""Tables for the terminal: the headline of each protocol first, then what else was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cuebench.errors import UserError
from cuebench.protocols.base import PARTIAL
from cuebench.protocols.headline import chosen_condition, headline_of, measured, one_row_each
from cuebench.reports.comparison import LARGER
from cuebench.types import Headline, Score

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST = 6
"""Tables of a protocol, and lines of reasons, that are printed."""
NAME, INTERVAL, COUNT = 26, 20, 8
"""Least widths of the columns: observer, value with interval, n."""


def print_scores(scores: Sequence[Score], console: Console | None = None) -> None:
    """Print the scores of a run: the headline of each protocol, one line for each observer, then further conditions.

    Every value is shown with its widest interval where the screen allows. Scores of single classes are in the files
    only.

    Parameters
    ----------
    scores : sequence of Score
        Rows of a run.
    console : Console, optional
        Where to print; default: standard output.
    """
    from rich.text import Text

    from cuebench.cli._console import plain_console

    console = console or plain_console()
    rows = [s for s in measured(scores) if "class=" not in s.condition]
    by_protocol: dict[str, list[Score]] = {}
    for row in one_row_each(rows):
        by_protocol.setdefault(row.protocol, []).append(row)
    headlines = {p: headline_condition(p, own) for p, own in by_protocol.items()}
    for protocol, condition in headlines.items():
        if condition is not None:
            _print_table(console, [s for s in by_protocol[protocol] if s.condition == condition])
    for protocol, own in by_protocol.items():
        others = [c for c in dict.fromkeys(s.condition for s in own) if c != headlines[protocol]]
        shown = sorted(others, key=lambda c: c.count("/"))[: MOST - (headlines[protocol] is not None)]
        for condition in (c for c in others if c in shown):
            _print_table(console, [s for s in own if s.condition == condition])
        if len(others) > len(shown):
            text = f"{protocol}: {len(others) - len(shown)} more conditions are in scores.json\n"
            console.print(text, style="dim")
    for line in (*_about_headlines(headlines), *_about_intervals(rows), *_undefined(rows), *_partial_sets(rows)):
        console.print(line, style="dim")
    for failed in (s for s in scores if s.metric == "failed"):
        console.print(Text.assemble(("failed", "red"), f": {failed.observer}: {failed.note}"))


def declared_headline(protocol: str) -> Headline | None:
    """Return the headline of a protocol; None for a protocol that is not installed here."""
    try:
        return headline_of(protocol)
    except UserError:
        return None


def headline_condition(protocol: str, rows: Sequence[Score]) -> str | None:
    """Return the condition in which the headline is read, also where no observer has a value in it."""
    headline = declared_headline(protocol)
    if headline is None:
        return None
    candidates = [s for s in rows if s.metric == headline.metric]
    with_value = [s for s in candidates if not math.isnan(s.value)] or candidates
    return chosen_condition(headline, list(dict.fromkeys(s.condition for s in with_value)))


def value_with_interval(row: Score) -> str:
    """Return a value and its interval as they are printed everywhere: ``0.281 [0.15, 0.43]``."""
    if not math.isfinite(row.value):
        return "–"
    known = math.isfinite(row.ci_low) and math.isfinite(row.ci_high)
    return f"{row.value:.3f}" + (f" [{row.ci_low:.2f}, {row.ci_high:.2f}]" if known else "")


def larger_means(protocol: str) -> str:
    """Say what a larger value of a protocol's headline means, and the value of people where it is known."""
    headline = declared_headline(protocol)
    if headline is None:
        return ""
    people = f"; people: {headline.human:.3f} ({headline.human_source})" if headline.human is not None else ""
    return f"larger means {LARGER[headline.direction]}{people}"


def _print_table(console: Console, rows: Sequence[Score]) -> None:
    from rich.text import Text

    protocol, condition = f"{rows[0].protocol} v{rows[0].protocol_version}", rows[0].condition
    console.print(Text(f"{protocol} · {condition}" if condition else protocol, "bold"), soft_wrap=True)
    console.print(_table(rows, console.width))
    console.print()


def _table(rows: Sequence[Score], width: int) -> Table:
    """Build the table of one protocol and condition: the main metric with its interval, others while they fit."""
    from rich.table import Table

    metrics = _metrics_that_fit(rows, width)
    table = Table(box=None, pad_edge=False)
    table.add_column("observer", overflow="fold", min_width=NAME)
    for metric in metrics:
        table.add_column(metric.replace("_", "\n", 1), justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    lines: dict[str, dict[str, Score]] = {}
    for row in rows:
        lines.setdefault(row.observer, {})[row.metric] = row
    for observer, by_metric in lines.items():
        if not any(math.isfinite(row.value) for row in by_metric.values()) and len(lines) >= MOST:
            continue
        cells = ["–" if m not in by_metric else value_with_interval(by_metric[m]) for m in metrics]
        cells = [cells[0], *(cell.partition(" ")[0] for cell in cells[1:])]
        n = by_metric[metrics[0]].n if metrics[0] in by_metric else max(row.n for row in by_metric.values())
        table.add_row(observer, *cells, f"{n:,}")
    return table


def _metrics_that_fit(rows: Sequence[Score], width: int) -> list[str]:
    """Return the metrics to show, the headline first."""
    metrics = list(dict.fromkeys(s.metric for s in rows))
    headline = declared_headline(rows[0].protocol)
    if headline is not None and headline.metric in metrics:
        metrics = [headline.metric, *(m for m in metrics if m != headline.metric)]
    left = width - NAME - INTERVAL - COUNT
    shown = metrics[:1]
    for metric in metrics[1:]:
        left -= 2 + max(len(word) for word in metric.split("_", 1))
        if left >= 0:
            shown.append(metric)
    return shown


def _about_headlines(conditions: dict[str, str | None]) -> list[str]:
    """Return a line for each protocol: its headline, and what a larger value means."""
    lines = []
    for protocol, condition in conditions.items():
        headline = declared_headline(protocol)
        if headline is not None and condition is not None:
            lines.append(f"{protocol}: the headline is {headline.metric} in {condition}; {larger_means(protocol)}")
    return lines


def _about_intervals(rows: Sequence[Score]) -> list[str]:
    kinds = [kind for kind in dict.fromkeys(s.ci_kind for s in rows) if kind]
    return [f"[95 % interval], the widest of: {', '.join(kinds)}; all of them are in scores.json"] if kinds else []


def _undefined(rows: Sequence[Score]) -> list[str]:
    """Return a line for each reason why numbers of the main conditions have no value."""
    reasons: dict[tuple[str, str], list[Score]] = {}
    for s in rows:
        if not math.isfinite(s.value) and "/" not in s.condition:
            reasons.setdefault((s.condition, s.note), []).append(s)
    lines = []
    for (condition, note), undefined in list(reasons.items())[:MOST]:
        metrics, observers = (list(dict.fromkeys(getattr(s, f) for s in undefined)) for f in ("metric", "observer"))
        lines.append(f"– {condition}: no {_some(metrics)} of {_some(observers)}: {note or 'undefined'}")
    return lines


def _some(names: Sequence[str], most: int = 3) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _partial_sets(rows: Sequence[Score]) -> list[str]:
    """Return what is missing from the stimuli, once for each reason."""
    parts = ((s.protocol, part.strip()) for s in rows for part in s.note.split(";"))
    return [f"{protocol}: {part}" for protocol, part in dict.fromkeys(parts) if part.startswith(PARTIAL)]
