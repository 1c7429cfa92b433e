"""Tables for the terminal: the headline of each protocol first, then what else was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cuebench.cli._fit import Column, fits, print_columns
from cuebench.csv_text import is_number
from cuebench.errors import UserError
from cuebench.protocols.base import PARTIAL
from cuebench.protocols.cautions import cautions
from cuebench.protocols.headline import chosen_condition, headline_of, measured, one_row_each
from cuebench.reports.comparison import LARGER
from cuebench.types import Headline, Score

if TYPE_CHECKING:
    from rich.console import Console

MOST = 6
"""Tables of a protocol, and lines of reasons, that are printed."""


def print_scores(scores: Sequence[Score], console: Console | None = None) -> None:
    """Print the scores of a run: the headline of each protocol, one line for each observer, then further conditions.

    Every headline is shown with its widest interval and its own n, with what it must not be read without, and with what
    changes its reading below. Conditions that differ in one number only (``patch=4``, ``patch=8`` …) are one table.
    Scores of single classes are in the files only.

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
    headlines = {p: headline_condition(p, protocol_rows) for p, protocol_rows in by_protocol.items()}
    for protocol, condition in headlines.items():
        if condition is not None:
            _print_headline(console, [s for s in by_protocol[protocol] if s.condition == condition])
    for protocol, protocol_rows in by_protocol.items():
        _print_others(console, protocol, protocol_rows, headlines[protocol])
    for line in (*_about_intervals(rows), *_undefined(rows)):
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


def larger_means(protocol: str, condition: str) -> str:
    """Say what a larger value of a protocol's headline means, and the value of people where it is known.

    People answered in one condition: of other classes (``5-way``) their value says nothing.
    """
    headline = declared_headline(protocol)
    if headline is None:
        return ""
    known = headline.human is not None and condition == (headline.human_condition or headline.conditions[0])
    people = f"; people: {headline.human:.3f} ({headline.human_source})" if known else ""
    return f"larger means {LARGER[headline.direction]}{people}"


def print_cautions(console: Console, lines: Sequence[str]) -> None:
    """Print what changes the reading of the table above."""
    from rich.text import Text

    for line in lines:
        console.print(Text.assemble(("! ", "bold yellow"), line))


# --------------------------------------------------------------------------------------------- the headline


def _print_headline(console: Console, rows: Sequence[Score]) -> None:
    """Print the table of a headline, what it is, and what changes its reading."""
    protocol, condition = rows[0].protocol, rows[0].condition
    headline = declared_headline(protocol)
    assert headline is not None
    left_out = print_columns(console, _columns(rows), title=_title(rows))
    about = f"{protocol}: the headline is {headline.metric} in {condition}; {larger_means(protocol, condition)}"
    console.print(about, style="dim")
    if left_out:
        console.print(f"not shown for lack of width: {', '.join(left_out)}", style="dim")
    print_cautions(console, [f"{protocol}: {line}" for line in cautions(rows, headline.metric)])
    console.print()


def _title(rows: Sequence[Score]) -> str:
    protocol, condition = f"{rows[0].protocol} v{rows[0].protocol_version}", rows[0].condition
    return f"{protocol} · {condition}" if condition else protocol


def _columns(rows: Sequence[Score]) -> list[Column]:
    """Return the columns of one condition: observer, main number with interval and its n, the others."""
    headline = declared_headline(rows[0].protocol)
    metrics = list(dict.fromkeys(s.metric for s in rows))
    first = [headline.metric, *headline.beside] if headline is not None else []
    metrics.sort(key=lambda m: first.index(m) if m in first else len(first))
    main = metrics[0]
    lines: dict[str, dict[str, Score]] = {}
    for row in rows:
        lines.setdefault(row.observer, {})[row.metric] = row
    shown = {
        observer: cells
        for observer, cells in lines.items()
        if any(math.isfinite(row.value) for row in cells.values()) or len(lines) < MOST
    }
    numbers = [cells[main].n if main in cells else max(row.n for row in cells.values()) for cells in shown.values()]
    values = {m: ["–" if m not in c else value_with_interval(c[m]) for c in shown.values()] for m in metrics}
    return [
        Column("observer", list(shown), needed=True, number=False),
        Column(_heading(main), values[main], needed=True),
        Column("n", [f"{n:,}" for n in numbers], needed=True),
        *(
            Column(_heading(m), [cell.partition(" ")[0] for cell in values[m]], needed=m in first)
            for m in metrics
            if m != main
        ),
    ]


def _heading(metric: str) -> str:
    return metric.replace("_", "\n", 1)


# --------------------------------------------------------------------------------------------- other conditions


def _print_others(console: Console, protocol: str, rows: Sequence[Score], headline: str | None) -> None:
    """Print the other conditions of a protocol; those that differ in one number only together."""
    conditions = list(dict.fromkeys(s.condition for s in rows))
    series = _series(conditions)
    together = {c for members in series.values() for c in members.values()}
    # A condition without a single number is no table: a line below says why it has none.
    with_value = {s.condition for s in rows if math.isfinite(s.value)}
    alone = [c for c in conditions if c != headline and c not in together and c in with_value]
    # A series with the headline among its members is the first thing to see after the headline itself.
    order = sorted(series, key=lambda name: (headline not in series[name].values(), name.count("/")))
    declared = declared_headline(protocol)
    axes = {c for axis in (declared.plane or ()) for c in axis.conditions} if declared is not None else set()
    first = [c for c in alone if c in axes]
    tables = [*first, *order, *sorted((c for c in alone if c not in first), key=lambda c: c.count("/"))]
    shown = tables[: MOST - (headline is not None)]
    for name in shown:
        if name in series:
            _print_series(console, name, series[name], rows)
        else:
            condition_rows = [s for s in rows if s.condition == name]
            print_columns(console, _columns(condition_rows), title=_title(condition_rows))
            declared = declared_headline(protocol)
            warned = cautions(condition_rows, declared.metric) if declared is not None else []
            print_cautions(console, [line for line in warned if not line.startswith(PARTIAL)])  # said above
            console.print()
    if len(tables) > len(shown):
        rest = sum(len(series.get(name, "1")) for name in tables[len(shown) :])
        console.print(f"{protocol}: {rest} more conditions are in scores.json\n", style="dim")


def _series(conditions: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return ``faithful/patch`` → number → condition, for conditions that differ in one number only."""
    by_start: dict[str, dict[str, str]] = {}
    for condition in conditions:
        start, _, value = condition.rpartition("=")
        if start and is_number(value):
            by_start.setdefault(start, {})[value] = condition
    return {name: members for name, members in by_start.items() if len(members) > 1}


def _print_series(console: Console, name: str, members: Mapping[str, str], rows: Sequence[Score]) -> None:
    """Print one metric of several conditions that differ in a number: a column for each."""
    series_rows = [s for s in rows if s.condition in members.values()]
    headline = declared_headline(series_rows[0].protocol)
    metrics = list(dict.fromkeys(s.metric for s in series_rows))
    metric = headline.metric if headline is not None and headline.metric in metrics else metrics[0]
    by_place = {(s.observer, s.condition): s for s in series_rows if s.metric == metric}
    observers = list(dict.fromkeys(observer for observer, _ in by_place))
    for shown in (value_with_interval, lambda row: value_with_interval(row).partition(" ")[0]):
        columns = [Column("observer", observers, needed=True, number=False)]
        for value, condition in sorted(members.items(), key=lambda item: float(item[0])):
            cells = [by_place.get((observer, condition)) for observer in observers]
            columns.append(Column(value, ["–" if cell is None else shown(cell) for cell in cells]))
        if fits(console, columns):  # with intervals where there is room for all of them
            break
    title = f"{series_rows[0].protocol} v{series_rows[0].protocol_version} · {name}: {metric}"
    left_out = print_columns(console, columns, title=title)
    if left_out:
        console.print(f"not shown for lack of width: {', '.join(left_out)}", style="dim")
    console.print()


# --------------------------------------------------------------------------------------------- below the tables


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
