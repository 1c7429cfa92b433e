"""Accuracy against error consistency with people, and how much consistency the accuracies allow.

Geirhos et al. 2021, figure 1. κ of two observers of different accuracy cannot reach 1: a line leads from every observer
to the largest value that its accuracy allows.
"""

from __future__ import annotations

import math
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.protocols.captions import caption
from cuebench.reports.figures.base import Figure
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, observers_of, scores, shown_observers
from cuebench.reports.scatter import dots, line, scatter, span

PROTOCOL = "human_alignment"
_METRICS = {"x": "accuracy", "y": "error_consistency", "bound": "error_consistency_bound"}


def accuracy_vs_consistency(run: Run, *, condition: str = "mean", people: str = "pooled") -> Picture:
    """Draw one mark for each observer, and the bound of its error consistency above it.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``human_alignment``.
    condition : str
        ``mean``, a data set, or a data set and a condition: ``contrast/c10``.
    people : str
        ``pooled``: people with each other; ``each``: every person with the others too.
    """
    hint = "compare with people: put their answers into DATA_ROOT/model_vs_human/raw-data, or -o recorded:FOLDER"
    numbers = [
        s for s in scores(run, PROTOCOL, "error_consistency", hint=hint) + scores(run, PROTOCOL, *_METRICS.values())
        if s.condition == condition and not math.isnan(s.value)
    ]  # fmt: skip
    by_observer: dict[str, dict[str, Any]] = {}
    for s in numbers:
        by_observer.setdefault(s.observer, {})[s.metric] = s
    complete = [o for o, of in by_observer.items() if set(of) == set(_METRICS.values())]
    if not complete:
        raise UserError(f"no observer has an error consistency in {condition!r}", "conditions: mean, a data set, …")
    observers = observers_of(run)
    shown = shown_observers(complete, observers, people)
    records = []
    for observer in shown:
        (base,) = observers.records([by_observer[observer]["error_consistency"]])
        record = {key: base[key] for key in ("observer", "name", "kind", "condition", "n")}
        for axis, metric in _METRICS.items():
            score = by_observer[observer][metric]
            record |= {axis: score.value, f"{axis}_low": score.ci_low, f"{axis}_high": score.ci_high}
        records.append(record)
    best = max((r for r in records if r["kind"] == "model"), key=lambda r: r["y"], default=None)
    where = "mean over conditions, people and data sets" if condition == "mean" else condition
    return Picture(
        "Accuracy against error consistency with people",
        lambda room: _chart(records, observers.series(shown), room),
        records,
        f"{where.capitalize()}. Small grey mark: the largest κ that the accuracies of an observer and of people allow. "
        "Whiskers: 95 %, widest interval of each number",
        f"Accuracy and error consistency of {len(shown)} observers."
        + (f" Most consistent model: {best['name']}, {best['y']:.2f}." if best else ""),
        footnote=caption((s for o in shown for s in by_observer[o].values()), short=True),
    )


def _chart(records: list[dict[str, Any]], series: Series, room: float) -> Any:
    x = span("accuracy", [r[k] for r in records for k in ("x", "x_low", "x_high")])
    y = span("error consistency (κ)", [0.0, *(r[k] for r in records for k in ("y", "y_low", "y_high", "bound"))])
    bounds = [{"name": r["name"], "x": r["x"], "y": r["bound"]} for r in records]
    ways = [line([(r["x"], r["y"]), (r["x"], r["bound"])], x, y) for r in records]
    below = [*ways, dots(bounds, x, y, "name")]
    return scatter(records, series, x, y, width=room, height=min(0.75 * room, 300), below=below)


FIGURE = Figure(
    "accuracy_vs_consistency",
    "Accuracy against error consistency",
    accuracy_vs_consistency,
    protocol=PROTOCOL,
    options={
        "condition": Option("mean", "mean, a data set, or a data set and a condition: contrast/c10"),
        "people": PEOPLE,
    },
)
