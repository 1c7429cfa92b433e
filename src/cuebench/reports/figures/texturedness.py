"""Texturedness: how much answers to clean photographs and to natural adversarial images resemble those to textures.

Figure 14 of Hoak et al., with the value that arises where textures and classes are unrelated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, tooltip
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PROTOCOL, Run, observers_of, scores, shown_observers
from cuebench.reports.theme import CONDITIONS, NEUTRAL, TEXTURE
from cuebench.reports.vega import alt

_KINDS = {
    "clean": "clean photographs",
    "adversarial": "natural adversarial images",
    "clean/shuffled": "clean, permuted classes",
    "adversarial/shuffled": "adversarial, permuted classes",
}
_COLOURS = (CONDITIONS[0], TEXTURE, NEUTRAL, NEUTRAL)
_MARKS = ("circle", "circle", "triangle-up", "triangle-down")


def texturedness(run: Run) -> Picture:
    """Draw the mean texturedness of all observers with 95 % intervals.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association`` on photographs.
    """
    hint = "photographs are needed: give the run a data root with imagenet_val, and imagenet_a"
    numbers = [s for s in scores(run, PROTOCOL, "texturedness", hint=hint) if s.condition in _KINDS]
    observers = observers_of(run)
    shown = shown_observers((s.observer for s in numbers), observers)
    finite = [s for s in numbers if s.observer in shown and math.isfinite(s.value)]
    records = [{**r, "images": _KINDS[r["condition"]]} for r in observers.records(finite)]
    present = [k for k, kind in enumerate(_KINDS.values()) if any(r["images"] == kind for r in records)]
    kinds = list(_KINDS.values())
    series = Series(*(tuple(values[k] for k in present) for values in (kinds, _COLOURS, _MARKS)))
    return Picture(
        "Texturedness",
        lambda room: _chart(records, series, room),
        records,
        "Mean of the largest cosine between an answer and a row of the TAV; whiskers: 95 %, over images (permuted: "
        "range)",
        f"Mean texturedness of {len(shown)} observers on {' and '.join(kinds[k] for k in present[:2])}.",
    )


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    names = list(dict.fromkeys(r["name"] for r in records))
    legend = series.legend(room)
    base = alt.Chart(table(records)).encode(
        y=alt.Y("name:N", sort=names, axis=alt.Axis(title=None, ticks=False, domain=False)),
        yOffset=alt.YOffset("images:N", sort=list(series.names)),
        color=series.colour("images", legend=legend),
    )
    axis = alt.Axis(title="texturedness", grid=True, format=".2f")
    dots = base.mark_point().encode(
        x=alt.X("value:Q", axis=axis),
        shape=series.mark("images", legend=legend),
        tooltip=tooltip("name", "images", value=".3f", low=".3f", high=".3f", n=","),
    )
    spans = base.mark_rule().encode(x=alt.X("low:Q", axis=axis), x2="high:Q")
    return alt.layer(spans, dots).properties(width=room, height=len(names) * (4 + 6 * len(series.names)))


FIGURE = Figure("texturedness", "Texturedness", texturedness, protocol=PROTOCOL)
