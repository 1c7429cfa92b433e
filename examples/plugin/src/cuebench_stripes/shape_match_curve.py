"""Shape match against the contrast of the stripes, one curve for each observer."""

from __future__ import annotations

from typing import Any

from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import curves, share_axis, whiskers
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, observers_of, scores, shown_observers
from cuebench.reports.vega import alt


def shape_match_curve(run: Run) -> Picture:
    """Draw how the shape match changes with the contrast of the stripes.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``striped_objects``.
    """
    numbers = scores(run, "striped_objects", "shape_match")
    observers = observers_of(run)
    shown = shown_observers((s.observer for s in numbers), observers)
    records = [
        {**record, "contrast": float(record["condition"].removeprefix("contrast="))}
        for record in observers.records(s for s in numbers if s.observer in shown)
    ]
    series = observers.series(shown)

    def chart(room: float) -> Any:
        return curves(
            [{**record, "position": record["contrast"]} for record in records],
            series,
            width=room,
            height=0.5 * room,
            x=alt.Axis(title="contrast of the stripes", grid=False),
            y=share_axis("shape match"),
            legend=series.legend(room),
            chance=0.5,
        )

    return Picture(
        "Shape match behind stripes",
        chart,
        records,
        f"Share of comparisons won by the same shape{whiskers(series, 'widest interval')}; dotted: chance",
    )


FIGURE = Figure(
    name="shape_match_curve",
    title="Shape match behind stripes",
    draw=shape_match_curve,
    protocol="striped_objects",
)
