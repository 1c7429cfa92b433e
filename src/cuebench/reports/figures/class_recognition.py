"""How well people and models recognise each class by shape and by texture: bars with intervals, one panel each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cuebench.analyses.class_wise import PROTOCOLS, SOURCES, ClassRow, by_class, read_panel
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports import theme
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, heading, panels, share_axis, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, folders, headline_note
from cuebench.reports.text import words
from cuebench.reports.vega import alt
from cuebench.types import Estimate

SPACE = Option("16-way", "label space of cue conflict, silhouettes and edges", choices=("16-way", "1000-way"))
VIEW = Option("faithful", "view of REFINED-BIAS", choices=("faithful", "native"))


_TITLES = {
    "shape answers": "Cue conflict, answered by shape",
    "texture answers": "Cue conflict, answered by texture",
    "silhouettes": "Silhouettes",
    "edges": "Edges",
    "shape cues": "REFINED-BIAS, shape cues",
    "texture cues": "REFINED-BIAS, texture cues",
}


def class_recognition(run: Run, *, space: str = "16-way", view: str = "faithful") -> Picture:
    """Draw the accuracy of models (bars) and people (diamonds) for every class, as Fig. 4 and 7 of Kim et al. 2026.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders of ``cue_conflict``, ``pure_shape`` or ``refined_bias``.
    space : str
        Label space of cue conflict, silhouettes and edges: ``16-way`` or ``1000-way``.
    view : str
        View of REFINED-BIAS: ``faithful`` or ``native``.
    """
    panel = read_panel(folders(run), space=space, view=view)
    rows = by_class(panel)
    records = [_record(r, who) for r in rows for who in ("models", "people") if getattr(r, who).n]
    if not records:
        raise UserError("neither models nor people are among the observers", "ideal observers are not shown here")
    sources = [s for s in SOURCES if any(r["source"] == s for r in records)]
    counts = {who: max((r["n"] for r in records if r["group"] == who), default=0) for who in ("models", "people")}
    who = " and ".join(f"{n} {word}" for word, n in counts.items() if n)
    marks = f"{'Bars: models' if counts['models'] else ''}{'; diamonds: people' if counts['people'] else ''}".strip(
        "; "
    )
    return Picture(
        "Recognition by class",
        lambda room: _chart(records, sources, room),
        records,
        f"{marks or 'Nobody'}; means of {who or 'nobody'}, whiskers: 95 % over them; {space}, {view}",
        f"Accuracy for each class by {', '.join(sources)}; {who}.",
        footnote=headline_note(run, PROTOCOLS),
    )


def _record(row: ClassRow, group: str) -> dict[str, Any]:
    estimate: Estimate = getattr(row, group)
    (interval,) = estimate.intervals
    low, high = (v if math.isfinite(v) else estimate.value for v in (interval.low, interval.high))
    return {
        "source": row.source,
        "class": row.label,
        "group": group,
        "value": estimate.value,
        "low": max(0.0, low),
        "high": min(1.0, high),
        "n": estimate.n,
    }


def _chart(records: Sequence[dict[str, Any]], sources: Sequence[str], room: float) -> Any:
    columns = min(2, columns_for(room, len(sources)))
    wide = room / columns - 8
    return panels([_panel([r for r in records if r["source"] == s], s, wide) for s in sources], columns)


def _panel(rows: Sequence[dict[str, Any]], source: str, width: float) -> Any:
    first = {r["class"]: r["value"] for r in sorted(rows, key=lambda r: r["group"], reverse=True)}
    order = [words(c) for c in sorted(first, key=lambda c: (-first[c], c))]
    colour = theme.TEXTURE if "texture" in source else theme.SHAPE
    axis = share_axis("accuracy")
    y = alt.Y("class:N", sort=order, title=None, axis=alt.Axis(labelOverlap=False, labelLimit=90))
    scale = alt.Scale(domain=[0, 1], nice=False)
    base = alt.Chart(table({**r, "class": words(r["class"])} for r in rows)).encode(y=y)
    tips = tooltip("class", "group", value=".3f", low=".3f", high=".3f", n=",")
    models, people = (base.transform_filter(f"datum.group == '{group}'") for group in ("models", "people"))
    spans = {"x": alt.X("low:Q", axis=axis, scale=scale), "x2": "high:Q"}
    layers = [
        models.mark_bar(color=colour, opacity=0.75, height=6).encode(
            x=alt.X("value:Q", axis=axis, scale=scale), tooltip=tips
        ),
        models.mark_rule(color=theme.SOFT).encode(**spans),
        people.mark_rule(color=theme.PEOPLE).encode(**spans),
        people.mark_point(shape=theme.PEOPLE_MARK, color=theme.PEOPLE, size=26).encode(
            x=alt.X("value:Q", axis=axis, scale=scale), tooltip=tips
        ),
    ]
    return alt.layer(*layers).properties(width=width, height=9.5 * len(order), title=heading(_TITLES[source], width))


FIGURE = Figure(
    "class_recognition",
    "Recognition by class",
    class_recognition,
    protocol="pure_shape",
    options={"space": SPACE, "view": VIEW},
)
