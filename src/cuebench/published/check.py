"""``cuebench published check``: recompute every figure that follows from the printed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuebench.errors import UserError, did_you_mean
from cuebench.published.findings import Finding
from cuebench.published.tables import PAPERS
from cuebench.registry import Registry

CHECKS = Registry("check", "cuebench.published.checks")


@dataclass(frozen=True)
class Summary:
    """How many findings of one kind agree; ``strict``: without any allowance."""

    kind: str
    total: int
    agree: int
    strict: int


def check(paper: str = "") -> list[Finding]:
    """Recompute everything that can be derived, in the order of papers, then checks.

    Parameters
    ----------
    paper : str
        Only this paper; empty: all.
    """
    if paper and paper not in PAPERS:
        raise did_you_mean("paper", paper, PAPERS)
    every = [f for name in CHECKS for f in CHECKS.get(name)()]
    chosen = [f for name in PAPERS for f in every if f.paper == name and (name == paper or not paper)]
    if not chosen:
        raise UserError(f"nothing to recompute for {paper!r}", "cuebench published list")
    unexplained = [f for f in chosen if not f.agrees and not f.note]
    if unexplained:
        raise AssertionError(f"disagreements without an explanation: {[f.quantity for f in unexplained]}")
    return chosen


def summary(findings: Sequence[Finding]) -> list[Summary]:
    """Count the findings by kind, with all kinds together last."""
    kinds = [k for k in ("derived", "repeated", "stated") if any(f.kind == k for f in findings)]
    groups = {**{k: [f for f in findings if f.kind == k] for k in kinds}, "all": list(findings)}
    return [Summary(k, len(g), sum(f.agrees for f in g), sum(f.strict for f in g)) for k, g in groups.items()]
