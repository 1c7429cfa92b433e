"""Distorted predictions: answers that are right only because all classes but those of the stimuli were removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.analyses.recognition import distortions
from cuebench.errors import UserError
from cuebench.protocols.headline import measured, one_row_each
from cuebench.reports import theme
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, heading, panels, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, all_scores, headline_note, how_to_get, observers_of, shown_observers
from cuebench.reports.vega import alt

_ALL, _ADDED = "right among all classes", "right among the set's classes only"


def distorted_predictions(run: Run) -> Picture:
    """Draw how many answers are right among all classes, and how many a restricted label space adds (Fig. I).

    Parameters
    ----------
    run : path or sequence of paths
        Run folders of ``cue_conflict`` or ``refined_bias`` with models.
    """
    observers = observers_of(run)
    counts = distortions(one_row_each(measured(all_scores(run))))
    shown = shown_observers((d.observer for d in counts), observers)
    if not shown:
        raise UserError("no observer has decided in both label spaces", how_to_get(run, "cue_conflict"))
    protocols = dict.fromkeys(d.protocol for d in counts)
    records: list[dict[str, Any]] = [
        {
            "observer": d.observer,
            "name": observers.name(d.observer),
            "set": f"{d.protocol.replace('_', ' ')}: {d.cue}",
            "cue": d.cue,
            "answer": answer,
            "images": number,
        }
        for d in counts
        if d.observer in shown
        for answer, number in ((_ALL, d.full), (_ADDED, d.distorted))
    ]
    sets = list(dict.fromkeys(r["set"] for r in records))
    return Picture(
        "Distorted predictions",
        lambda room: _chart(records, sets, [observers.name(o) for o in shown], room),
        records,
        "Images answered with the class of the cue; pale: only after all other classes were removed",
        f"Right answers among all classes and among the set's classes of {len(shown)} observers.",
        footnote=headline_note(run, protocols, shown),
    )


def _chart(records: Sequence[dict[str, Any]], sets: Sequence[str], names: Sequence[str], room: float) -> Any:
    columns = min(2, columns_for(room, len(sets)))
    charts = []
    totals: dict[tuple[str, str], int] = {}
    for r in records:
        totals[r["set"], r["name"]] = totals.get((r["set"], r["name"]), 0) + r["images"]
    for name in sets:
        # Both cues of a protocol have the same axis.
        most = max(n for (s, _), n in totals.items() if s.partition(":")[0] == name.partition(":")[0])
        rows = [r for r in records if r["set"] == name]
        colour = theme.TEXTURE if rows[0]["cue"] == "texture" else theme.SHAPE
        opacity = alt.Scale(domain=[_ALL, _ADDED], range=[0.95, 0.35])
        chart = (
            alt.Chart(table(rows))
            .mark_bar(color=colour)
            .encode(
                y=alt.Y("name:N", sort=list(names), title=None, axis=alt.Axis(labelOverlap=False)),
                x=alt.X(
                    "images:Q",
                    title="images",
                    scale=alt.Scale(domain=[0, max(most, 1)]),
                    axis=alt.Axis(tickCount=4, format=",d"),
                ),
                opacity=alt.Opacity("answer:N", scale=opacity, legend=None),
                order=alt.Order("answer:N", sort="ascending"),
                tooltip=tooltip("name", "answer", images=","),
            )
        )
        charts.append(
            chart.properties(width=room / columns - 8, height=12 * len(names), title=heading(name, room / columns - 8))
        )
    return panels(charts, columns)


FIGURE = Figure(
    "distorted_predictions",
    "Distorted predictions",
    distorted_predictions,
    protocol="cue_conflict",
)
