"""Tables of a report: texts to read, values to sort by and to copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cuebench.protocols.captions import caption
from cuebench.protocols.headline import Column
from cuebench.reports.html.material import Material, metric_of
from cuebench.reports.html.text import has_interval, number
from cuebench.types import Score

MOST_ROWS = 2000
"""Rows of all numbers of a protocol that a report holds; more are in the files of the run."""


@dataclass(frozen=True)
class Cell:
    """A text with the value behind it.

    ``value`` is what the column is sorted by and what a CSV gets; ``low`` and ``high`` become columns of their own
    there. ``bar`` draws the value and its interval on a scale from 0 to 1. ``style`` is a CSS class. ``score`` is the
    row that the cell shows.
    """

    text: str
    value: float | str | None = None
    low: float | None = None
    high: float | None = None
    bar: bool = False
    style: str = ""
    score: Score | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is aligned to the right."""
        return isinstance(self.value, (int, float))


@dataclass(frozen=True)
class Table:
    """A table: an id for the page, a caption, columns and rows; the first cell of a row is its heading."""

    id: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    helps: dict[str, str] = field(default_factory=dict)
    """Column → what its number is."""
    stacked: bool = False
    """Bars stand below their numbers, so that many columns fit."""
    about: str = ""
    """What stands below it and is copied with it, where its cells are no scores."""

    @cached_property
    def note(self) -> str:
        """What stands below the table and is copied with it: version, n, intervals and partial sets of its scores."""
        return self.about or caption(cell.score for row in self.rows for cell in row if cell.score)

    def numeric(self, position: int) -> bool:
        """Tell whether a column holds numbers."""
        return position in self._numeric

    @cached_property
    def _numeric(self) -> frozenset[int]:
        return frozenset(i for row in self.rows for i, cell in enumerate(row) if cell.is_number)


def of_score(row: Score | None, *, bar: bool = False) -> Cell:
    """Return the cell of a number; a dash where there is none."""
    if row is None or not math.isfinite(row.value):
        return Cell("–", None)
    low, high = (row.ci_low, row.ci_high) if has_interval(row) else (None, None)
    return Cell(number(row), row.value, low, high, bar=bar and 0 <= row.value <= 1, score=row)


def words(text: str, style: str = "") -> Cell:
    """Return the cell of a text."""
    return Cell(text, text, style=style)


def count(number: int) -> Cell:
    """Return the cell of a count."""
    return Cell(f"{number:,}", number)


def headline_table(material: Material, column: Column) -> Table:
    """Return the headline of a protocol with the other metrics of the same condition: a row for each observer."""
    rows = [s for s in material.numbers if s.protocol == column.protocol]
    here: dict[str, dict[str, Score]] = {}
    for row in rows:
        if row.condition == column.condition:
            here.setdefault(row.observer, {})[row.metric] = row
    metrics = [column.metric, *(m for m in dict.fromkeys(m for r in here.values() for m in r) if m != column.metric)]
    columns = ["observer", "kind", title(column.metric), "n", "excluded", *(title(m) for m in metrics[1:])]
    lines = []
    for observer in (o for o in material.observers if o in here):
        by_metric = here[observer]
        main = by_metric.get(column.metric) or next(iter(by_metric.values()))
        kind = material.kinds.get(observer, "")
        cells = [words(observer), words(kind), of_score(by_metric.get(column.metric), bar=True)]
        cells += [count(main.n), count(main.n_excluded)]
        lines.append([*cells, *(of_score(by_metric.get(m)) for m in metrics[1:])])
    return Table(
        f"headline-{column.protocol}",
        f"{title(column.metric)}{f' in {column.condition}' if column.condition else ''}, 95 % intervals",
        columns,
        lines,
        {title(m): metric.formula for m in metrics if (metric := metric_of(m))},
    )


def class_table(material: Material, column: Column) -> Table | None:
    """Return the headline metric of every class: classes down, observers across; None where there is none."""
    prefix = f"{column.condition}/class="
    by_class: dict[str, dict[str, Score]] = {}
    for row in material.numbers:
        if row.protocol == column.protocol and row.metric == column.metric and row.condition.startswith(prefix):
            by_class.setdefault(row.condition.removeprefix(prefix), {})[row.observer] = row
    if not by_class:
        return None
    observers = [o for o in material.observers if any(o in rows for rows in by_class.values())]
    rows = [[words(name), *(of_score(by_observer.get(o)) for o in observers)] for name, by_observer in by_class.items()]
    heading = f"{title(column.metric)} by class"
    return Table(f"classes-{column.protocol}", heading, ["class", *observers], rows)


def all_numbers(material: Material, protocol: str) -> dict[str, Any]:
    """Return every number of a protocol with its widest interval, in a compact form that the page unpacks.

    Observers, conditions, metrics, kinds and notes are numbered; ``rows`` refer to them. ``total`` counts all numbers,
    of which at most ``MOST_ROWS`` are given: conditions with few parts first.
    """
    rows = [s for s in material.numbers if s.protocol == protocol]
    shown = sorted(rows, key=lambda s: s.condition.count("/"))[:MOST_ROWS]
    fields = ("observer", "condition", "metric", "ci_kind", "ci_method", "note")
    texts = {f: {text: i for i, text in enumerate(dict.fromkeys(getattr(s, f) for s in shown))} for f in fields}
    records = []
    for s in shown:
        numbered = [texts[f][getattr(s, f)] for f in fields]
        records.append([*numbered, *map(_rounded, (s.value, s.ci_low, s.ci_high)), s.n, s.n_excluded])
    return {
        **{f: list(numbers) for f, numbers in texts.items()},
        "rows": records,
        "total": len(rows),
        "about": caption(shown),
    }


def title(metric: str) -> str:
    """Return the title of a metric."""
    part = metric_of(metric)
    return part.title if part else metric.replace("_", " ")


def _rounded(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
