"""Families of models: which share a way of training, what that should do, and which model they are compared with.

A family file is JSON::

    {"baseline": "resnet50", "families": {"Shape Aug": {"expected": "shape", "models": ["sin", "sin_in"]}}}

``expected`` is ``shape``, ``texture`` or ``neither``. The test is the paper's (Kim et al. 2026, Table 2): a one-sample
t-test of the family's values against the baseline's value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cuebench.errors import UserError, all_problems
from cuebench.statistics.significance import Verdict, one_sample_t
from cuebench.types import Score

DIRECTIONS = ("shape", "texture", "neither")
ALPHA = 0.05


@dataclass(frozen=True)
class Family:
    """Models that share a way of training, and what it is expected to do to them."""

    name: str
    models: tuple[str, ...]
    expected: str = "neither"


@dataclass(frozen=True)
class Families:
    """Several families and the model that they are compared with."""

    baseline: str
    members: tuple[Family, ...]


class FamilyTest(NamedTuple):
    """What a measure says about a family: ``says`` is shape, texture or neither (not significant)."""

    family: str
    expected: str
    says: str
    n: int
    mean: float
    baseline: float
    p: float
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the measure says what was expected."""
        return self.says == self.expected


def read_families(path: str | Path) -> Families:
    """Read a family file; all of its problems are named at once."""
    try:
        data = json.loads(Path(path).expanduser().read_text("utf-8"))
        members = tuple(
            Family(str(name), tuple(map(str, f["models"])), str(f.get("expected", "neither")))
            for name, f in data["families"].items()
        )
        families = Families(str(data["baseline"]), members)
    except FileNotFoundError:
        raise UserError(f"family file {path} does not exist", "docs/files.md shows one") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"family file {path}: {error!r}", "docs/files.md shows one") from None
    problems = [f"family {f.name!r} has no models" for f in members if not f.models]
    problems += [
        f"family {f.name!r}: expected {f.expected!r}; one of {', '.join(DIRECTIONS)}"
        for f in members
        if f.expected not in DIRECTIONS
    ]
    if problems or not members:
        raise all_problems(f"family file {path}", problems or ["no families"])
    return families


def values_of(scores: Sequence[Score], metric: str, condition: str) -> dict[str, float]:
    """Return observer → value of one metric; rows that differ only in their interval count once."""
    return {s.observer: s.value for s in scores if (s.metric, s.condition) == (metric, condition)}


def family_tests(values: Mapping[str, float], families: Families, *, alpha: float = ALPHA) -> list[FamilyTest]:
    """Test every family's values against the baseline's.

    Parameters
    ----------
    values : mapping of model to value
        A shape preference, shape bias or reliance: larger means more shape.
    families : Families
        Models that have no value are left out, and the note says so.
    alpha : float
        Above this p the measure says ``neither``.
    """
    base = values.get(families.baseline)
    if base is None:
        raise UserError(f"the baseline {families.baseline!r} has no value", f"there are: {', '.join(values)}")
    return [_tested(family, values, base, alpha) for family in families.members]


def _tested(family: Family, values: Mapping[str, float], base: float, alpha: float) -> FamilyTest:
    own = [values[m] for m in family.models if m in values]
    missing = [m for m in family.models if m not in values]
    note = f"without {', '.join(missing)}" if missing else ""
    if len(own) < 2:
        why = f"{len(own)} model: no test"
        mean = own[0] if own else float("nan")
        return FamilyTest(family.name, family.expected, "", len(own), mean, base, float("nan"), why)
    found: Verdict = one_sample_t(own, base)
    says = "neither" if not found.p < alpha else "shape" if found.estimate > 0 else "texture"
    notes = "; ".join(n for n in (note, found.note) if n)
    return FamilyTest(family.name, family.expected, says, len(own), base + found.estimate, base, found.p, notes)
