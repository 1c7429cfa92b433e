"""Protocols side by side for the same observers: the headline of each, and what each says about training families."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from cuebench import registry
from cuebench.analyses.families import Families, FamilyTest, family_tests, read_families
from cuebench.errors import UserError
from cuebench.observers.baselines import RANDOM
from cuebench.protocols.headline import Column, headline_column, headline_of
from cuebench.runs.results import read_scores
from cuebench.statistics.correlations import Correlation, correlate
from cuebench.types import Score

LARGER = {
    "shape": "more shape",
    "texture": "more texture",
    "correct": "more correct answers",
    "human": "more like people",
}
"""Direction of a headline → what a larger value means."""
FEWEST = 3
"""Observers that two protocols must share for a rank correlation."""


@dataclass(frozen=True)
class Comparison:
    """The table: observers × protocols, and families × protocols where families were given.

    Parameters
    ----------
    columns : tuple of Column
        The headline of each protocol: metric, condition, and the row of every observer that has it.
    observers : tuple of str
        In the order in which they occur.
    tests : mapping of str to sequence of FamilyTest
        Protocol → what it says about each family.
    omitted : mapping of str to str
        Protocol with scores that are not shown → why.
    """

    columns: tuple[Column, ...]
    observers: tuple[str, ...]
    tests: Mapping[str, Sequence[FamilyTest]] = field(default_factory=dict)
    omitted: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each observer; None where a protocol has no number for it."""
        return [
            {"model": o, **{c.protocol: c.rows[o].value if o in c.rows else None for c in self.columns}}
            for o in self.observers
        ]

    def intervals(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return protocol → observer → the widest interval of its number, and its kind."""
        return {
            c.protocol: {o: {"low": s.ci_low, "high": s.ci_high, "kind": s.ci_kind} for o, s in c.rows.items()}
            for c in self.columns
        }

    def family_rows(self) -> list[dict[str, Any]]:
        """Return a row for each family: what is expected, and what each protocol says, with its p-value."""
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
        """Return Kendall's rank correlation of every pair of protocols that share at least three observers."""
        correlations = {}
        for a, b in combinations(self.columns, 2):
            shared = [o for o in self.observers if o in a.rows and o in b.rows]
            if len(shared) >= FEWEST:
                x, y = ([column.rows[o].value for o in shared] for column in (a, b))
                correlations[f"{a.protocol} ~ {b.protocol}"] = correlate(x, y, method="kendall", how="fisher")
        return correlations


def compare(
    scores: Iterable[Score], families: Families | None = None, protocols: Sequence[str] | None = None
) -> Comparison:
    """Put the headlines of several protocols side by side.

    Parameters
    ----------
    scores : iterable of Score
        Rows of one run or of several.
    families : Families, optional
        Adds what each protocol says about each family, where it has a value for the baseline.
    protocols : sequence of str, optional
        Whose headlines to show. Default: every protocol in which a larger value means more shape.
    """
    rows = [s for s in scores if RANDOM not in s.observer]  # untrained networks are not compared
    present = sorted({s.protocol for s in rows if s.protocol})
    omitted = {} if protocols else _omitted(present)
    columns = []
    for name in protocols or [p for p in present if p not in omitted]:
        column = headline_column(rows, name if name in present else registry.protocols.resolve(name))
        if column is not None:
            columns.append(column)
        elif protocols:
            raise UserError(f"no observer has the headline of {name}", f"cuebench run -p {name} … measures it")
        else:
            omitted[name] = "no observer has its headline"
    if not columns:
        wanted = [name for name, p in registry.protocols.usable() if p.headline.direction == "shape"]
        hint = f"run at least one of: {', '.join(wanted)}; or name protocols with --protocol"
        raise UserError("there is no headline to compare", hint)
    observers = tuple(dict.fromkeys(o for c in columns for o in c.rows))
    return Comparison(tuple(columns), observers, _tests(columns, families), omitted)


def compare_runs(
    runs: Sequence[str | Path], families: str | Path | None = None, protocols: Sequence[str] | None = None
) -> Comparison:
    """Compare the scores of several run folders; see `compare`."""
    rows = [s for run in runs for s in read_scores(Path(run).expanduser())]
    return compare(rows, read_families(families) if families else None, protocols)


def _omitted(present: Sequence[str]) -> dict[str, str]:
    """Return the protocols that are not shown unless they are asked for, and why."""
    omitted = {}
    for name in present:
        try:
            direction = headline_of(name).direction
        except UserError as error:
            omitted[name] = error.message
            continue
        if direction != "shape":
            omitted[name] = f"a larger value means {LARGER[direction]}; -p {name} shows it"
    return omitted


def _tests(columns: Sequence[Column], families: Families | None) -> dict[str, list[FamilyTest]]:
    """Test the families with every protocol in which larger means more shape and the baseline has a value."""
    if families is None:
        return {}
    tested = [c for c in columns if families.baseline in c.rows and headline_of(c.protocol).direction == "shape"]
    if not tested:
        raise UserError(f"no protocol has the baseline {families.baseline!r}", "name an observer as the run does")
    return {c.protocol: family_tests({o: s.value for o, s in c.rows.items()}, families) for c in tested}
