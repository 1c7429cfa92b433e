"""TAV by layer: in which layer textures begin to stand for classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, ticks, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, choose_observer, observers_of, scores
from cuebench.reports.theme import TEXTURE
from cuebench.reports.vega import alt

_LAST = ("penultimate", "output")


def tav_layers(run: Run, *, observer: str = "") -> Picture:
    """Draw the mean of the strongest association of each texture, layer by layer.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association`` and ``--set texture_association.layers=all`` (or a list of layers).
    observer : str
        Whole name or a part of it; default: the first of the run.
    """
    numbers = [s for s in scores(run, PROTOCOL, "texture_association") if s.condition.startswith("layer=")]
    numbers = [s for s in numbers if math.isfinite(s.value)]
    if not numbers:
        raise UserError(
            f"{run} has no layers",
            "measure them: cuebench run -p texture_association --set texture_association.layers=all …",
        )
    chosen = choose_observer((s.observer for s in numbers), observer)
    observers = observers_of(run)
    mine = [s for s in numbers if s.observer == chosen]
    names = [s.condition.removeprefix("layer=") for s in mine]
    order = [n for n in names if n not in _LAST] + [n for n in _LAST if n in names]
    records = [
        {
            **r,
            "layer": r["condition"].removeprefix("layer="),
            "position": order.index(r["condition"].removeprefix("layer=")),
        }
        for r in observers.records(mine)
    ]
    return Picture(
        f"Texture association by layer: {observers.name(chosen)}",
        lambda room: _chart(sorted(records, key=lambda r: r["position"]), order, room),
        records,
        "Mean over textures of the strongest TAV of each; classes are read from a layer by the nearest mean of clean "
        "photographs; whiskers: 95 %, over pictures, corrected for their small number (so they may lie below)",
        f"Mean strongest association of {len(order)} layers of {observers.name(chosen)}, first to last.",
    )


def _chart(records: Sequence[dict[str, Any]], layers: Sequence[str], room: float) -> Any:
    axis = alt.Axis(title="mean strongest TAV", format=".2f", grid=True)
    low, high = -0.4, len(layers) - 0.6
    base = alt.Chart(table(records)).encode(
        x=alt.X(
            "position:Q",
            axis=ticks(layers, labelAngle=-60, labelLimit=90),
            scale=alt.Scale(domain=[low, high], nice=False, zero=False),
        )
    )
    spans = base.mark_rule(color=TEXTURE, opacity=0.6).encode(y=alt.Y("low:Q", axis=axis), y2="high:Q")
    line = base.mark_line(color=TEXTURE, strokeWidth=1).encode(y=alt.Y("value:Q", axis=axis))
    dots = base.mark_point(color=TEXTURE, filled=True).encode(
        y=alt.Y("value:Q", axis=axis), tooltip=tooltip("layer", value=".3f", low=".3f", high=".3f", n=",")
    )
    return alt.layer(spans, line, dots).properties(width=room, height=min(0.5 * room, 160))


FIGURE = Figure(
    "tav_layers", "Texture association by layer", tav_layers, protocol=PROTOCOL, options={"observer": OBSERVER}
)
