"""Agreement matrix: error consistency of every pair of observers, beyond what their accuracies explain.

Geirhos, Meding & Wichmann 2020: Cohen's κ of two observers' right and wrong answers to the same images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.metrics.error_consistency import error_consistency
from cuebench.options import Option
from cuebench.protocols.headline import headline_column
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import kappa_matrix, table
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, all_scores, folders, observers_of
from cuebench.runs.trials import Trials


def agreement_matrix(run: Run, *, protocol: str = "cue_conflict", aligned: bool = False) -> Picture:
    """Draw the error consistency of all pairs.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with the protocol and its answers.
    protocol : str
        One whose answers are right or wrong.
    aligned : bool
        Count images whose shape and texture are of the same class, too.
    """
    observers = observers_of(run)
    correct = _correct(run, protocol, aligned=aligned)
    shown = [o for o in observers.kinds if o in correct and observers.kinds[o] not in ("people", "random")]
    if len(shown) < 2:
        raise UserError(f"{run} has no two observers with right and wrong answers of {protocol}", "add observers")
    shown.sort(key=lambda o: observers.kinds[o] != "person")
    records: list[dict[str, Any]] = []
    for a, b in combinations(shown, 2):
        both = sorted(correct[a].keys() & correct[b].keys())
        if both:
            value = error_consistency([correct[a][i] for i in both], [correct[b][i] for i in both])
            records.append({"first": a, "second": b, "error_consistency": value, "n": len(both)})
    if not records:
        raise UserError("no two observers answered the same images", "measure them with the same stimuli")
    names = {o: observers.name(o) for o in shown}
    images = max(r["n"] for r in records)
    return Picture(
        "Who makes the same mistakes?",
        lambda room: _chart(records, names, room),
        records,
        f"Error consistency (Cohen's κ) of each pair on the same images, up to {images:,}; 0: no more than two "
        "independent observers of these accuracies, 1: the same answers right and wrong",
        f"Error consistency of {len(shown)} observers, "
        f"{np.nanmin([r['error_consistency'] for r in records]):.2f} to "
        f"{np.nanmax([r['error_consistency'] for r in records]):.2f}.",
    )


def _correct(run: Run, protocol: str, *, aligned: bool) -> dict[str, dict[str, bool]]:
    """Return observer → image → whether its answer was right, in the condition of the headline."""
    column = headline_column(all_scores(run), protocol)
    correct: dict[str, dict[str, bool]] = {}
    for folder in folders(run):
        if not (folder / "run.json").is_file():
            raise UserError(f"{folder} holds scores without answers", "name the folder that the run was made in")
        for part in Trials(folder, (protocol,)).parts():
            for row in part.select(["observer", "condition", "stimulus", "shape", "texture", "correct"]).to_pylist():
                at_headline = column is None or row["condition"] == column.condition or "-way" not in row["condition"]
                counts = aligned or not row["shape"] or row["shape"] != row["texture"]
                if at_headline and counts and row["correct"] is not None:
                    key = f"{row['stimulus']}|{row['condition']}"
                    correct.setdefault(row["observer"], {})[key] = row["correct"]
    return correct


def _chart(records: Sequence[dict[str, Any]], names: Mapping[str, str], room: float) -> Any:
    order = list(names.values())
    pairs = [(r, a, b) for r in records for a, b in ((r["first"], r["second"]), (r["second"], r["first"]))]
    data = table(
        {"first": names[a], "second": names[b], "kappa": r["error_consistency"], "n": r["n"]} for r, a, b in pairs
    )
    values = [r["error_consistency"] for r in records if r["error_consistency"] == r["error_consistency"]]
    return kappa_matrix(data, order, "kappa", values, room)


FIGURE = Figure(
    "agreement_matrix",
    "Error consistency of all pairs",
    agreement_matrix,
    protocol="cue_conflict",
    options={
        "protocol": Option("cue_conflict", "one whose answers are right or wrong"),
        "aligned": Option(False, "count images whose shape and texture are of the same class, too"),
    },
)
