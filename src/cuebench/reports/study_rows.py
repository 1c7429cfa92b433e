"""The analysis of a study as figures read it: the JSON file that ``cuebench study analyse --out`` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.options import check_types
from cuebench.reading import read_json, user_path
from cuebench.reports.theme import CONDITIONS, PEOPLE, SHAPE, TEXTURE

BOTH, OVER_PEOPLE, IMAGES = "people and images", "people", "images"
SHARES = {
    "accuracy": "accuracy",
    "shape_bias": "shape bias",
    "shape_matches": "shape matches",
    "tid_agreement": "agreement with TID",
}
"""Measures that are shares of answers → how they are called."""
COLOURS = {"shape": SHAPE, "texture": TEXTURE}
HINT = "write it with: cuebench study analyse STUDY --out analysis.json"


@dataclass(frozen=True)
class _Row:
    """The fields of a row that figures use."""

    measure: str
    task: str
    part: str
    value: float | None
    intervals: list[Any] = field(default_factory=list)
    n: int = 0
    people: int = 0
    note: str = ""


@dataclass(frozen=True)
class StudyRow:
    """A share of answers: ends of its intervals by what they are over."""

    measure: str
    task: str
    part: str
    value: float
    ends: Mapping[str, tuple[float, float]]
    n: int
    people: int
    note: str

    @property
    def name(self) -> str:
        """What the part is called: ``class=tiger`` → ``tiger``."""
        return self.part.partition("=")[2] or "all"


LARGEST = 1e9
"""Far beyond any share or its ends."""


def share_rows(source: str | Path | Mapping[str, Any]) -> list[StudyRow]:
    """Return the shares of an analysis.

    Parameters
    ----------
    source : path or mapping
        The file of ``study analyse --out``, or what it holds.

    Raises
    ------
    UserError
        Where it is no analysis, or holds no share.
    """
    what = f"analysis of a study {source}" if isinstance(source, str | Path) else "analysis of a study"
    content = (
        read_json(user_path(source), "analysis of a study", hint=HINT) if isinstance(source, str | Path) else source
    )
    listed = content.get("rows") if isinstance(content, Mapping) else None
    if not isinstance(listed, Sequence) or not all(isinstance(row, Mapping) for row in listed):
        raise UserError(f"{what} has no rows", HINT)
    known = set(_Row.__dataclass_fields__)
    rows = [check_types({k: v for k, v in row.items() if k in known}, _Row, what) for row in listed]
    if any(not {"measure", "task", "part", "value"} <= set(row) for row in rows):
        raise UserError(f"{what}: a row lacks its measure, task, part or value", HINT)
    shares = [_share(row, what) for row in rows if row["measure"] in SHARES and row["value"] is not None]
    if not shares:
        raise UserError(f"{what} holds no accuracy, shape bias or other share", "let people take part first")
    return shares


def _share(row: Mapping[str, Any], what: str) -> StudyRow:
    ends = {}
    for interval in row.get("intervals", ()):
        if not isinstance(interval, Mapping) or not {"over", "low", "high"} <= set(interval):
            raise UserError(f"{what}: an interval lacks its ends", HINT)
        low, high = interval["low"], interval["high"]
        if isinstance(low, int | float) and isinstance(high, int | float):
            if not -LARGEST <= low <= high <= LARGEST:
                raise UserError(f"{what}: an interval from {low!r:.40} to {high!r:.40}", HINT)
            ends[str(interval["over"])] = (float(low), float(high))
    rest = (row.get("n", 0), row.get("people", 0), row.get("note", ""))
    return StudyRow(row["measure"], row["task"], row["part"], float(row["value"]), ends, *rest)


def colour_of(task: str) -> str:
    """Return the colour of a task: shape and texture have their own, everything else that of people."""
    return COLOURS.get(task, PEOPLE)


def group_colours(groups: Sequence[str]) -> dict[str, str]:
    """Return group → colour."""
    return {group: CONDITIONS[i % len(CONDITIONS)] for i, group in enumerate(groups)}
