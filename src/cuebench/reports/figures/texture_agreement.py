"""Texture agreement: accuracy and confidence with and without the usual texture, and whose texture errors show.

Figures 9, 11 and 12 of the paper, for all observers of a run: what the dominant texture of a class is worth, what a
TAV with permuted classes gives (the part that arises by itself), and the natural adversarial images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import heading, share_axis, table, tooltip
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PROTOCOL, Run, observers_of, scores, shown_observers
from cuebench.reports.text import percent
from cuebench.reports.theme import CONDITIONS, NEUTRAL, SOFT, TEXTURE
from cuebench.reports.vega import alt
from cuebench.types import Score

_PANELS = {
    "Accuracy, by label": ("label/with_dominant", "label/all", "label/without_dominant"),
    "Confidence, by prediction": ("prediction/with_dominant", "prediction/all", "prediction/without_dominant"),
    "Texture of natural adversarial images is that of": (
        "adversarial/prediction",
        "adversarial/label",
        "adversarial/both",
        "adversarial/neither",
    ),
}
_WORDS = {
    "with_dominant": "with the class's usual texture",
    "all": "all images",
    "without_dominant": "with another texture",
    "prediction": "the predicted class",
    "label": "the true class",
    "both": "both",
    "neither": "neither",
}
_COLOURS = dict(zip(_WORDS, (TEXTURE, NEUTRAL, CONDITIONS[0], TEXTURE, CONDITIONS[0], CONDITIONS[1], NEUTRAL)))


def texture_agreement(run: Run) -> Picture:
    """Draw the shares of all observers with 95 % intervals; panels without any score are left out.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association`` on labelled photographs.
    """
    hint = "labelled photographs are needed: give the run a data root with imagenet_val"
    numbers = scores(run, PROTOCOL, "texture_dominance", "texture_agreement", hint=hint)
    by = {(s.observer, s.condition): s for s in numbers}
    observers = observers_of(run)
    shown = shown_observers((s.observer for s in numbers), observers)
    records = []
    for title, conditions in _PANELS.items():
        present = [by[o, c] for o in shown for c in conditions if (o, c) in by and math.isfinite(by[o, c].value)]
        for record in observers.records(present):
            images = _WORDS[record["condition"].rpartition("/")[2]]
            gap = _gap(record["observer"], record["condition"].partition("/")[0], by)
            records.append({**record, "panel": title, "images": images, "gap": gap})
    if not records:
        raise UserError(f"{run} has no answers to labelled photographs", hint)
    return Picture(
        "What the usual texture of a class is worth",
        lambda room: _chart(records, room),
        records,
        "Whiskers: 95 %, over images. Gap: with the usual texture minus with another; in brackets, the gap with "
        "permuted classes, which arises by itself",
        f"Accuracy, confidence and errors of {len(shown)} observers on images with and without the usual texture.",
    )


def _gap(observer: str, kind: str, by: Mapping[tuple[str, str], Score]) -> str:
    """Say how large the gap is, and how large it is with permuted classes; empty where there is none."""
    gap, null = (by.get((observer, f"{kind}/{name}")) for name in ("gap", "gap/shuffled"))
    if gap is None or null is None or not (math.isfinite(gap.value) and math.isfinite(null.value)):
        return ""
    return f"gap {percent(gap.value)} ({percent(null.value)})"


def _chart(records: Sequence[dict[str, Any]], room: float) -> Any:
    titles = [title for title in _PANELS if any(r["panel"] == title for r in records)]
    charts = [_panel(title, [r for r in records if r["panel"] == title], room) for title in titles]
    return alt.vconcat(*charts, spacing=12).resolve_scale(color="independent", y="independent", yOffset="independent")


def _panel(title: str, records: Sequence[dict[str, Any]], room: float) -> Any:
    kinds = [kind for kind, text in _WORDS.items() if any(r["images"] == text for r in records)]
    series = Series(tuple(_WORDS[k] for k in kinds), tuple(_COLOURS[k] for k in kinds), ("circle",) * len(kinds))
    names = list(dict.fromkeys(r["name"] for r in records))
    legend = alt.Legend(orient="top", direction="horizontal", title=None, columns=4 if room > 300 else 2, offset=4)
    base = alt.Chart(table(records)).encode(
        y=alt.Y("name:N", sort=names, axis=alt.Axis(title=None, ticks=False, domain=False)),
        yOffset=alt.YOffset("images:N", sort=list(series.names)),
        color=series.colour("images", legend=legend),
    )
    axis = share_axis(None, grid=True)
    scale = alt.Scale(domain=[0, 1])
    dots = base.mark_point().encode(
        x=alt.X("value:Q", axis=axis, scale=scale),
        tooltip=tooltip("name", "images", value=".3f", low=".3f", high=".3f", n=","),
    )
    layers = [base.mark_rule().encode(x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q"), dots]
    gaps = {r["name"]: r["gap"] for r in records if r["gap"]}
    if gaps:
        notes = alt.Chart(table({"name": n, "text": gap} for n, gap in gaps.items()))
        layers.append(
            notes.mark_text(align="left", dx=5, color=SOFT).encode(
                x=alt.value(room), y=alt.Y("name:N", sort=names), text="text:N"
            )
        )
    height = len(names) * (4 + 6 * len(kinds))
    return alt.layer(*layers).properties(width=room, height=height, title=heading(title, room))


FIGURE = Figure("texture_agreement", "What the usual texture of a class is worth", texture_agreement, protocol=PROTOCOL)
