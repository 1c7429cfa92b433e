"""Rank correlations between protocols over the same models: of the papers, and of the user's own runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from cuebench.protocols.headline import headline_column, measured
from cuebench.published.measures import Measure, measures, shared
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores
from cuebench.statistics.correlations import correlate
from cuebench.types import Score

FEWEST = 5
"""Below this many shared models no correlation is given: its interval would be (almost) everything."""
PUBLISHED, OWN = "published", "own runs"


@dataclass(frozen=True)
class Agreement:
    """Spearman's and Kendall's correlation of two measures over the models that have both."""

    first: str
    second: str
    source: str
    n: int
    spearman: float
    low: float
    high: float
    kendall: float
    note: str = ""

    def row(self) -> dict[str, Any]:
        """Return the fields; what could not be computed is None."""
        numbers = {k: getattr(self, k) for k in ("spearman", "low", "high", "kendall")}
        shown = {k: None if v != v else round(v, 4) for k, v in numbers.items()}
        names = {"first": self.first, "second": self.second, "source": self.source, "n": self.n}
        return {**names, **shown, "note": self.note}


def agree(runs: Iterable[str | Path] = ()) -> list[Agreement]:
    """Return the agreement of all pairs of protocols.

    Parameters
    ----------
    runs : paths
        Run folders: the headlines of the user's own models are compared in the same way, matched by the hash of their
        weights.

    Returns
    -------
    list of Agreement
        Published pairs first. Pairs with fewer than five shared models have no number, and the note says so.
    """
    published = list(measures().values())
    pairs = [_pair(a, b, PUBLISHED) for a, b in combinations(published, 2) if a.paper == b.paper
             and a.protocol != b.protocol]  # fmt: skip
    user_pairs = combinations(_own_headlines([Path(run).expanduser() for run in runs]), 2)
    return [*pairs, *_between_papers(published), *(_pair(a, b, OWN) for a, b in user_pairs)]


def _pair(first: Measure, second: Measure, source: str) -> Agreement:
    weights = shared(first, second)
    nan = float("nan")
    if len(weights) < FEWEST:
        note = f"{len(weights)} shared models; at least {FEWEST} are needed"
        return Agreement(first.name, second.name, source, len(weights), nan, nan, nan, nan, note)
    x, y = ([measure.values[w] for w in weights] for measure in (first, second))
    rho = correlate(x, y)
    tau = correlate(x, y, "kendall", how="fisher")
    return Agreement(first.name, second.name, source, rho.n, rho.value, rho.low, rho.high, tau.value, rho.note)


def _between_papers(published: Sequence[Measure]) -> list[Agreement]:
    """Say for each pair of papers which weights they share: too few for any rank correlation."""
    nan = float("nan")
    by_paper = {measure.paper: measure for measure in published}
    rows = []
    for (a, first), (b, second) in combinations(by_paper.items(), 2):
        weights = shared(first, second)
        names = ", ".join(first.labels[w] for w in weights) or "none"
        note = f"models shared by weights: {names}; at least {FEWEST} are needed"
        rows.append(Agreement(a, b, PUBLISHED, len(weights), nan, nan, nan, nan, note))
    return rows


def _own_headlines(runs: Sequence[Path]) -> list[Measure]:
    """Return the headline of every protocol over all runs, by the weights of the models."""
    scores: list[Score] = []
    labels: dict[str, str] = {}
    for run in runs:
        weights = {job.observer: str(job.key.get("weights", job.observer)) for job in RunRecord.read(run).jobs}
        labels |= {w: observer for observer, w in weights.items()}
        rows = (s for s in measured(read_scores(run)) if s.observer in weights)
        scores += [replace(s, observer=weights[s.observer]) for s in rows]
    columns = [headline_column(scores, protocol) for protocol in dict.fromkeys(s.protocol for s in scores)]
    return [
        Measure(
            name=f"{c.protocol}/{c.condition}/{c.metric}",
            protocol=c.protocol,
            values={w: row.value for w, row in c.rows.items()},
            labels={w: labels[w] for w in c.rows},
        )
        for c in columns
        if c is not None
    ]
