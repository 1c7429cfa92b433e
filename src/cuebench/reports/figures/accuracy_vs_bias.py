"""Accuracy against bias: do better models see more by shape? With the rank correlation over models and its interval."""

from __future__ import annotations

import math
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.protocols.captions import caption
from cuebench.protocols.headline import Column, headline_column, headline_of
from cuebench.reports.figures.base import Figure
from cuebench.reports.observers import Series
from cuebench.reports.paired import p_is
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import (
    PEOPLE,
    Run,
    all_scores,
    how_to_get,
    observers_of,
    shape_protocols,
    shown_observers,
)
from cuebench.reports.scatter import scatter, span
from cuebench.reports.text import words
from cuebench.statistics.correlations import correlate
from cuebench.types import Score

ACCURACY = "imagenet_accuracy"
FEWEST = 4
"""Models that a correlation needs: three have six orders only."""


def accuracy_vs_bias(run: Run, *, accuracy: str = ACCURACY, bias: str = "", people: str = "pooled") -> Picture:
    """Draw the headline of one protocol against that of another.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with both protocols.
    accuracy : str
        Protocol of the horizontal axis.
    bias : str
        Protocol of the vertical axis; default: the first of the run in which a larger value means more shape.
    people : str
        ``pooled``: the pooled answers of people; ``each``: every person too. People are not part of the correlation.
    """
    numbers = all_scores(run)
    bias = bias or next(iter(shape_protocols(numbers)), "cue_conflict")
    across, up = (_column(run, numbers, protocol) for protocol in (accuracy, bias))
    observers = observers_of(run)
    shown = shown_observers((o for o in across.rows if o in up.rows), observers, people)
    if not shown:
        raise UserError(f"no observer has both {accuracy} and {bias}", "measure the same observers with both")
    pairs = zip(observers.records(across.rows[o] for o in shown), observers.records(up.rows[o] for o in shown))
    records = [
        {
            "observer": a["observer"],
            "name": a["name"],
            "kind": a["kind"],
            **{f"{accuracy}{end}": a[field] for end, field in _ENDS},
            **{f"{bias}{end}": b[field] for end, field in _ENDS},
        }
        for a, b in pairs
    ]
    return Picture(
        f"{_title(accuracy)} against {_title(bias).lower()}",
        lambda room: _chart(records, accuracy, bias, observers.series(shown), room),
        records,
        f"{_correlation(records, accuracy, bias)}. Whiskers: 95 %, widest interval of each number",
        f"{words(accuracy)} and {words(bias)} of {len(shown)} observers. {_correlation(records, accuracy, bias)}.",
        footnote=caption((c.rows[o] for c in (across, up) for o in shown), short=True),
    )


_ENDS = (("", "value"), ("_low", "low"), ("_high", "high"))


def _column(run: Run, numbers: list[Score], protocol: str) -> Column:
    column = headline_column(numbers, protocol)
    if column is None:
        raise UserError(f"no observer has the headline of {protocol}", how_to_get(run, protocol))
    return column


def _title(protocol: str) -> str:
    return f"{words(headline_of(protocol).metric)} ({words(protocol)})".capitalize()


def _correlation(records: list[dict[str, Any]], accuracy: str, bias: str) -> str:
    models = [r for r in records if r["kind"] == "model"]
    if len(models) < FEWEST:
        return f"No correlation: it needs {FEWEST} models, here are {len(models)}"
    c = correlate([r[accuracy] for r in models], [r[bias] for r in models])
    if math.isnan(c.value):
        return f"No correlation over {c.n} models: {c.note}"
    return f"Rank correlation over {c.n} models: {c.text}, {p_is(c.p)}".replace("-", "−")


def _chart(records: list[dict[str, Any]], accuracy: str, bias: str, series: Series, room: float) -> Any:
    points = [
        {
            "name": r["name"],
            **{f"x{end}": r[f"{accuracy}{end}"] for end, _ in _ENDS},
            **{f"y{end}": r[f"{bias}{end}"] for end, _ in _ENDS},
        }
        for r in records
    ]
    x = span(_title(accuracy).lower(), [p[f"x{end}"] for p in points for end, _ in _ENDS])
    y = span(_title(bias).lower(), [p[f"y{end}"] for p in points for end, _ in _ENDS])
    return scatter(points, series, x, y, width=room, height=min(0.75 * room, 280))


FIGURE = Figure(
    "accuracy_vs_bias",
    "Accuracy against bias",
    accuracy_vs_bias,
    protocol=ACCURACY,
    options={
        "accuracy": Option(ACCURACY, "protocol of the horizontal axis"),
        "bias": Option("", "protocol of the vertical axis; default: the first of the run that measures shape"),
        "people": PEOPLE,
    },
)
