"""Cue decomposition and REFINED-BIAS: figures that are printed in two tables must be the same."""

from __future__ import annotations

from cuebench.published.findings import Finding, same
from cuebench.published.tables import Entry, entries

PAPER = "cue_decomposition"
_WHY = {
    ("text", "DeepLabV3Plus RN101", "cityscapes/Q_S"): "Figure 6 prints 0.180, table XIII 0.179",
}


def repeats() -> list[Finding]:
    """Compare every extract with its full table, cell by cell."""
    findings: list[Finding] = []
    for extract, full in (("I", "VIII"), ("III", "XIII"), ("IV", "XIV"), ("text", "XIII")):
        findings += _cells(PAPER, extract, full)
    findings += [f for f in _cells(PAPER, "IX", "VIII") if "accuracy/Q_" in f.quantity]
    findings += [f for f in _cells(PAPER, "XIV", "XIII") if "R_cd" in f.quantity]
    return [*findings, *_second_and_tenth(), *_cells("refined_bias", "A", "2")]


def _cells(paper: str, extract: str, full: str) -> list[Finding]:
    there = {(e.model, e.quantity): e for e in entries(paper, full)}
    pairs = [(e, there[e.model, e.quantity]) for e in entries(paper, extract) if (e.model, e.quantity) in there]
    return [same(a, b, note=_WHY.get((a.table, a.model, a.quantity), "")) for a, b in pairs]


def _second_and_tenth() -> list[Finding]:
    """Compare table II's correlations with mean robustness with the same column of table X."""
    there: dict[tuple[str, str], Entry] = {
        (e.group, e.condition): e for e in entries(PAPER, "X") if e.metric == "spearman/mean"
    }
    return [
        same(e, there[e.group, e.condition]) for e in entries(PAPER, "II") if e.metric == "spearman/mean_robustness"
    ]
