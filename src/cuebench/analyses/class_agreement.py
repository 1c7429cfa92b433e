"""Do the outcomes of cue conflict follow the recognition of pure shape, class by class? (Kim et al. 2026, Fig. 3b)

If "answered by shape" in cue conflict meant that shape is recognised, classes whose silhouettes and edges are
recognised would be answered by shape more often, and "answered by texture" would not depend on them. Kendall's τ over
classes says whether that is so, for every model and for the mean of all models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cuebench.analyses.class_wise import OUTCOMES, PURE, Panel
from cuebench.errors import UserError
from cuebench.options import SEED, parse
from cuebench.statistics.correlations import Correlation, correlate
from cuebench.statistics.intervals import weights

LEAST = 4
"""Classes below which no τ is computed."""
ALL_MODELS = "mean accuracy of all models"


class Agreement(NamedTuple):
    """Kendall's τ_b over classes between an outcome of cue conflict and the recognition of a pure cue."""

    observer: str
    outcome: str
    pure: str
    tau: Correlation


class MeanTau(NamedTuple):
    """The mean of the models' own τ, with an interval over models."""

    outcome: str
    pure: str
    value: float
    low: float
    high: float
    n: int


def class_agreement(panel: Panel) -> list[Agreement]:
    """Return Kendall's τ of every outcome with every pure cue, for each observer and for the models' mean accuracies.

    Parameters
    ----------
    panel : Panel
        Class-wise accuracies, from `class_wise.read_panel`.
    """
    observers = [o for o in panel.kinds if panel.kinds[o] != "ideal"]
    tables = {o: {s: panel.of(o, s) for s in (*OUTCOMES, *PURE)} for o in observers}
    models = [o for o in panel.models if any(tables[o][s] for s in OUTCOMES) and any(tables[o][s] for s in PURE)]
    if len(models) > 1:
        tables[ALL_MODELS] = {s: _mean_table([tables[o][s] for o in models]) for s in (*OUTCOMES, *PURE)}
    results = [
        Agreement(observer, outcome, pure, tau)
        for observer, table in tables.items()
        for outcome in OUTCOMES
        for pure in PURE
        if (tau := _tau(table[outcome], table[pure])) is not None
    ]
    if not results:
        raise UserError(
            f"no observer has both outcomes of cue conflict and a pure cue for {LEAST} classes",
            "run both protocols for the same models: cuebench run -p cue_conflict -p pure_shape …",
        )
    return results


def mean_taus(
    agreements: Sequence[Agreement], models: Sequence[str], *, seed: int = 0, resamples: int = 10_000
) -> list[MeanTau]:
    """Return the mean of the models' own τ for every pair, with an interval over models; at least three models.

    Parameters
    ----------
    agreements : sequence of Agreement
        From `class_agreement`.
    models : sequence of str
        Whose τ are averaged.
    seed, resamples : int
        Of the bootstrap over models.
    """
    seed = parse({"seed": SEED}, {"seed": seed}, "an agreement")["seed"]
    means = []
    for outcome, pure in dict.fromkeys((a.outcome, a.pure) for a in agreements):
        taus = {a.observer: a.tau.value for a in agreements if (a.outcome, a.pure) == (outcome, pure)}
        values = np.array([taus[m] for m in models if m in taus])
        values = values[np.isfinite(values)]
        if len(values) >= 3:
            draws = weights("models", len(values), seed, resamples).astype(np.float64) @ values / len(values)
            low, high = np.quantile(draws, [0.025, 0.975])
            means.append(MeanTau(outcome, pure, float(values.mean()), float(low), float(high), len(values)))
    return means


def _tau(x: Mapping[str, float], y: Mapping[str, float]) -> Correlation | None:
    shared = sorted(c for c in set(x) & set(y) if np.isfinite(x[c]) and np.isfinite(y[c]))
    if len(shared) < LEAST:
        return None
    tau = correlate([x[c] for c in shared], [y[c] for c in shared], "kendall")
    # What is correlated here are classes, and the note of `correlate` speaks of models.
    return tau._replace(note=tau.note.replace("models", "classes"))


def _mean_table(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return class → mean over the observers that have a value; classes that somebody lacks are left out."""
    with_values = [t for t in tables if t]
    shared = set.intersection(*(set(t) for t in with_values)) if with_values else set()
    # Equal means must be ties whatever the order of the observers.
    return {c: round(float(np.mean([t[c] for t in with_values])), 12) for c in sorted(shared)}
