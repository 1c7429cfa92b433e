"""Layer profile: triplet shape bias of every layer of a model, from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import curves, share_axis, ticks
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, Run, choose_observer, observers_of, scores

CONDITIONS = (
    "experiment1/alpha=0.0",
    "experiment1/alpha=1.0",
    "experiment2/size=0.4/unaligned",
    "experiment3/size=0.4/aligned",
    "experiment3/size=0.4/unaligned",
    "experiment3/size=1.0/aligned",
)


def layer_profile(run: Run, *, observer: str = "", conditions: Sequence[str] = CONDITIONS) -> Picture:
    """Draw where in the network shape wins.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``triplets`` and ``--set triplets.layers=all`` (or a list of layers).
    observer : str
        Whole name or a part of it; default: the first of the run.
    conditions : sequence of str
        One curve each; those that the run does not have are left out.
    """
    of_layers = [s for s in scores(run, "triplets", "triplet_shape_bias") if "/layer=" in s.condition]
    if not of_layers:
        raise UserError(
            f"{run} has no layers",
            "measure them in another folder: cuebench run -p triplets --set triplets.layers=all … --out NEW_FOLDER",
        )
    chosen = choose_observer((s.observer for s in of_layers), observer)
    observers = observers_of(run)
    numbers = [s for s in of_layers if s.observer == chosen]
    layers = list(dict.fromkeys(s.condition.partition("/layer=")[2] for s in numbers))
    records = []
    for record in observers.records(numbers):
        condition, _, layer = record["condition"].partition("/layer=")
        if condition in conditions:
            place = {"layer": layer, "position": layers.index(layer)}
            records.append({**record, "model": record["name"], "name": condition, **place})
    if not records:
        raise UserError(
            f"{run} has none of the conditions {', '.join(conditions)}", "--set conditions=… chooses others"
        )
    series = Series.of(c for c in conditions if any(r["name"] == c for r in records))
    return Picture(
        f"Shape bias by layer: {observers.name(chosen)}",
        lambda room: _chart(records, layers, series, room),
        records,
        "Triplets; each layer is averaged over positions; whiskers: 95 %, over anchors; dotted: chance",
        f"Triplet shape bias of {len(layers)} layers of {observers.name(chosen)}, first to last.",
    )


def _chart(records: Sequence[dict[str, Any]], layers: Sequence[str], series: Series, room: float) -> Any:
    return curves(
        records,
        series,
        width=room,
        height=min(0.5 * room, 170),
        x=ticks(layers, slanted_in=room, labelLimit=80),
        y=share_axis("shape bias"),
        legend=series.legend(room),
        chance=0.5,
    )


FIGURE = Figure(
    "layer_profile",
    "Shape bias by layer",
    layer_profile,
    protocol="triplets",
    options={
        "observer": OBSERVER,
        "conditions": Option(CONDITIONS, "one curve each; those that the run does not have are left out"),
    },
)
