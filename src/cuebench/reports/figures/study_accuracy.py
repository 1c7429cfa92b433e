"""Accuracy of people in a study, by task and class, with intervals over people and over people and images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, panels, share_axis, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.study_rows import BOTH, OVER_PEOPLE, SHARES, StudyRow, colour_of, share_rows
from cuebench.reports.text import distinct, words
from cuebench.reports.vega import alt

MOST = 60
"""Classes of one task that are drawn."""


def study_accuracy(source: str | Path | Mapping[str, Any]) -> Picture:
    """Draw the share of every class, and of all, for each task of a study.

    Parameters
    ----------
    source : path or mapping
        The file of ``cuebench study analyse --out``, or what it holds.
    """
    rows = [row for row in share_rows(source) if not row.part.startswith("person=")]
    by_task: dict[str, list[StudyRow]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(row)
    shown = {task: _ordered(task_rows) for task, task_rows in by_task.items()}
    records = {
        task: [_record(row, name) for row, name in zip(task_rows, _names(task_rows))]
        for task, task_rows in shown.items()
    }
    whole = {task: task_rows[0] for task, task_rows in shown.items()}
    people = max(row.people for row in rows)
    title = " and ".join(dict.fromkeys(SHARES[row.measure] for row in whole.values()))
    return Picture(
        f"{title[0].upper()}{title[1:]} of people",
        lambda room: panels(
            [
                _chart(task, task_records, SHARES[whole[task].measure], _panel(room, len(records)))
                for task, task_records in records.items()
            ],
            columns_for(room, len(records)),
        ),
        [record for task_records in records.values() for record in task_records],
        f"{people:,} people. 95 % intervals; thick: over people, thin: over people and images",
        "; ".join(f"{words(task)}: {row.value:.2f}" for task, row in whole.items()) + ".",
    )


def _ordered(rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Return all answers together first, then the classes, the highest first."""
    return sorted(rows, key=lambda row: (row.part != "", -row.value, row.name))[: MOST + 1]


def _names(rows: Sequence[StudyRow]) -> list[str]:
    return distinct([words(row.name) for row in rows], 22)


def _record(row: StudyRow, name: str) -> dict[str, Any]:
    low, high = row.ends.get(BOTH, (None, None))
    inner_low, inner_high = row.ends.get(OVER_PEOPLE, (None, None))
    return {
        "task": row.task,
        "class": name,
        "value": row.value,
        "low": low,
        "high": high,
        "people_low": inner_low,
        "people_high": inner_high,
        "n": row.n,
    }


def _panel(room: float, number: int) -> float:
    """Return the width of a panel without its names."""
    return room / columns_for(room, number) - 62


def _chart(task: str, records: Sequence[dict[str, Any]], title: str, wide: float) -> Any:
    colour = colour_of(task)
    axis, scale = share_axis(title, grid=True), alt.Scale(domain=[0, 1])
    down = alt.Y("class:N", sort=[r["class"] for r in records], axis=alt.Axis(title=None, ticks=False, domain=False))
    base = alt.Chart(table(records)).encode(y=down)

    def rule(low: str, high: str, width: float) -> Any:
        return base.mark_rule(color=colour, strokeWidth=width).encode(
            x=alt.X(f"{low}:Q", axis=axis, scale=scale), x2=f"{high}:Q"
        )

    dots = base.mark_point(color=colour, shape="diamond", filled=True, size=28).encode(
        x=alt.X("value:Q", axis=axis, scale=scale),
        tooltip=tooltip("class", value=".3f", low=".3f", high=".3f", n=","),
    )
    layers = alt.layer(rule("low", "high", 0.8), rule("people_low", "people_high", 2.4), dots)
    return layers.properties(width=wide, height=max(30, 12 * len(records)), title=words(task).capitalize())


FIGURE = Figure("study_accuracy", "Accuracy of people in a study", study_accuracy, needs="file")
