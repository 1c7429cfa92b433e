"""Texture confidence: how sure models are of an object where only a texture is shown (figure 6 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, tooltip
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PROTOCOL, Run, observers_of, rows, shown_observers
from cuebench.reports.vega import alt


def texture_confidence(run: Run) -> Picture:
    """Draw a histogram of top-1 confidence on texture pictures for each observer of a run.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association``.
    """
    counts = rows(run, "confidence")
    observers = observers_of(run)
    shown = shown_observers((str(r["observer"]) for r in counts), observers)
    totals: Counter[str] = Counter()
    for r in counts:
        totals[r["observer"]] += r["count"]
    records = [
        {
            "observer": r["observer"],
            "name": observers.name(r["observer"]),
            "from": r["low"],
            "to": r["high"],
            "pictures": r["count"],
            "share": r["count"] / max(totals[r["observer"]], 1),
        }
        for r in counts
        if r["observer"] in shown
    ]
    return Picture(
        "Confidence on pictures of textures",
        lambda room: _chart(records, observers.series(shown), room),
        records,
        f"Share of the pictures by the probability of the top-1 class; {max(totals.values(), default=0):,} pictures "
        "that show no object; each row has its own scale",
        f"Histograms of the confidence of {len(shown)} observers on pictures of textures.",
    )


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    names = list(dict.fromkeys(r["name"] for r in records))
    bars = (
        alt.Chart(table(records))
        .mark_bar(binSpacing=0.5)
        .encode(
            x=alt.X(
                "from:Q",
                bin="binned",
                scale=alt.Scale(domain=[0, 1], nice=False),
                axis=alt.Axis(
                    title="probability of the top-1 class", format=".1f", grid=False, values=[0, 0.2, 0.4, 0.6, 0.8, 1]
                ),
            ),
            x2="to:Q",
            y=alt.Y("share:Q", axis=None),
            color=series.colour(),
            tooltip=tooltip("name", **{"from": ".2f", "to": ".2f", "share": ".1%", "pictures": ","}),
        )
        .properties(width=room, height=24 if len(names) <= 12 else 13)
    )
    header = alt.Header(labelAngle=0, labelAlign="left", labelAnchor="middle", labelBaseline="middle", title=None)
    return bars.facet(row=alt.Row("name:N", sort=names, header=header), spacing=3).resolve_scale(y="independent")


FIGURE = Figure("texture_confidence", "Confidence on pictures of textures", texture_confidence, protocol=PROTOCOL)
