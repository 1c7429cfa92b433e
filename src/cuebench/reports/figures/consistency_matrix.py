"""Consistency matrix: error consistency of all pairs of observers, mean over conditions and data sets.

Geirhos et al. 2021, figure 10 of the appendix. Models are often more like each other than like people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, observers_of, rows, shown_observers
from cuebench.reports.theme import HEAT, INK, PAPER
from cuebench.reports.vega import alt

PROTOCOL = "human_alignment"


def consistency_matrix(run: Run, *, condition: str = "mean", people: str = "pooled") -> Picture:
    """Draw a square for each pair of observers; people with each other lie on the diagonal.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``human_alignment``.
    condition : str
        ``mean`` or a data set.
    people : str
        ``pooled``: the mean over people; ``each``: every person too.
    """
    pairs = [r for r in rows(run, "error_consistency", PROTOCOL) if r["condition"] == condition]
    if not pairs:
        raise UserError(f"no pair of observers shares trials of {condition!r}", "choose mean or a data set of the run")
    observers = observers_of(run)
    series = observers.series(shown_observers((r["observer"] for r in pairs), observers, people))
    names = {o: look.name for o, look in observers.looks().items() if look.name in series.names}
    records = [
        {"first": r["observer"], "second": r["other"], "condition": condition, "value": r["value"], "n": r["n"]}
        for r in pairs
        if r["observer"] in names and r["other"] in names
    ]
    where = "mean over conditions and data sets" if condition == "mean" else condition
    return Picture(
        "Error consistency of all pairs",
        lambda room: _chart([{**r, "first": names[r["first"]], "second": names[r["second"]]} for r in records],
                            series.names, room),
        records,
        f"κ of right and wrong answers to the same images, {where}; 0: no more alike than chance. People: mean over "
        "people, with each other on the diagonal",
        f"Error consistency of {len(names)} observers, each with each.",
    )  # fmt: skip


def _chart(records: Sequence[dict[str, Any]], order: Sequence[str], room: float) -> Any:
    cell = min(room / len(order), 34.0)
    crowded = cell < 7
    plain = {"title": None, "ticks": False, "domain": False, "labelOverlap": crowded, "grid": False}
    base = alt.Chart(table(records)).encode(
        x=alt.X("second:N", sort=list(order), axis=alt.Axis(orient="top", labelAngle=-40, **plain)),
        y=alt.Y("first:N", sort=list(order), axis=alt.Axis(**plain)),
    )
    top = max(0.2, *(r["value"] for r in records))
    squares = base.mark_rect(stroke=PAPER, strokeWidth=0.6).encode(
        color=alt.Color(
            "value:Q",
            scale=alt.Scale(domain=[0, round(top, 2)], range=list(HEAT), clamp=True),
            legend=alt.Legend(title="κ", format=".2f", tickCount=4),
        ),
        tooltip=tooltip("first", "second", value=".3f", n=","),
    )
    layers = [squares]
    if cell >= 14:
        paint = alt.condition(f"datum.value > {top / 2:.4f}", alt.value(PAPER), alt.value(INK))
        layers.append(base.mark_text(fontSize=6.2).encode(text=alt.Text("value:Q", format=".2f"), color=paint))
    side = cell * len(order)
    return alt.layer(*layers).properties(width=side, height=side)


FIGURE = Figure(
    "consistency_matrix",
    "Error consistency of all pairs",
    consistency_matrix,
    protocol=PROTOCOL,
    options={"condition": Option("mean", "mean or a data set"), "people": PEOPLE},
)
