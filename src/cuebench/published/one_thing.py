"""Do published headlines measure one thing: correlations over a paper's models, corrected for their errors.

Papers print no single answers, so the errors of their numbers are taken from what is known: the number of pictures of a
share, or the error that the same instrument has here for other sources, as `reports.correlate` finds it from answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cuebench.arrays import Floats
from cuebench.published.measures import PREFERENCE, Measure, measures, weights_of
from cuebench.statistics.reliability import Structure, structure

CUE_CONFLICT = 0.030
"""Error of a shape bias for other shapes and textures that is not shared by all observers: 23 recorded observers, 1,200
images (`cuebench correlate` on the run of docs/field.md)."""
REFINED_BIAS = 0.029
"""The same of a shape preference for other classes: six networks, 327 images (docs/refined_bias.md)."""
TOGETHER = 0.35
"""How much of the largest possible error a mean relative robustness has, see `_robustness`: of six networks on 1,000
photographs with 95 % intervals .023 wide, where .066 is the largest possible (docs/cue_decomposition.md)."""
PHOTOGRAPHS = 1_200
"""Photographs behind each accuracy of the cue-decomposition paper (its section on ImageNet)."""
VALIDATION = 50_000
"""Photographs behind each accuracy on ImageNet."""

Variance = Callable[[Mapping[str, Measure], str], float]
"""All measures and the weights of a model → the variance of the error of its number."""


def _constant(error: float) -> Variance:
    return lambda known, model: error**2


def _share(name: str, n: int) -> Variance:
    return lambda known, model: known[name].values[model] * (1 - known[name].values[model]) / n


def _s_cd(known: Mapping[str, Measure], model: str) -> float:
    """Return the variance of S_cd from those of its two accuracies; s/t is held fixed."""
    value = known["cue_decomposition/S_cd"].values[model]
    relative = 0.0
    for name in ("cue_decomposition/Q_S", "cue_decomposition/Q_T"):
        q = known[name].values[model]
        relative += (1 - q) / (q * PHOTOGRAPHS)
    return (value * (1 - value)) ** 2 * relative


def _robustness(known: Mapping[str, Measure], model: str) -> float:
    """Return the variance of a mean relative robustness R, for other photographs.

    If each photograph that is recognised as it is survived all corruptions or none, R would be a share of these
    photographs, R(1 − R)/(n·Q_O): no R varies more. Where it survives some of them, it varies less; by how much was
    measured (`TOGETHER`). The table prints no Q_O for this, but R_cd = (Q_S + Q_T)/(2·Q_O).
    """
    of = {name: known[f"cue_decomposition/{name}"].values[model] for name in ("robustness", "Q_S", "Q_T", "R_cd")}
    original = (of["Q_S"] + of["Q_T"]) / (2 * of["R_cd"])
    return TOGETHER**2 * of["robustness"] * (1 - of["robustness"]) / (PHOTOGRAPHS * original)


GROUPS: dict[str, dict[str, Variance]] = {
    "refined_bias": {
        "refined_bias/cue_conflict_16-way": _constant(CUE_CONFLICT),
        PREFERENCE: _constant(REFINED_BIAS),
        "refined_bias/accuracy": _share("refined_bias/accuracy", VALIDATION),
    },
    "cue_decomposition": {
        "cue_decomposition/cue_conflict": _constant(CUE_CONFLICT),
        "cue_decomposition/S_cd": _s_cd,
        "cue_decomposition/robustness": _robustness,
    },
}
"""Paper → the headlines that it prints of the same models, and the error of each."""


PARTS = {
    "refined_bias, architectures": ("refined_bias", "B"),
    "refined_bias, trainings": ("refined_bias", "C"),
}
"""Part of a paper's models → paper and table: what correlates over architectures need not over trainings."""


def published_structures(*, seed: int = 0) -> dict[str, Structure]:
    """Return what the headlines of each paper have in common, over all its models and over parts of them."""
    groups = {name: (name, None) for name in GROUPS} | {
        name: (paper, set(weights_of(paper, table).values())) for name, (paper, table) in PARTS.items()
    }
    return {name: _structure(GROUPS[paper], part, seed) for name, (paper, part) in sorted(groups.items())}


def _structure(columns: Mapping[str, Variance], part: set[str] | None, seed: int) -> Structure:
    known = measures()
    first = known[next(iter(columns))]
    models = [m for m in first.values if all(m in known[n].values for n in columns) and (part is None or m in part)]
    short = {name: name.partition("/")[2] for name in columns}
    values = {short[name]: np.array([known[name].values[m] for m in models]) for name in columns}
    errors: dict[tuple[str, str], Floats] = {
        (short[name], short[name]): np.diag([variance(known, m) for m in models]) for name, variance in columns.items()
    }
    return structure(values, errors, [first.labels[m] for m in models], seed=seed)
