"""Benchmarks side by side for the same models: what each says about each training family (the paper's Table A)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.analyses.families import Families, FamilyTest, family_tests
from cuebench.errors import UserError
from cuebench.observers.baselines import RANDOM
from cuebench.statistics.correlations import Correlation, correlate
from cuebench.types import Score


class Measure(NamedTuple):
    """The number of a protocol in which larger means more shape, and the condition it is read in, best first."""

    protocol: str
    title: str
    metric: str
    conditions: tuple[str, ...]


MEASURES = (
    Measure("cue_conflict", "Cue conflict", "shape_bias", ("partial", "full")),
    Measure("triplets", "Triplets", "triplet_shape_bias", ("experiment1/alpha=1.0", "experiment3/size=1.0/aligned")),
    Measure("feature_suppression", "Feature suppression", "shape_reliance", ("all",)),
    # The frozen population first: with it, models of several runs are on one scale.
    Measure(
        "cue_decomposition",
        "Cue decomposition",
        "shape_bias_cd",
        ("eed+voronoi H=heinert2025", "eed+voronoi H=run", "eed+patch H=heinert2025", "eed+patch H=run"),
    ),
    Measure("refined_bias", "REFINED-BIAS", "shape_preference", ("faithful", "native")),
)
"""The columns of the table."""


@dataclass(frozen=True)
class Comparison:
    """The table: models × benchmarks, and families × benchmarks where families were given."""

    measures: tuple[Measure, ...]
    conditions: Mapping[str, str]
    models: tuple[str, ...]
    values: Mapping[str, Mapping[str, float]]
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    tests: Mapping[str, Sequence[FamilyTest]]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each model, with an empty cell where a benchmark has no number for it."""
        return [
            {"model": m, **{k.protocol: self.values[k.protocol].get(m) for k in self.measures}} for m in self.models
        ]

    def family_rows(self) -> list[dict[str, Any]]:
        """Return a row for each family: what is expected, and what each benchmark says, with its p."""
        if not self.tests:
            return []
        first = next(iter(self.tests.values()))
        return [
            {
                "family": test.family,
                "expected": test.expected,
                **{p: {"says": t[i].says, "p": t[i].p, "n": t[i].n, "note": t[i].note} for p, t in self.tests.items()},
            }
            for i, test in enumerate(first)
        ]

    def agreement(self) -> dict[str, Correlation]:
        """Return the rank correlation of every pair of benchmarks over the models that both have; at least three."""
        found = {}
        names = [m.protocol for m in self.measures]
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                both = [m for m in self.models if m in self.values[a] and m in self.values[b]]
                if len(both) >= 3:
                    one, other = ([self.values[p][m] for m in both] for p in (a, b))
                    found[f"{a} ~ {b}"] = correlate(one, other, method="kendall", how="fisher")
        return found


def compare(scores: Iterable[Score], families: Families | None = None) -> Comparison:
    """Put the scores of several protocols side by side.

    Parameters
    ----------
    scores : iterable of Score
        Rows of one run or of several.
    families : Families, optional
        Adds what each benchmark says about each family, where it has the baseline.
    """
    rows = [s for s in scores if RANDOM not in s.observer]  # untrained networks are no models to compare
    found = {m.protocol: _column(rows, m) for m in MEASURES}
    measures = tuple(m for m in MEASURES if found[m.protocol][1])
    if not measures:
        wanted = ", ".join(m.protocol for m in MEASURES)
        raise UserError("no benchmark to compare", f"run at least one of: {wanted}")
    values = {m.protocol: {o: s.value for o, s in found[m.protocol][1].items()} for m in measures}
    return Comparison(
        measures=measures,
        conditions={m.protocol: found[m.protocol][0] for m in measures},
        models=tuple(dict.fromkeys(o for v in values.values() for o in v)),
        values=values,
        intervals={m.protocol: {o: (s.ci_low, s.ci_high) for o, s in found[m.protocol][1].items()} for m in measures},
        tests=_tests(values, families),
    )


def _tests(values: Mapping[str, Mapping[str, float]], families: Families | None) -> dict[str, list[FamilyTest]]:
    if families is None:
        return {}
    with_base = {p: v for p, v in values.items() if families.baseline in v}
    if not with_base:
        raise UserError(f"no benchmark has the baseline {families.baseline!r}", "name an observer as the run does")
    return {p: family_tests(v, families) for p, v in with_base.items()}


def compare_runs(runs: Sequence[Path], families: Path | None = None) -> Comparison:
    """Compare what several run folders say."""
    from cuebench.analyses.families import read_families
    from cuebench.runs.results import read_scores

    rows = [s for run in runs for s in read_scores(Path(run).expanduser())]
    return compare(rows, read_families(families) if families else None)


def _column(rows: Sequence[Score], measure: Measure) -> tuple[str, dict[str, Score]]:
    """Return the condition and observer → its first row there; a value that is missing is no row."""
    own = [s for s in rows if (s.protocol, s.metric) == (measure.protocol, measure.metric) and s.value == s.value]
    present = list(dict.fromkeys(s.condition for s in own))
    condition = next((c for c in measure.conditions if c in present), "")
    found: dict[str, Score] = {}
    for s in own:
        if s.condition == condition:
            found.setdefault(s.observer, s)
    return condition, found
