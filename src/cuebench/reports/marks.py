"""Pieces that several figures are made of: tables, whiskers, lines at chance, curves, and panels beside each other."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from PIL import Image

from cuebench.arrays import Pixels
from cuebench.reports import theme
from cuebench.reports.observers import Series
from cuebench.reports.text import harmless, shorten, wrapped
from cuebench.reports.vega import CHOSEN, alt, data, selectable
from cuebench.stimuli.png import png_bytes

_LINE = 8.0
"""Height of a line of text, in points."""
MOST_WHISKERS = 10
"""Series in one panel up to which each number has its whiskers; with more they would hide the numbers."""


def table(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as the data of a chart: harmless texts, no NaN, six digits."""
    return data([{key: _clean(value) for key, value in row.items()} for row in rows])


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def tooltip(*fields: str, **formats: str) -> list[Any]:
    """Return a tooltip of fields; ``formats`` gives the number format of some (``value=".3f"``)."""
    plain = [alt.Tooltip(f"{name}:N") for name in fields]
    return plain + [alt.Tooltip(f"{name}:Q", format=form) for name, form in formats.items()]


def share_axis(title: str | None, **more: Any) -> Any:
    """Return an axis of shares between 0 and 1 in five steps."""
    return alt.Axis(title=title, values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f", labelOverlap=False, **more)


def line_at(value: float, axis: Any, channel: str = "y", colour: str = theme.NEUTRAL) -> Any:
    """Return a dotted line across a plot, for chance or another value to compare with.

    Parameters
    ----------
    value : float
        Where it stands.
    axis : altair axis
        That of the other layers of the plot.
    channel : str
        ``y`` for a horizontal line, ``x`` for a vertical one.
    colour : str
        Of the theme.
    """
    place = {"y": alt.Y, "x": alt.X}[channel]("at:Q", axis=axis)
    return alt.Chart(table([{"at": value}])).mark_rule(strokeDash=[2, 2], color=colour).encode(**{channel: place})


def ticks(labels: Sequence[str], title: str | None = None, *, slanted_in: float = 0, **more: Any) -> Any:
    """Return an axis whose positions 0, 1, 2, … have names.

    Parameters
    ----------
    labels : sequence of str
        The names.
    title : str, optional
        Of the axis.
    slanted_in : float
        Width of the axis in points: names are slanted, and where they are nearer than a line, only some are shown.
    more
        Further properties of the axis.
    """
    every = max(1, math.ceil(len(labels) * _LINE / slanted_in)) if slanted_in else 1
    slanted = {"labelAngle": -60, "labelOverlap": False} if slanted_in else {"labelOverlap": True}
    names = json.dumps([harmless(label) for label in labels], ensure_ascii=False)
    return alt.Axis(
        title=title,
        values=list(range(0, len(labels), every)),
        labelExpr=f"{names}[datum.value]",
        grid=False,
        **{**slanted, **more},
    )


def curves(
    rows: Sequence[Mapping[str, Any]],
    series: Series,
    *,
    width: float,
    height: float,
    x: Any,
    y: Any,
    legend: Any = None,
    chance: float | None = None,
    title: str = "",
    dashed: str = "",
) -> Any:
    """Return a panel with a curve for each name, with its whiskers beside those of the others.

    Parameters
    ----------
    rows : sequence of mapping
        ``name`` (of the series), ``position`` on the horizontal axis, ``value``, ``low`` and ``high``; whatever else
        they hold is shown by the tooltip.
    series : Series
        Colours and marks of the names.
    width, height : float
        In points.
    x, y : altair axes
        For example from `ticks` and `share_axis`.
    legend : altair legend, optional
        Given to one panel of a figure.
    chance : float, optional
        Where a dotted line stands.
    title : str
        Of the panel.
    dashed : str
        Field that is true for rows whose curve is dashed and has no whiskers.
    """
    positions = [float(row["position"]) for row in rows]
    low, high = (min(positions), max(positions)) if positions else (0.0, 1.0)
    step = (high - low) / max(len(set(positions)) - 1, 1) or 1.0
    shifts = {n: 0.36 * step * (k / max(len(series.names) - 1, 1) - 0.5) for k, n in enumerate(series.names)}
    if len(series.names) > MOST_WHISKERS:
        shifts = dict.fromkeys(shifts, 0.0)
    shifted = [
        {**row, "x": float(row["position"]) + (0 if row.get(dashed) else shifts.get(row["name"], 0.0))} for row in rows
    ]
    points = table(sorted(shifted, key=lambda row: (row["name"], row["x"])))
    scale = alt.Scale(domain=[low - 0.3 * step, high + 0.3 * step], nice=False, zero=False)
    base = alt.Chart(points).encode(
        opacity=highlighted(),
        x=alt.X("x:Q", scale=scale, axis=x),
        y=alt.Y("value:Q", scale=alt.Scale(domain=[0, 1], clamp=True), axis=y),
        color=series.colour(legend=legend),
    )
    layers = [line_at(chance, y)] if chance is not None else []
    solid = base.transform_filter(f"!datum['{dashed}']") if dashed else base
    if len(series.names) <= MOST_WHISKERS:
        layers.append(solid.mark_rule().encode(opacity=highlighted(0.55), y=alt.Y("low:Q", axis=y), y2="high:Q"))
    many = len(series.names) > MOST_WHISKERS
    layers.append(solid.mark_line(strokeWidth=0.7 if many else 1.2))
    if dashed:
        layers.append(base.transform_filter(f"datum['{dashed}']").mark_line(strokeDash=[3, 2], strokeWidth=0.8))
    tips = tooltip("name", "condition", value=".3f", low=".3f", high=".3f", n=",")
    layers.append(
        selectable(solid).mark_point(size=14 if many else 24).encode(shape=series.mark(legend=legend), tooltip=tips)
    )
    named = {"title": heading(title, width)} if title else {}
    return alt.layer(*layers).properties(width=width, height=height, **named)


def panels(charts: Sequence[Any], columns: int) -> Any:
    """Return charts beside and below each other, with one legend for all."""
    joined = alt.concat(*charts, columns=columns) if len(charts) > 1 else charts[0]
    return joined.resolve_scale(color="shared", shape="shared") if len(charts) > 1 else joined


def columns_for(room: float, panels: int) -> int:
    """Return how many panels stand beside each other: two in a column, three on a page."""
    return max(1, min(panels, 2 if room < 300 else 3))


def highlighted(opacity: float = 1.0) -> Any:
    """Return an opacity that fades all other series while a reader points at one; on paper all are shown.

    One layer of the plot must be `vega.selectable`.
    """
    return alt.condition({"param": CHOSEN, "empty": True}, alt.value(opacity), alt.value(0.08))


def whiskers(series: Series, what: str) -> str:
    """Return what the subtitle says of the whiskers: where many series are shown, there are none.

    Parameters
    ----------
    series : Series
        Who is shown.
    what : str
        What the intervals are about: ``over images``, ``widest interval``.
    """
    return f"; whiskers: 95 %, {what}" if len(series.names) <= MOST_WHISKERS else "; intervals are in the table"


def heading(text: str, room: float) -> Any:
    """Return the title of one panel, broken into lines where it is wider than that."""
    size = theme.SIZES["label"] + 0.5
    lines = wrapped(text, room, size, bold=True) or [""]
    return alt.Title(lines, fontSize=size, lineHeight=size + 1.5, anchor="start", frame="group", offset=4)


def image_url(image: Pixels | Image.Image) -> str:
    """Return a picture as a URL that holds its pixels."""
    return "data:image/png;base64," + base64.b64encode(png_bytes(image)).decode()


def pictures(urls: Sequence[str], names: Sequence[str], *, room: float, columns: int, names_below: bool = True) -> Any:
    """Return square pictures in rows, each with a name below it.

    Parameters
    ----------
    urls : sequence of str
        From `image_url`.
    names : sequence of str
        One for each picture.
    room : float
        Width of all of them, in points.
    columns : int
        How many stand in a row.
    names_below : bool
        False: no names.
    """
    gap, below = 3.0, 9.0 if names_below else 0.0
    columns = min(columns, len(urls))
    side = (room + gap) / columns - gap
    rows = [
        {
            "url": url,
            "name": shorten(name, max(6, int(side / 3.4))),
            "x": (k % columns) * (side + gap) + side / 2,
            "y": (k // columns) * (side + gap + below) + side / 2,
            "below": (k // columns) * (side + gap + below) + side + 6,
        }
        for k, (url, name) in enumerate(zip(urls, names))
    ]
    height = -(-len(urls) // columns) * (side + gap + below)
    base = alt.Chart(table(rows)).encode(x=_exactly(alt.X, "x", room))
    images = base.mark_image(width=side, height=side).encode(
        y=_exactly(alt.Y, "y", height), url="url:N", tooltip=tooltip("name")
    )
    if not names_below:
        return images.properties(width=room, height=height)
    texts = base.mark_text(fontSize=6.5).encode(y=_exactly(alt.Y, "below", height), text="name:N")
    return alt.layer(images, texts).properties(width=room, height=height)


def _exactly(channel: Any, field: str, length: float) -> Any:
    """Return a channel in which a field is a position in points from the left or the top."""
    ends = [0, length] if channel is alt.X else [length, 0]
    return channel(f"{field}:Q", axis=None, scale=alt.Scale(domain=ends, nice=False, zero=False))


def kappa_matrix(
    rows: Any,
    order: Sequence[str],
    field: str,
    values: Sequence[float],
    room: float,
    *,
    largest: float = 26.0,
    angle: int = -60,
    stroke: float = 0.4,
    font: float = 5.8,
) -> Any:
    """Return a square of κ, ``first`` against ``second``; numbers stand in cells that are large enough.

    Parameters
    ----------
    rows : data of a chart
        With the fields ``first``, ``second``, ``n`` and ``field``.
    order : sequence of str
        Names, as they stand from left to right and from top to bottom.
    field : str
        The field that holds κ.
    values : sequence of float
        All values that are defined: they decide the end of the colour scale.
    room, largest : float
        Width of the plot, and the largest side of a cell, in points.
    angle, stroke, font
        Of the names above, of the lines between cells, and of the numbers.
    """
    cell = min(room / len(order), largest)
    plain = {"title": None, "ticks": False, "domain": False, "labelOverlap": cell < 7, "grid": False}
    base = alt.Chart(rows).encode(
        x=alt.X("second:N", sort=list(order), axis=alt.Axis(orient="top", labelAngle=angle, **plain)),
        y=alt.Y("first:N", sort=list(order), axis=alt.Axis(**plain)),
    )
    top = max(0.2, *values, 0.2)
    squares = base.mark_rect(stroke=theme.PAPER, strokeWidth=stroke).encode(
        color=alt.Color(
            f"{field}:Q",
            scale=alt.Scale(domain=[0, round(top, 2)], range=list(theme.HEAT), clamp=True),
            legend=alt.Legend(title="κ", format=".2f", tickCount=4),
        ),
        tooltip=tooltip("first", "second", **{field: ".3f", "n": ","}),
    )
    layers = [squares]
    if cell >= 14:
        paint = alt.condition(f"datum.{field} > {top / 2:.4f}", alt.value(theme.PAPER), alt.value(theme.INK))
        layers.append(base.mark_text(fontSize=font).encode(text=alt.Text(f"{field}:Q", format=".2f"), color=paint))
    side = cell * len(order)
    return alt.layer(*layers).properties(width=side, height=side)
