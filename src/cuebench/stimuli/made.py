"""``made.json``: the record of how the stimuli of a folder were made, so that two sets never mix in one folder."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.files import is_temporary, json_text
from cuebench.reading import read_json

MADE = "made.json"
ELSEWHERE = "choose another --out, or remove the folder first"


def read_made(home: Path) -> dict[str, Any]:
    """Return the record of a folder; empty where there is none."""
    path = home / MADE
    record = read_json(path, hint=ELSEWHERE) if path.is_file() else {}
    if not isinstance(record, dict):
        raise UserError(f"{path} is damaged: it holds no record", ELSEWHERE)
    return record


def claim(home: Path, record: Mapping[str, Any], there: Collection[Path]) -> dict[str, Any]:
    """Return the record of a folder; refuse a folder that holds another set.

    Parameters
    ----------
    home : Path
        The folder of the set.
    record : mapping
        What must agree with ``made.json``, which may hold more.
    there : collection of Path
        The stimuli that lie in the folder already. Where there are none, any record is replaced.
    """
    before = read_made(home)
    # A process that was killed while it wrote made.json leaves a temporary file, which is no stimulus.
    there = [path for path in there if not is_temporary(path)]
    if there and not before:
        raise UserError(f"{home} already holds another set: not made by cuebench, it has no {MADE}", ELSEWHERE)
    if there and (changed := changes(before, record)):
        raise UserError(f"{home} already holds another set: {changed}", ELSEWHERE)
    return before if there else {}


def refuse_surplus(home: Path, there: Collection[Path], wanted: Collection[Path]) -> None:
    """Refuse a folder with stimuli that are not part of the set: a reader would take them for part of it."""
    if surplus := len(set(there) - set(wanted)):
        raise UserError(f"{home} holds {surplus} stimuli that are not among the {len(wanted)} asked for", ELSEWHERE)


def changes(before: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Return in words what differs between an earlier record and a new one; empty where nothing does."""
    wanted = json.loads(json_text(record))
    return "; ".join(f"{k} was {before.get(k)!r}, now {v!r}" for k, v in wanted.items() if before.get(k) != v)


def made_count(home: Path) -> int:
    """Return how many stimuli a set made by cuebench has when it is complete; 0 for a set from elsewhere."""
    if not (home / MADE).is_file():
        return 0
    hint = "remove it, or make the set again"
    record = read_json(home / MADE, hint=hint)
    count = record.get("count") if isinstance(record, dict) else None
    if type(count) is not int:
        raise UserError(f"{home / MADE} is not a record of `cuebench make`: it has no count", hint)
    return count
