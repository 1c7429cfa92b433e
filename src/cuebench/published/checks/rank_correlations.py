"""Cue decomposition, tables II, V, VI and X: Spearman correlations, recomputed from the per-model tables.

The papers correlated unrounded numbers. Rounding makes ties and swaps near ones, so that a correlation is known up to
a range: that of tables which would print the same digits. S_cd has the ranks of Q_S/Q_T whatever s and t are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from cuebench.arrays import Floats
from cuebench.published.checks.decomposition import CORRUPTIONS, PAPER, TEXTURES
from cuebench.published.findings import Finding, jitter, judge
from cuebench.published.tables import Entry, column, entries

Columns = dict[tuple[str, str], "Series"]
"""Group and data of a printed row → the column that it correlates."""
CELLS = {"cityscapes": 128, "ade20k": 32}
"""Voronoi cells of the Q_T in table XIII. The paper states 32; on Cityscapes the columns follow the rows of 128."""


@dataclass(frozen=True)
class Series:
    """A column as printed, and as it could be before rounding (draws × models)."""

    plain: Floats
    drawn: Floats

    @cached_property
    def ranks(self) -> tuple[Floats, Floats]:
        """Centred ranks, as printed and drawn: each column is ranked once for all its correlations."""
        return _centred_ranks(self.plain[None]), _centred_ranks(self.drawn)

    def over(self, other: Series) -> Series:
        """Return the ratio of two columns."""
        return Series(self.plain / other.plain, self.drawn / other.drawn)

    def plus(self, other: Series) -> Series:
        """Return the sum of two columns."""
        return Series(self.plain + other.plain, self.drawn + other.drawn)


def rank_correlations() -> list[Finding]:
    """Recompute every printed rank correlation whose two columns are printed."""
    metrics, targets = _classification()
    findings = [f for table in ("II", "X") for f in _table(table, metrics, targets)]
    for data, table in (("cityscapes", "V"), ("ade20k", "VI")):
        metrics, targets = _segmentation(data)
        findings += _table(table, metrics, targets)
    return [*findings, _cells(), *_in_the_text()]


def _table(table: str, metrics: Columns, targets: Mapping[str, Series]) -> list[Finding]:
    findings = []
    for entry in entries(PAPER, table):
        kind, _, name = entry.metric.partition("/")
        if kind == "spearman" and (entry.group, entry.condition) in metrics:
            findings.append(_compared(entry, metrics[entry.group, entry.condition], targets[name]))
    return findings


def _compared(entry: Entry, metric: Series, target: Series) -> Finding:
    value, low, high = _range(metric, target)
    return judge(entry, value, (low, high), quantity=f"{entry.group} {entry.condition}: {entry.metric}")


def _range(metric: Series, target: Series) -> tuple[float, float, float]:
    (plain,), draws = (_correlations(a, b) for a, b in zip(metric.ranks, target.ranks))
    return float(plain), float(draws.min()), float(draws.max())


def _centred_ranks(rows: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks = rankdata(rows, axis=1)
    return ranks - ranks.mean(axis=1, keepdims=True)


def _correlations(a: Floats, b: Floats) -> Floats:
    """Return the correlation of each row of two arrays of centred ranks."""
    return (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))


def _series(table: str, condition: str, metric: str, models: Sequence[str]) -> Series:
    by_model = column(PAPER, table, condition, metric)
    printed = [by_model[m] for m in models]
    return Series(np.array([e.value for e in printed]), jitter(printed, f"{table}|{condition}|{metric}"))


def _targets(table: str, condition: str, models: Sequence[str]) -> dict[str, Series]:
    series = {c: _series(table, condition, c, models) for c in CORRUPTIONS}
    # Before rounding the mean is the mean of the five; as printed it is the printed column.
    drawn = np.mean([s.drawn for s in series.values()], axis=0)
    series["mean"] = series["mean_robustness"] = Series(_series(table, condition, "mean", models).plain, drawn)
    return series


@cache
def _classification() -> tuple[Columns, dict[str, Series]]:
    models = [m for m, e in column(PAPER, "VIII", "accuracy", "Q_O").items() if e.group != "Trained"]
    original, shape = (_series("VIII", "accuracy", m, models) for m in ("Q_O", "Q_S"))
    conflict = _series("VIII", "cue_conflict", "shape_bias", models)
    metrics = {("c_conf", "Geirhos et al."): conflict, ("accuracy", "EED"): shape, ("accuracy", "ImageNet"): original}
    for texture in ("Voronoi", *TEXTURES):
        table, name = ("VIII", "voronoi") if texture == "Voronoi" else ("IX", texture)
        quality = _series(table, f"accuracy/{name}", "Q_T", models)
        metrics |= _combined(original, shape, quality, ("accuracy", texture), f"EED, {texture}")
    return metrics, _targets("VIII", "relative_robustness", models) | {"cue_conflict_bias": conflict}


@cache
def _segmentation(data: str) -> tuple[Columns, dict[str, Series]]:
    models = list(column(PAPER, "XIII", data, "Q_O"))
    original, shape, texture = (_series("XIII", data, m, models) for m in ("Q_O", "Q_S", "Q_T"))
    metrics = {("mIoU", "EED"): shape, ("mIoU", {"cityscapes": "Cityscapes", "ade20k": "ADE20k"}[data]): original}
    cells = f"voronoi {CELLS[data]}"
    metrics |= _combined(original, shape, texture, ("mIoU", cells), f"EED, {cells}")
    return metrics, _targets("XIV", f"{data}/relative_robustness", models)


def _combined(original: Series, shape: Series, texture: Series, alone: tuple[str, str], both: str) -> Columns:
    return {
        alone: texture,
        ("S_cd", both): shape.over(texture),
        ("R_cd", both): shape.plus(texture).over(original),
    }


def _cells() -> Finding:
    """Find which rows of table V the Cityscapes columns of table XIII belong to."""
    metrics, targets = _segmentation("cityscapes")
    here = f"voronoi {CELLS['cityscapes']}"
    hits = {}
    for cells in (32, 64, 128):
        renamed = {(g, c.replace(here, f"voronoi {cells}")): s for (g, c), s in metrics.items() if here in c}
        hits[cells] = sum(f.agrees for f in _table("V", renamed, targets))
    best = max(hits, key=lambda n: hits[n])
    counts = ", ".join(f"{n} of 18 with {cells} cells" for cells, n in hits.items())
    note = f"the default of the paper is 32, but the correlations of table V follow from table XIII as: {counts}"
    name = "Voronoi cells behind Q_T of Cityscapes"
    return Finding(PAPER, "XIII", name, 32.0, float(best), best == 32, note, "stated", best == 32)


def _in_the_text() -> list[Finding]:
    """Recompute the four correlations that the text gives in per cent."""
    metrics, targets = _classification()
    place = {"S_cd": ("S_cd", "EED, Voronoi"), "R_cd": ("R_cd", "EED, Voronoi"), "Q_S": ("accuracy", "EED"),
             "cue_conflict": ("c_conf", "Geirhos et al.")}  # fmt: skip
    findings = []
    for entry in entries(PAPER, "text"):
        kind, _, name = entry.metric.partition("/")
        if kind == "spearman_percent":
            value, low, high = (100 * r for r in _range(metrics[place[entry.condition]], targets[name]))
            findings.append(judge(entry, value, (low, high), quantity=f"{entry.condition}: {entry.metric}"))
    return findings
