"""REFINED-BIAS tables 2 and A: one-sample t-tests of a family's shape preferences against the baseline's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cuebench.arrays import Floats
from cuebench.published.findings import Finding, jitter, judge
from cuebench.published.tables import Entry, column
from cuebench.statistics.significance import one_sample_t

BASELINE = "Vanila ResNet-50"
A3_IN_TABLE_D = 0.7364


def preference_tests() -> list[Finding]:
    """Recompute every p-value whose preferences are printed, and the direction that the shading claims."""
    findings = []
    for table in ("2", "A"):
        for data in ("cue_conflict", "refined_bias"):
            for family, entry in column("refined_bias", table, data, "p").items():
                findings += _family(entry, data, family)
    return findings


def _family(entry: Entry, data: str, family: str) -> list[Finding]:
    preferences, base = _preferences(data)
    rows = [model for model in preferences if _group(model) == family]
    note = ""
    values = {m: preferences[m][0] for m in rows}
    if data == "refined_bias" and family == "Mixed Aug":
        as_printed = one_sample_t(list(values.values()), base[0]).p
        values["A3"] = _with_a3()
        note = f"with table D's 0.7364 for A3; table C's 0.7737 gives {as_printed:.4f}"
    test = one_sample_t(list(values.values()), base[0])
    draws = np.column_stack([preferences[m][1:] for m in rows])
    if "A3" in values:
        draws[:, rows.index("A3")] += values["A3"] - preferences["A3"][0] if note else 0
    reach = _range(draws, base[1:])
    p = judge(entry, test.p, reach, quantity=f"{family}: p of {data}", note=note)
    claimed = entry.note.removeprefix("shading: ").partition(";")[0]
    actual = "neither" if test.p > 0.05 else "shape" if test.estimate > 0 else "texture"
    agrees = claimed == actual
    name = f"{family}: direction of {data} (shading)"
    return [p, Finding(entry.paper, entry.table, name, claimed, actual, agrees, "", "stated", agrees)]


def _range(draws: Floats, base: Floats) -> tuple[float, float]:
    """Return the smallest and largest p over tables that would print the same digits."""
    from scipy.stats import t

    difference = draws - base[:, None]
    n = difference.shape[1]
    statistic = difference.mean(axis=1) / (difference.std(axis=1, ddof=1) / np.sqrt(n))
    p = 2 * t.sf(np.abs(statistic), n - 1)
    return float(p.min()), float(p.max())


@cache
def _preferences(data: str) -> tuple[dict[str, Floats], Floats]:
    """Return model → the preference as printed, then as it could be before rounding; and the baseline's."""
    if data == "cue_conflict":
        bias = column("refined_bias", "C", "cue_conflict/partial", "shape_bias")
        drawn = jitter(list(bias.values()), "table C bias")
        preferences = {m: np.r_[e.value, drawn[:, i]] for i, (m, e) in enumerate(bias.items())}
    else:
        shape, texture = (_with_draws(m) for m in ("shape_sens", "texture_sens"))
        preferences = {m: shape[m] / (shape[m] + texture[m]) for m in shape}
    return {m: v for m, v in preferences.items() if m != BASELINE}, preferences[BASELINE]


def _with_draws(metric: str) -> dict[str, Floats]:
    entries = column("refined_bias", "C", "refined_bias", metric)
    drawn = jitter(list(entries.values()), f"table C {metric}")
    return {m: np.r_[e.value, drawn[:, i]] for i, (m, e) in enumerate(entries.items())}


def _with_a3() -> float:
    texture: Any = column("refined_bias", "C", "refined_bias", "texture_sens")["A3"].value
    return A3_IN_TABLE_D / (A3_IN_TABLE_D + texture)


@cache
def _groups() -> dict[str, str]:
    return {m: e.group for m, e in column("refined_bias", "C", "refined_bias", "shape_sens").items()}


def _group(model: str) -> str:
    return _groups()[model]
