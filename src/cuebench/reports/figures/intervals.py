"""Intervals: the headline of a protocol for every observer, best first, and who cannot be told from whom.

Observers that share a bar at the right are not separable: paired on the same stimuli, corrected for all pairs; where a
folder holds scores without answers, their intervals overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.protocols.headline import Column, headline_column, headline_of
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import line_at, table, tooltip
from cuebench.reports.observers import Series
from cuebench.reports.paired import answers_of, compare_pairs
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, all_scores, folders, how_to_get, observers_of, shown_observers
from cuebench.reports.scatter import span
from cuebench.reports.text import words
from cuebench.reports.theme import INK, SOFT
from cuebench.reports.theme import PEOPLE as PEOPLE_COLOUR
from cuebench.reports.vega import alt
from cuebench.runs.results import read_scores
from cuebench.statistics.ranking import letters, separable_by_intervals, tie_groups

_ROW = 12.0


class Ties(NamedTuple):
    """Observer → letters, and how they were found."""

    letters: dict[str, str]
    how: str


def intervals(run: Run, *, protocol: str = "cue_conflict", people: str = "pooled") -> Picture:
    """Draw the headline with its intervals and tie groups.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with the protocol.
    protocol : str
        Whose headline.
    people : str
        ``pooled``: the pooled answers of people; ``each``: every person too.
    """
    numbers = all_scores(run)
    column = headline_column(numbers, protocol)
    if column is None:
        raise UserError(f"no observer has the headline of {protocol}", how_to_get(run, protocol))
    observers = observers_of(run)
    shown = shown_observers(column.rows, observers, people)
    shown.sort(key=lambda o: -column.rows[o].value)
    ties = _ties(run, column._replace(rows={o: column.rows[o] for o in shown}))
    records = [
        {**record, "ties": ties.letters.get(record["observer"], "")}
        for record in observers.records(column.rows[o] for o in shown)
    ]
    headline = headline_of(protocol)
    human = headline.human if not any(r["kind"] == "people" for r in records) else None
    joined = f"; bars at the right join observers that {ties.how}" if len(shown) > 1 else ""
    dotted = f"; dotted: people, {headline.human_source}" if human is not None else ""
    return Picture(
        f"{words(column.metric)} of all observers".capitalize(),
        lambda room: _chart(records, observers.series(shown), words(column.metric), human, room),
        records,
        f"Protocol: {words(protocol)}, {column.condition}. Whiskers: 95 %, widest interval{joined}{dotted}",
        f"{words(column.metric)} of {len(shown)} observers, from {records[0]['name']}, {records[0]['value']:.2f}, to "
        f"{records[-1]['name']}, {records[-1]['value']:.2f}.",
    )


def _ties(run: Run, column: Column) -> Ties:
    """Compare all pairs on the same stimuli where the answers are there, else by their intervals."""
    places = folders(run)
    owner = {s.observer: str(place) for place in places for s in read_scores(place) if s.protocol == column.protocol}
    if all((place / "run.json").is_file() for place in places) and len(column.rows) > 1:
        paired = compare_pairs(answers_of(map(str, places)), column, {o: (owner[o], o) for o in column.rows})
        if paired.groups:
            return Ties(dict(paired.groups), "cannot be told apart on the same stimuli (paired, Holm)")
    low = [row.ci_low for row in column.rows.values()]
    high = [row.ci_high for row in column.rows.values()]
    if not np.isfinite([*low, *high]).all():
        return Ties({}, "have no intervals to compare")
    groups = tie_groups([row.value for row in column.rows.values()], separable_by_intervals(low, high))
    return Ties(dict(zip(column.rows, letters(groups, len(column.rows)))), "have overlapping intervals")


def _chart(records: Sequence[dict[str, Any]], series: Series, metric: str, human: float | None, room: float) -> Any:
    names = [r["name"] for r in records]
    groups = sorted({letter for r in records for letter in _letters(r["ties"])})
    bars = [
        {"group": k, "first": rows[0], "last": rows[-1]}
        for k, letter in enumerate(groups)
        if len(rows := [r["name"] for r in records if letter in _letters(r["ties"])]) > 1
    ]
    aside = 4.0 * max(len(groups), 1)
    wide, height = room - aside - 22, _ROW * len(records)
    known = [] if human is None else [human]
    ends = span("", [*known, *(r[key] for r in records for key in ("value", "low", "high"))])
    scale = alt.Scale(domain=[ends.low, ends.high], nice=False, zero=False)
    axis = alt.Axis(title=metric, tickCount=6, format=".2f")
    down = alt.Y("name:N", sort=names, axis=alt.Axis(title=None, ticks=False, domain=False, grid=True))
    base = alt.Chart(table(records)).encode(y=down, color=series.colour())
    tips = tooltip("name", "ties", value=".3f", low=".3f", high=".3f", n=",")
    layers = [line_at(human, axis, "x", PEOPLE_COLOUR)] if human is not None else []
    layers += [
        base.mark_rule(strokeWidth=1.2, opacity=0.7).encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"),
        base.mark_point(size=30).encode(x=alt.X("value:Q", scale=scale, axis=axis), shape=series.mark(), tooltip=tips),
        base.mark_text(align="left", dx=4, fontSize=6.5).encode(
            x=alt.value(wide), text=alt.Text("value:Q", format=".2f"), color=alt.value(SOFT)
        ),
    ]
    plot = alt.layer(*layers).properties(width=wide, height=height)
    if not bars:
        return plot
    ties = (
        alt.Chart(table(bars))
        .mark_rule(color=INK, strokeWidth=1.3)
        .encode(
            x=alt.X("group:O", axis=None, scale=alt.Scale(domain=list(range(len(groups))), padding=0.3)),
            y=alt.Y("first:N", sort=names, scale=alt.Scale(domain=names), axis=None),
            y2="last:N",
        )
        .properties(width=aside, height=height)
    )
    return alt.hconcat(plot, ties, spacing=2)


def _letters(ties: str) -> list[str]:
    """Split the letters of an observer: ``abz1`` → a, b, z1."""
    tie_letters: list[str] = []
    for sign in ties:
        if sign.isdigit() and tie_letters:
            tie_letters[-1] += sign
        else:
            tie_letters.append(sign)
    return tie_letters


FIGURE = Figure(
    "intervals",
    "Headline with intervals and tie groups",
    intervals,
    protocol="cue_conflict",
    options={"protocol": Option("cue_conflict", "whose headline"), "people": PEOPLE},
)
