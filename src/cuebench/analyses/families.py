"""Families of models that were trained in the same way, and the test of a family against a baseline model.

A family file is JSON::

    {"baseline": "resnet50", "families": {"Shape Aug": {"expected": "shape", "models": ["sin", "sin_in"]}}}

``expected`` is the effect that the training should have: ``shape``, ``texture`` or ``neither``. The test is that of
Kim et al. 2026, Table 2: a one-sample t-test of the family's values against the value of the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cuebench.errors import UserError, all_problems
from cuebench.reading import read_json, user_path
from cuebench.statistics.significance import one_sample_t

DIRECTIONS = ("shape", "texture", "neither")
ALPHA = 0.05
_EXAMPLE = 'write: {"baseline": "MODEL", "families": {"NAME": {"expected": "shape", "models": ["MODEL", …]}}}'


@dataclass(frozen=True)
class Family:
    """Models that were trained in the same way, and the effect that is expected of it."""

    name: str
    models: tuple[str, ...]
    expected: str = "neither"


@dataclass(frozen=True)
class Families:
    """Several families and the model that they are compared with."""

    baseline: str
    members: tuple[Family, ...]


class FamilyTest(NamedTuple):
    """The result of a test: ``says`` is shape, texture, neither (not significant) or empty (not tested)."""

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
        """Whether the result is the expected one."""
        return self.says == self.expected


def read_families(path: str | Path) -> Families:
    """Read a family file.

    Raises
    ------
    UserError
        For a file that does not exist or does not fit; all problems at once.
    """
    try:
        data = read_json(user_path(path), "family file", hint=_EXAMPLE)
        members = tuple(
            Family(str(name), tuple(map(str, f["models"])), str(f.get("expected", "neither")))
            for name, f in data["families"].items()
        )
        families = Families(str(data["baseline"]), members)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"family file {path}: {error!r}", _EXAMPLE) from None
    problems = [f"family {f.name!r} has no models" for f in members if not f.models]
    problems += [
        f"family {f.name!r}: expected {f.expected!r}; one of {', '.join(DIRECTIONS)}"
        for f in members
        if f.expected not in DIRECTIONS
    ]
    if problems or not members:
        raise all_problems(f"family file {path}", problems or ["no families"])
    return families


def family_tests(values: Mapping[str, float], families: Families, *, alpha: float = ALPHA) -> list[FamilyTest]:
    """Test the values of every family against the value of the baseline.

    Parameters
    ----------
    values : mapping of model to value
        For example the headline of a protocol whose larger values mean more shape.
    families : Families
        Models without a value are left out, and the note names them.
    alpha : float
        The result is ``neither`` where p is not below it.
    """
    baseline = values.get(families.baseline)
    if baseline is None:
        raise UserError(f"the baseline {families.baseline!r} has no value", f"models with one: {', '.join(values)}")
    return [_test(family, values, baseline, alpha) for family in families.members]


def _test(family: Family, values: Mapping[str, float], baseline: float, alpha: float) -> FamilyTest:
    present = [values[m] for m in family.models if m in values]
    absent = [m for m in family.models if m not in values]
    n = len(present)
    if n < 2:
        mean = present[0] if present else float("nan")
        return FamilyTest(family.name, family.expected, "", n, mean, baseline, float("nan"), f"{n} model: no test")
    verdict = one_sample_t(present, baseline)
    says = "neither" if not verdict.p < alpha else "shape" if verdict.estimate > 0 else "texture"
    note = "; ".join(filter(None, [f"without {', '.join(absent)}" if absent else "", verdict.note]))
    return FamilyTest(family.name, family.expected, says, n, baseline + verdict.estimate, baseline, verdict.p, note)
