"""``cuebench published check``: recompute every figure that follows from the printed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuebench.errors import UserError
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
        Only this one; empty: all.
    """
    if paper and paper not in PAPERS:
        from cuebench.errors import did_you_mean

        raise did_you_mean("paper", paper, PAPERS)
    found = [f for name in CHECKS for f in CHECKS.get(name)()]
    chosen = [f for name in PAPERS for f in found if f.paper == name and (name == paper or not paper)]
    if not chosen:
        raise UserError(f"nothing to recompute for {paper!r}", "cuebench published list")
    unexplained = [f for f in chosen if not f.agrees and not f.note]
    if unexplained:
        raise AssertionError(f"disagreements without an explanation: {[f.quantity for f in unexplained]}")
    return chosen


def summary(found: Sequence[Finding]) -> list[Summary]:
    """Count by kind, with all kinds together last."""
    kinds = [k for k in ("derived", "repeated", "stated") if any(f.kind == k for f in found)]
    parts = [(k, [f for f in found if f.kind == k]) for k in kinds] + [("all", list(found))]
    return [Summary(k, len(own), sum(f.agrees for f in own), sum(f.strict for f in own)) for k, own in parts]
