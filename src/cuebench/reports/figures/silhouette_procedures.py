"""Silhouette procedures: shape bias by triplets and by classification on the same pictures, as the background fades.

Figure 3 of Tartaglini et al. beside what its footnote 3 reports of the classification procedure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.protocols import textured_silhouettes
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import curves, panels, share_axis, ticks, whiskers
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, all_scores, observers_of, scores, shown_observers

_CLASSIFIED, _TRIPLETS = "Classification", "Triplets"
_ALPHAS = textured_silhouettes.CONDITIONS


def silhouette_procedures(run: Run, *, people: str = "pooled") -> Picture:
    """Draw the shape bias by both procedures; the panel of triplets is left out where the run has none.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``textured_silhouettes``, and ``triplets`` with experiment 1.
    people : str
        ``pooled`` or ``each``.
    """
    numbers = scores(run, textured_silhouettes.NAME, "shape_bias")
    nearest = [
        s
        for s in all_scores(run)
        if s.protocol == "triplets" and s.metric == "triplet_shape_bias" and s.ci_kind in ("two_way", "")
    ]
    observers = observers_of(run)
    shown = shown_observers((s.observer for s in numbers), observers, people)
    records = []
    for panel, some, prefix in ((_CLASSIFIED, numbers, ""), (_TRIPLETS, nearest, "experiment1/")):
        for record in observers.records(s for s in some if s.observer in shown):
            alpha = record["condition"].removeprefix(prefix)
            if alpha in _ALPHAS and record["condition"] == prefix + alpha:
                records.append({**record, "panel": panel, "position": _ALPHAS.index(alpha)})
    series = observers.series(shown)
    return Picture(
        "Textured silhouettes by two procedures",
        lambda room: _chart(records, series, room),
        records,
        f"The same pictures; alpha: background taken away{whiskers(series, 'new shapes and textures')}; dotted: "
        "chance of triplets",
        f"Shape bias of {len(shown)} observers by classification and by triplets over six backgrounds.",
    )


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    present = [p for p in (_CLASSIFIED, _TRIPLETS) if any(r["panel"] == p for r in records)]
    columns = min(2 if room > 300 else 1, len(present))
    wide = room / columns - (26 if columns > 1 else 0)
    charts = [
        curves(
            [r for r in records if r["panel"] == panel],
            series,
            width=wide,
            height=min(0.75 * wide, 140),
            x=ticks([alpha.removeprefix("alpha=") for alpha in _ALPHAS], "alpha"),
            y=share_axis("shape bias"),
            legend=series.legend(room),
            chance=0.5 if panel == _TRIPLETS else None,
            title=panel,
        )
        for panel in present
    ]
    return panels(charts, columns)


FIGURE = Figure(
    "silhouette_procedures",
    "Shape bias of textured silhouettes, by two procedures",
    silhouette_procedures,
    protocol=textured_silhouettes.NAME,
    options={"people": PEOPLE},
)
