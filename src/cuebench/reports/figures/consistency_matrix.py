"""Consistency matrix: error consistency of all pairs of observers, mean over conditions and data sets.

Geirhos et al. 2021, figure 10 of the appendix. Models are often more like each other than like people.
"""

from __future__ import annotations

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import kappa_matrix, table
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, observers_of, rows, shown_observers

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
        lambda room: kappa_matrix(
            table({**r, "first": names[r["first"]], "second": names[r["second"]]} for r in records),
            series.names, "value", [r["value"] for r in records], room, largest=34.0, angle=-40, stroke=0.6, font=6.2,
        ),
        records,
        f"κ of right and wrong answers to the same images, {where}; 0: no more alike than chance. People: mean over "
        "people, with each other on the diagonal",
        f"Error consistency of {len(names)} observers, each with each.",
    )  # fmt: skip


FIGURE = Figure(
    "consistency_matrix",
    "Error consistency of all pairs",
    consistency_matrix,
    protocol=PROTOCOL,
    options={"condition": Option("mean", "mean or a data set"), "people": PEOPLE},
)
