"""Profile: the headlines of all protocols of a run, one strip each, with a mark for each observer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.protocols.headline import headline_column, headline_of
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import MOST_WHISKERS, heading, highlighted, table, tooltip, whiskers
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, all_scores, observers_of, shown_observers
from cuebench.reports.scatter import span
from cuebench.reports.text import words
from cuebench.reports.theme import PAPER, PEOPLE_MARK
from cuebench.reports.theme import PEOPLE as PEOPLE_COLOUR
from cuebench.reports.vega import alt, selectable

_LARGER = {
    "shape": "more shape →",
    "texture": "more texture →",
    "correct": "more correct →",
    "human": "more like people →",
}
_LEVELS = 5
"""Heights at which many marks of a strip stand in turn, so that they cover each other less."""


def profile(run: Run, *, protocols: Sequence[str] = (), people: str = "pooled") -> Picture:
    """Draw the headline of every protocol for every observer.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with any protocols.
    protocols : sequence of str
        Only these, in this order; default: all of the run.
    people : str
        ``pooled``: the pooled answers of people; ``each``: every person too.
    """
    numbers = all_scores(run)
    wanted = list(protocols) or list(dict.fromkeys(s.protocol for s in numbers if s.protocol))
    columns = [c for name in wanted if (c := headline_column(numbers, name)) is not None]
    if not columns:
        raise UserError(f"{run} has no headline of {', '.join(wanted) or 'any protocol'}", "see cuebench report RUN")
    observers = observers_of(run)
    shown = shown_observers((o for c in columns for o in c.rows), observers, people)
    records = [r for c in columns for r in observers.records(c.rows[o] for o in shown if o in c.rows)]
    with_people = {r["protocol"] for r in records if r["kind"] == "people"}
    published = [
        {"name": "people (published)", "kind": "published", "protocol": c.protocol, "metric": c.metric, "value": human}
        for c in columns
        if c.protocol not in with_people and (human := headline_of(c.protocol).human) is not None
    ]
    series = observers.series(shown)
    outline = "; outlined: people, as published" if published else ""
    return Picture(
        "The headlines of all protocols",
        lambda room: _chart([*records, *published], series, room),
        [*records, *published],
        f"One strip for each protocol; a mark is one observer{whiskers(series, 'widest interval')}{outline}",
        f"{len(columns)} headlines of {len(shown)} observers.",
    )


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    protocols = list(dict.fromkeys(r["protocol"] for r in records))
    strips = [_strip(name, [r for r in records if r["protocol"] == name], series, room) for name in protocols]
    joined = alt.vconcat(*strips, spacing=10) if len(strips) > 1 else strips[0]
    return joined.resolve_scale(color="shared", shape="shared") if len(strips) > 1 else joined


def _strip(protocol: str, records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    headline = headline_of(protocol)
    many = len(series.names) > MOST_WHISKERS
    place = {name: k % _LEVELS if many else k for k, name in enumerate(series.names)}
    rows = [{**r, "level": place.get(r["name"], -1)} for r in records]
    levels = _LEVELS if many else len(series.names)
    ends = span("", [r.get(key, math.nan) for r in records for key in ("value", "low", "high")])
    axis = alt.Axis(title=None, tickCount=6, format=".1f")
    scale = alt.Scale(domain=[min(ends.low, 0.0), max(ends.high, 1.0)], nice=False)
    up = alt.Y("level:Q", axis=None, scale=alt.Scale(domain=[levels - 0.3, -0.7], nice=False, zero=False))
    legend = series.legend(room)
    base = alt.Chart(table(r for r in rows if r["kind"] != "published")).encode(
        y=up, color=series.colour(legend=legend), opacity=highlighted()
    )
    tips = tooltip("name", "condition", value=".3f", low=".3f", high=".3f", n=",")
    points = (
        selectable(base)
        .mark_point(stroke=PAPER, strokeWidth=0.4, size=22 if many else 30)
        .encode(x=alt.X("value:Q", axis=axis, scale=scale), shape=series.mark(legend=legend), tooltip=tips)
    )
    span_of = {"x": alt.X("low:Q", axis=axis, scale=scale), "x2": "high:Q", "opacity": highlighted(0.6)}
    spans = [] if many else [base.mark_rule().encode(**span_of)]
    published = [r for r in rows if r["kind"] == "published"]
    human = (
        alt.Chart(table([{**r, "level": (levels - 1) / 2} for r in published]))
        .mark_point(shape=PEOPLE_MARK, filled=False, stroke=PEOPLE_COLOUR, strokeWidth=1, size=40)
        .encode(x=alt.X("value:Q", axis=axis, scale=scale), y=up, tooltip=tooltip("name", value=".3f"))
    )
    title = f"{words(protocol)}: {words(headline.metric)} ({_LARGER[headline.direction]})"
    return alt.layer(*spans, *([human] if published else []), points).properties(
        width=room, height=max(5.5 * levels, 14), title=heading(title, room)
    )


FIGURE = Figure(
    "profile",
    "The headlines of all protocols",
    profile,
    options={"protocols": Option((), "only these, in this order; default: all of the run"), "people": PEOPLE},
)
