"""Triplet curves: shape bias against background, size and place, models and their random initialisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, curves, panels, share_axis, ticks, whiskers
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, observers_of, scores, shown_observers

_RANDOM = "/random_initialisation"
_WHISKERS = {
    "widest": "widest interval",
    "images": "over images (anchors)",
    "shape_sources": "over shapes",
    "texture_sources": "over textures",
    "two_way": "over shapes and textures",
}


class Panel(NamedTuple):
    """One plot of the paper: its title, the form of its conditions, their values, and what they are."""

    title: str
    condition: str
    values: tuple[float, ...]
    label: str


_SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)
PANELS = (
    Panel("Exp. 1: textured silhouettes", "experiment1/alpha={}", (0.0, *_SIZES), "background taken away (alpha)"),
    Panel("Exp. 2: silhouettes, aligned", "experiment2/size={}/aligned", _SIZES, "size"),
    Panel("Exp. 2: silhouettes, unaligned", "experiment2/size={}/unaligned", _SIZES, "size"),
    Panel("Exp. 3: novel objects, aligned", "experiment3/size={}/aligned", _SIZES, "size"),
    Panel("Exp. 3: novel objects, unaligned", "experiment3/size={}/unaligned", _SIZES, "size"),
)
"""The five plots of the paper's figures 3 and 4."""


def triplet_curves(run: Run, *, kind: str = "widest") -> Picture:
    """Draw shape bias over the conditions of the three experiments, with dashed lines for random initialisations.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``triplets``.
    kind : str
        Interval of the whiskers: ``widest``, ``images`` (anchors), ``shape_sources``, ``texture_sources`` or
        ``two_way`` (new shapes and new textures).
    """
    numbers = scores(run, "triplets", "triplet_shape_bias", kind=kind)
    observers = observers_of(run)
    shown = shown_observers((s.observer for s in numbers), observers)
    places = {
        panel.condition.format(f"{value:.1f}"): (panel, place)
        for panel in PANELS
        for place, value in enumerate(panel.values)
    }
    records = []
    for record in observers.records(s for s in numbers if s.observer in shown):
        condition = record["condition"].removesuffix(_RANDOM)
        if condition in places:
            panel, place = places[condition]
            untrained = record["condition"].endswith(_RANDOM)
            records.append({**record, "panel": panel.title, "position": place, "untrained": untrained})
    series = observers.series(shown)
    dashed = ". Dashed: mean of its random initialisations" if any(r["untrained"] for r in records) else ""
    return Picture(
        "Triplet shape bias",
        lambda room: _chart(records, series, room),
        records,
        "Share of triplets in which the same shape is more similar than the same texture"
        f"{whiskers(series, _WHISKERS[kind])}; dotted: chance{dashed}",
        f"Shape bias of {len(shown)} observers over the conditions of the triplet experiments.",
    )


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    present = [panel for panel in PANELS if any(r["panel"] == panel.title for r in records)]
    columns = columns_for(room, len(present))
    wide = (room - 30 * (columns - 1)) / columns
    charts = [
        curves(
            [r for r in records if r["panel"] == panel.title],
            series,
            width=wide,
            height=0.72 * wide,
            x=ticks([f"{v:.1f}" if "alpha" in panel.condition else f"{v:.0%}" for v in panel.values], panel.label),
            y=share_axis("shape bias" if k % columns == 0 else None),
            legend=series.legend(room),
            chance=0.5,
            title=panel.title,
            dashed="untrained",
        )
        for k, panel in enumerate(present)
    ]
    return panels(charts, columns)


FIGURE = Figure(
    "triplet_curves",
    "Triplet shape bias",
    triplet_curves,
    protocol="triplets",
    options={"kind": Option("widest", "interval of the whiskers", choices=tuple(_WHISKERS))},
)
