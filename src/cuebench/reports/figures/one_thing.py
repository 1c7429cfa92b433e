"""Do the protocols measure one thing: correlations of headlines, corrected for error, and what each has of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cuebench.errors import UserError
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.theme import CONDITIONS, FAINT, INK, NEUTRAL, PAPER
from cuebench.reports.vega import alt
from cuebench.statistics.reliability import Structure

_CELL = 34.0
_NARROW = 320
_PARTS = {"predicted by the others": CONDITIONS[2], "its own, repeatable": CONDITIONS[0], "error": NEUTRAL}
_SCALE = ("#cc79a7", "#ead1df", "#f7f7f4", "#bcd9ea", "#3a86b7")
"""−1 … 0 … 1: neither end is the colour of shape or texture."""


def one_thing(structures: Mapping[str, Structure]) -> Picture:
    """Draw the correlations of headlines and what the variance of each is made of.

    Parameters
    ----------
    structures : mapping of str to Structure
        Title → what ``cuebench.reports.correlate.headline_structure`` or
        ``cuebench.published.one_thing.published_structures`` returned; a row of panels for each.
    """
    if not structures:
        raise UserError("there is nothing to draw", "name runs that measured the same observers with several protocols")
    records = [row for title, structure in structures.items() for row in _records(title, structure)]
    sizes = "; ".join(f"{title + ': ' if title else ''}{len(s.observers)} observers" for title, s in structures.items())
    strongest = max((r for r in records if r["corrected"] is not None), key=lambda r: abs(r["corrected"]), default=None)
    spoken = (
        f" Strongest: {strongest['first']} and {strongest['second']}, {strongest['corrected']:.2f}."
        if strongest
        else ""
    )
    return Picture(
        "Do the protocols measure one thing?",
        lambda room: _chart(structures, room),
        records,
        "Correlations (Pearson) of headlines over observers: below the diagonal as observed, above it corrected for "
        f"what other images and sources would change; on it the reliability. Small: 95 %. {sizes}",
        f"Correlations of headlines, observed and corrected for error; {sizes}.{spoken}",
    )


def _records(title: str, structure: Structure) -> list[dict[str, Any]]:
    rows, n = [], len(structure.observers)
    for link in structure.links:
        row: dict[str, Any] = {"group": title, "first": link.first, "second": link.second, "n": n}
        for name, r in (("observed", link.observed), ("corrected", link.corrected)):
            row |= {name: _or_none(r.value), f"{name}_low": _or_none(r.low), f"{name}_high": _or_none(r.high)}
        rows.append(row)
    return rows


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _chart(structures: Mapping[str, Structure], room: float) -> Any:
    rows = []
    last = max((i for i, s in enumerate(structures.values()) if s.shares), default=0)
    for i, (title, structure) in enumerate(structures.items()):
        narrow = room < _NARROW  # one below the other, beside the names of the headlines
        side = min(_CELL * len(structure.names), room - 120 if narrow else room * (0.45 if structure.shares else 0.9))
        panels = [_matrix(title, structure, side)]
        if structure.shares:
            width = side if narrow else max(60.0, room - side)
            panels.append(_shares(structure, width, side, legend=i == last, named=narrow))
        rows.append((alt.vconcat if narrow else alt.hconcat)(*panels, spacing=14))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows, spacing=14).resolve_scale(color="independent")


def _matrix(title: str, structure: Structure, side: float) -> Any:
    cells = []
    for name in structure.names:
        r = structure.reliability[name]
        cells.append({"x": name, "y": name, **_cell(r.value, r.low, r.high), "what": "reliability", "paint": None})
    for link in structure.links:
        for x, y, r, what in (
            (link.first, link.second, link.observed, "observed"),
            (link.second, link.first, link.corrected, "corrected"),
        ):
            cells.append({"x": x, "y": y, **_cell(r.value, r.low, r.high), "what": what, "paint": _or_none(r.value)})
    order = list(structure.names)
    plain = {"title": None, "ticks": False, "domain": False, "grid": False, "labelLimit": 110}
    base = alt.Chart(table(cells)).encode(
        x=alt.X("x:N", sort=order, axis=alt.Axis(orient="top", labelAngle=-30, labelOverlap=False, **plain)),
        y=alt.Y("y:N", sort=order, axis=alt.Axis(**plain)),
    )
    squares = base.mark_rect(stroke=PAPER, strokeWidth=1).encode(
        color=alt.condition(
            "datum.paint === null",
            alt.value(FAINT),
            alt.Color("paint:Q", scale=alt.Scale(domain=[-1, 1], range=list(_SCALE)), legend=None),
        ),
        tooltip=tooltip("y", "x", "what", value=".2f", low=".2f", high=".2f"),
    )
    number = base.mark_text(fontSize=8, dy=-4, fontWeight="bold").encode(text="shown:N", color=alt.value(INK))
    small = base.mark_text(fontSize=5.4, dy=6).encode(text="interval:N", color=alt.value(INK))
    named = {"title": alt.Title(title, fontSize=8, anchor="start", frame="group")} if title else {}
    return alt.layer(squares, number, small).properties(width=side, height=side, **named)


def _cell(value: float, low: float, high: float) -> dict[str, Any]:
    if not math.isfinite(value):
        return {"value": None, "low": None, "high": None, "shown": "–", "interval": ""}
    interval = f"{_short(low)} to {_short(high)}" if math.isfinite(low) else ""
    return {"value": value, "low": low, "high": high, "shown": _short(value), "interval": interval}


def _short(value: float) -> str:
    """Write a share without its 0."""
    text = f"{abs(value):.2f}"
    text = text[1:] if text.startswith("0") else text
    return ("−" if value < 0 and float(f"{value:.2f}") else "") + text


def _shares(structure: Structure, width: float, height: float, *, legend: bool, named: bool) -> Any:
    rows: list[dict[str, Any]] = []
    for s in structure.shares:
        shared = min(max(s.shared.value, 0.0), 1.0)
        error = min(max(s.error.value, 0.0), 1 - shared)
        for part, value, r in (
            ("predicted by the others", shared, s.shared),
            ("its own, repeatable", 1 - shared - error, s.own),
            ("error", error, s.error),
        ):
            rows.append({"name": s.name, "part": part, "share": value, "value": r.value, "low": r.low, "high": r.high})
    order = list(structure.names)
    parts, title = list(_PARTS), "share of the variance over observers" if legend else None
    for row in rows:
        row["order"] = parts.index(row["part"])
    names = alt.Axis(title=None, labels=named, labelLimit=110, ticks=False, domain=False)
    key = alt.Legend(title=None, orient="bottom", columns=1 if named else 3)
    return (
        alt.Chart(table(rows))
        .mark_bar(height=height / len(order) * 0.5)
        .encode(
            x=alt.X("share:Q", stack="zero", scale=alt.Scale(domain=[0, 1]),
                    axis=alt.Axis(title=title, format=".1f", values=[0, 0.5, 1])),
            y=alt.Y("name:N", sort=order, axis=names),
            color=alt.Color("part:N", sort=parts, scale=alt.Scale(domain=parts, range=list(_PARTS.values())),
                            legend=key if legend else None),
            order=alt.Order("order:Q"),
            tooltip=tooltip("name", "part", value=".2f", low=".2f", high=".2f"),
        )
        .properties(width=width, height=height)
    )  # fmt: skip


FIGURE = Figure("one_thing", "Do the protocols measure one thing?", one_thing, needs="objects")
