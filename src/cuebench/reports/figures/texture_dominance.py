"""Texture dominance: the textures found in the images of each class, and how well the model does on them.

Figures 8 and 10 of the paper: a point is a texture in a class, its height the share of the class's images, its colour
the accuracy (by label) or the mean confidence (by prediction) on them. Classes are sorted by their largest share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import heading, table, ticks, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, observers_of, of_observer, rows
from cuebench.reports.text import shorten, words
from cuebench.reports.theme import HEAT
from cuebench.reports.vega import alt

_VALUE = {"label": "accuracy", "prediction": "confidence"}


def texture_dominance(run: Run, *, observer: str = "", fewest: int = 1) -> Picture:
    """Draw the scatter by label and by prediction, one above the other.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association`` on labelled photographs.
    observer : str
        Whole name or a part of it; default: the first of the run.
    fewest : int
        Leave out classes with fewer images than this (a class with one image has a share of 1 by itself).
    """
    name, groups = of_observer(rows(run, "groups"), observer)
    records, left_out = [], 0
    for by in _VALUE:
        images: dict[str, int] = {}
        for r in groups:
            images[r["label"]] = images.get(r["label"], 0) + (r["n"] if r["by"] == by else 0)
        present = {label for label, n in images.items() if n}
        kept = {label for label in present if images[label] >= fewest}
        left_out = max(left_out, len(present) - len(kept))
        largest = {c: max((r["share"] for r in groups if r["by"] == by and r["label"] == c), default=0) for c in kept}
        order = sorted(kept, key=lambda c: (largest[c], c))
        place = {label: k for k, label in enumerate(order)}
        records += [
            {"observer": name, "by": by, "class": r["label"], "texture": words(r["texture"]), "share": r["share"],
             _VALUE[by]: r["value"], "n": r["n"], "place": place[r["label"]]}
            for r in groups if r["by"] == by and r["label"] in kept
        ]  # fmt: skip
    if not records:
        raise UserError(f"no class of {name} has {fewest} images", "--set fewest=1 shows all classes")
    without = f"; {left_out:,} classes with fewer than {fewest} images are left out" if left_out else ""
    return Picture(
        f"Textures in the classes of {observers_of(run).name(name)}",
        lambda room: _chart(records, room),
        records,
        f"A point: the images of one class with one texture; classes by the share of their main texture{without}",
        f"Shares of textures in {len({r['class'] for r in records})} classes.",
    )


def _chart(records: Sequence[dict[str, Any]], room: float) -> Any:
    charts = [_panel(by, [r for r in records if r["by"] == by], room) for by in _VALUE]
    return alt.vconcat(*charts, spacing=12).resolve_scale(color="independent", x="independent")


def _panel(by: str, records: Sequence[dict[str, Any]], room: float) -> Any:
    classes = [c for _, c in sorted({(r["place"], r["class"]) for r in records})]
    value = _VALUE[by]
    axis = ticks([shorten(c, 18) for c in classes], slanted_in=room, labelLimit=90, tickSize=0)
    points = (
        alt.Chart(table(sorted(records, key=lambda r: -r["share"])))
        .mark_point(size=11, opacity=0.9)
        .encode(
            x=alt.X("place:Q", axis=axis, scale=alt.Scale(domain=[-1, len(classes)], nice=False, zero=False)),
            y=alt.Y(
                "share:Q",
                axis=alt.Axis(title="share of images", format="%", tickCount=5),
                scale=alt.Scale(domain=[0, 1]),
            ),
            color=alt.Color(
                f"{value}:Q",
                scale=alt.Scale(domain=[0, 1], range=list(HEAT[1:])),
                legend=alt.Legend(title=value, format="%", values=[0, 0.5, 1]),
            ),
            tooltip=tooltip("class", "texture", share=".0%", **{value: ".0%"}, n=","),
        )
    )
    title = heading(f"By {by}: {len(classes):,} classes", room)
    return points.properties(width=room, height=min(130, 0.45 * room), title=title)


FIGURE = Figure(
    "texture_dominance",
    "Textures in the classes of a model",
    texture_dominance,
    protocol=PROTOCOL,
    options={
        "observer": OBSERVER,
        "fewest": Option(1, "leave out classes with fewer images than this", low=1),
    },
)
