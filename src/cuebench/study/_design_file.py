"""The types of the values of a design's TOML files, so that all wrong values are reported at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.options import check_types
from cuebench.reading import read_toml


@dataclass(frozen=True)
class _Stimuli:
    """Types of the table ``stimuli``."""

    relation: str
    settings: dict[str, Any]
    where: dict[str, Any]


@dataclass(frozen=True)
class _Masks:
    """Types of the table ``masks``."""

    count: int
    pixels: int


@dataclass(frozen=True)
class _Attention:
    """Types of the table ``attention``."""

    kind: str


@dataclass(frozen=True)
class DesignFile:
    """Types of the keys of ``design.toml``."""

    name: str
    version: int
    protocol: str
    minutes: int
    fullscreen: bool
    stimuli: _Stimuli
    masks: _Masks
    times: dict[str, Any]
    blocks: list[dict[str, Any]]
    groups: dict[str, list[str]]
    attention: _Attention
    pay: dict[str, Any]


@dataclass(frozen=True)
class WordsFile:
    """Types of the keys of ``words.toml``."""

    title: str
    language: str
    page: dict[str, str]
    options: dict[str, str]
    questions: dict[str, str]
    blocks: dict[str, dict[str, str]]


def read_typed(path: Path, form: type, problems: list[str]) -> dict[str, Any]:
    """Return the content of a TOML file whose values have the types of a form; keys of no form are said later."""
    try:
        facts = read_toml(path, "design")
        return {**facts, **check_types(facts, form, path.name)}
    except UserError as error:
        problems += error.problems or (error.message,)
        return {}
