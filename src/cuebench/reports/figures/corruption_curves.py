"""Corruption curves: accuracy, or mIoU, of every observer at every level of every corruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, curves, panels, share_axis, ticks, whiskers
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, observers_of, scores, shown_observers
from cuebench.types import Score

PROTOCOL = "corruption_robustness"
_LABELS = {
    "contrast": "contrast that is left",
    "high_pass": "SD of the filter (pixels)",
    "low_pass": "SD of the filter (pixels)",
    "uniform_noise": "width of the noise",
    "phase_noise": "width of the shifts (degrees)",
    "phase_noise_corrected": "width of the shifts (degrees)",
}


def corruption_curves(run: Run, *, people: str = "pooled") -> Picture:
    """Draw the quality at every level, mildest first, one panel for each corruption.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``corruption_robustness``.
    people : str
        ``pooled``: the pooled answers of people; ``each``: every person too.
    """
    numbers = scores(run, PROTOCOL, "accuracy", "mean_iou")
    observers = observers_of(run)
    shown = shown_observers((s.observer for s in numbers), observers, people)
    levels: dict[str, list[str]] = {}
    for condition in dict.fromkeys(s.condition for s in numbers if "/" in s.condition):
        levels.setdefault(condition.partition("/")[0], []).append(condition)
    places = {
        condition: (kind, place)
        for kind, conditions in levels.items()
        for place, condition in enumerate(_mildest_first(conditions, numbers))
    }
    records = [
        {**record, "corruption": places[record["condition"]][0], "position": places[record["condition"]][1]}
        for record in observers.records(s for s in numbers if s.observer in shown and s.condition in places)
    ]
    quality = "Accuracy" if numbers[0].metric == "accuracy" else "mIoU"
    series = observers.series(shown)
    images = max((s.n for s in numbers), default=0)
    return Picture(
        "Robustness to corruptions",
        lambda room: _chart(records, places, series, quality, room),
        records,
        f"{quality} by level, mildest first; {images:,} images at each level{whiskers(series, 'over images')}",
        f"{quality} of {len(shown)} observers under {len(levels)} kinds of corruption, falling with the level.",
    )


def _chart(
    records: Sequence[dict[str, Any]],
    places: Mapping[str, tuple[str, int]],
    series: Series,
    quality: str,
    room: float,
) -> Any:
    kinds = list(dict.fromkeys(kind for kind, _ in places.values()))
    columns = columns_for(room, len(kinds))
    wide = (room - 30 * (columns - 1)) / columns
    charts = []
    for k, kind in enumerate(kinds):
        ordered = sorted((place, condition) for condition, (of, place) in places.items() if of == kind)
        names = [condition.partition("=")[2].replace("inf", "none") for _, condition in ordered]
        charts.append(
            curves(
                [r for r in records if r["corruption"] == kind],
                series,
                width=wide,
                height=0.62 * wide,
                x=ticks(names, _LABELS.get(kind, "level")),
                y=share_axis(quality.lower() if quality == "Accuracy" else quality)
                if k % columns == 0
                else share_axis(None),
                legend=series.legend(room),
                title=kind.replace("_", " ").replace(" corrected", ", corrected"),
            )
        )
    return panels(charts, columns)


def _mildest_first(conditions: Sequence[str], numbers: Sequence[Score]) -> list[str]:
    """Sort by level, with the end first at which images are recognised better (contrast falls, noise grows)."""
    ordered = sorted(conditions, key=lambda c: float(c.partition("=")[2]))

    def total(condition: str) -> float:
        return sum(s.value for s in numbers if s.condition == condition)

    return ordered[::-1] if total(ordered[-1]) > total(ordered[0]) else ordered


FIGURE = Figure(
    "corruption_curves", "Robustness to corruptions", corruption_curves, protocol=PROTOCOL, options={"people": PEOPLE}
)
