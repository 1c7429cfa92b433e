"""Scatter plots of observers: a mark with two intervals for each, and names that do not cover each other or a mark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cuebench.reports import theme
from cuebench.reports.marks import MOST_WHISKERS, table, tooltip
from cuebench.reports.observers import Series
from cuebench.reports.text import width_of
from cuebench.reports.vega import alt

_SIZE = 6.5
"""Of the names, in points."""
_MARK = 4.0
_ANGLES = (45, 315, 135, 225, 0, 180, 90, 270)
"""Slanting ones first: whiskers lie on the others."""
_NEAR, _FAR = (6.0, 10.0), (16.0, 24.0, 34.0)


class Place(NamedTuple):
    """Where a name stands: left end and middle, in points from the left and the bottom; ``leader``: it is far away."""

    x: float
    y: float
    leader: bool


class Scale(NamedTuple):
    """A horizontal or vertical axis: title and ends."""

    title: str
    low: float
    high: float

    def points(self, value: float, length: float) -> float:
        """Return where a value lies on an axis of a length."""
        return (value - self.low) / (self.high - self.low) * length

    def value(self, points: float, length: float) -> float:
        """Return the value at a place on an axis of a length."""
        return self.low + points / length * (self.high - self.low)


def span(title: str, values: Sequence[float]) -> Scale:
    """Return an axis that holds all values, in steps of a tenth, within 0 and 1 where the values are."""
    finite = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = math.floor(min(finite) * 10 - 0.2) / 10, math.ceil(max(finite) * 10 + 0.2) / 10
    inside = min(finite) >= 0 and max(finite) <= 1
    return Scale(title, max(low, 0.0) if inside else low, min(high, 1.0) if inside else high)


def place_names(
    points: Sequence[tuple[float, float]], names: Sequence[str], width: float, height: float
) -> list[Place | None]:
    """Place a name beside each point, so that no name covers another one or a mark; None where there is no room.

    Parameters
    ----------
    points : sequence of (x, y)
        In points from the left and the bottom.
    names : sequence of str
        One for each.
    width, height : float
        Of the plot, in points.
    """
    marks = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in points]
    taken: list[tuple[float, float, float, float]] = []
    places: list[Place | None] = []
    for k, ((x, y), name) in enumerate(zip(points, names)):
        wide, high = width_of(name, _SIZE), _SIZE
        chosen = None
        for reach in (*_NEAR, *_FAR):
            for angle in _ANGLES:
                cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
                left = x + reach * cos - (0.0 if cos > 0.1 else wide if cos < -0.1 else wide / 2)
                middle = y + reach * sin
                box = left, middle - high / 2, left + wide, middle + high / 2
                inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
                others = (*taken, *marks[:k], *marks[k + 1 :]) if reach <= _NEAR[0] else (*taken, *marks)
                if inside and not any(_overlap(box, other) for other in others):
                    chosen = Place(left, middle, reach in _FAR)
                    taken.append(box)
                    break
            if chosen:
                break
        places.append(chosen)
    return places


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def scatter(
    records: Sequence[Mapping[str, Any]],
    series: Series,
    x: Scale,
    y: Scale,
    *,
    width: float,
    height: float,
    below: Sequence[Any] = (),
) -> Any:
    """Return a plot with a mark, two whiskers and a name for each observer.

    Parameters
    ----------
    records : sequence of mapping
        ``name``, ``x``, ``x_low``, ``x_high``, ``y``, ``y_low``, ``y_high``.
    series : Series
        Colours and marks of the names.
    x, y : Scale
        The axes.
    width, height : float
        In points.
    below : sequence of charts
        Drawn first, with the same axes.
    """
    spots = [(x.points(r["x"], width), y.points(r["y"], height)) for r in records]
    places = place_names(spots, [r["name"] for r in records], width, height)
    labels = [
        {
            "name": r["name"],
            "x": x.value(place.x, width),
            "y": y.value(place.y, height),
            "from_x": r["x"],
            "from_y": r["y"],
            "to_x": x.value(place.x + (0 if place.x > spot[0] else width_of(r["name"], _SIZE)), width),
            "leader": place.leader,
        }
        for r, place, spot in zip(records, places, spots)
        if place is not None
    ]
    # Where a name finds no place, the legend has all of them.
    legend = None if all(places) else series.legend(width)
    base = alt.Chart(table(records)).encode(color=series.colour(legend=legend))
    layers = list(below)
    if len(records) <= 3 * MOST_WHISKERS:
        spans = base.mark_rule(opacity=0.45)
        layers.append(spans.encode(**_at(x, y, "x_low"), x2="x_high:Q"))
        layers.append(spans.encode(**_at(x, y, "x", "y_low"), y2="y_high:Q"))
    tips = tooltip("name", x=".3f", x_low=".3f", x_high=".3f", y=".3f", y_low=".3f", y_high=".3f")
    layers.append(
        base.mark_point(size=28, stroke=theme.PAPER).encode(**_at(x, y), shape=series.mark(legend=legend), tooltip=tips)
    )
    names = alt.Chart(table(labels))
    leaders = names.transform_filter("datum.leader").mark_rule(color=theme.NEUTRAL, strokeWidth=0.4)
    layers.append(leaders.encode(**_at(x, y, "from_x", "from_y"), x2="to_x:Q", y2="y:Q"))
    text = {"align": "left", "baseline": "middle", "fontSize": _SIZE}
    layers.append(names.mark_text(**text, stroke=theme.PAPER, strokeWidth=2).encode(**_at(x, y), text="name:N"))
    layers.append(names.mark_text(**text).encode(**_at(x, y), text="name:N"))
    return alt.layer(*layers).properties(width=width, height=height)


def dots(rows: Sequence[Mapping[str, Any]], x: Scale, y: Scale, *fields: str) -> Any:
    """Return small grey marks to compare with, from ``x`` and ``y``; a tooltip shows the fields."""
    return (
        alt.Chart(table(rows))
        .mark_point(size=12, color=theme.NEUTRAL, opacity=0.55)
        .encode(**_at(x, y), tooltip=tooltip(*fields, x=".3f", y=".3f"))
    )


def line(ends: Sequence[tuple[float, float]], x: Scale, y: Scale) -> Any:
    """Return a dotted line through points of the plot, cut at its edges."""
    return (
        alt.Chart(table({"x": a, "y": b} for a, b in ends))
        .mark_line(color=theme.NEUTRAL, strokeDash=[2, 2], strokeWidth=0.8, clip=True)
        .encode(**_at(x, y))
    )


def _at(x: Scale, y: Scale, across: str = "x", up: str = "y") -> dict[str, Any]:
    """Return the two channels of position; all layers of a plot have the same axes."""

    def channel(kind: Any, field: str, scale: Scale) -> Any:
        ends = alt.Scale(domain=[scale.low, scale.high], nice=False, zero=False)
        digits = ".1f" if scale.high - scale.low > 0.5 else ".2f"
        return kind(f"{field}:Q", scale=ends, axis=alt.Axis(title=scale.title, tickCount=6, format=digits))

    return {"x": channel(alt.X, across, x), "y": channel(alt.Y, up, y)}
