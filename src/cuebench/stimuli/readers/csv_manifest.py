"""CSV of stimuli: one row for each stimulus, any of the columns of a stimulus, at least ``path`` or ``id``."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems, is_printable
from cuebench.observers.recorded_columns import counts_rows
from cuebench.reading import CsvTable, path_problem, read_csv
from cuebench.stimuli.manifest import COLUMNS
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.readers.scan import file_problem, id_problems, nothing_found, shortfall, with_facts
from cuebench.stimuli.render import check_recipe
from cuebench.types import Stimulus, StimulusSet

LAYOUT = f"a CSV file with a column path or id, and any of {', '.join(c for c in COLUMNS if c not in ('id', 'path'))}"
_INTEGERS = ("width", "height", "seed")


def read(file: Path, *, expected: int = 0) -> StimulusSet:
    """Read a CSV of stimuli.

    Parameters
    ----------
    file : Path
        CSV with a header. ``path`` is relative to the CSV's folder; ``id`` defaults to the path without its suffix.
        Hash and pixel size are taken from the file; a ``sha256`` in the CSV must agree with it.
    expected : int
        Size of the complete set; a smaller one says so in ``partial``.

    Returns
    -------
    StimulusSet
        Sorted by id.

    Raises
    ------
    UserError
        With all problems at once; unknown columns are refused with the nearest known one.
    """
    file = Path(file).expanduser()
    table = _rows(file)
    if not table.rows:
        raise nothing_found(file, LAYOUT)
    stimuli, problems = [], []
    for line, row in zip(table.lines, table.rows):
        stimulus, wrong = _stimulus(row, file.parent)
        stimuli += [stimulus] if stimulus else []
        problems += [f"line {line}: {problem}" for problem in wrong]
    problems += id_problems(stimuli)
    if not problems:
        listed = {s.id: s.sha256 for s in stimuli}
        filled = with_facts(stimuli, file.parent)
        problems = [
            f"{s.id}: sha256 is {s.sha256}, the CSV says {listed[s.id]}"
            for s in filled
            if listed[s.id] not in ("", s.sha256)
        ]
    if problems:
        raise all_problems(f"stimulus CSV {file.absolute()}", problems, f"expected: {LAYOUT}")
    return StimulusSet(file.stem, filled, str(file.parent), expected, shortfall(len(filled), expected))


def _rows(file: Path) -> CsvTable:
    table = _renamed(read_csv(file, "stimulus CSV", hint=f"expected: {LAYOUT}"))
    columns = table.columns
    problems = [f"column {column!r} occurs twice" for column, number in Counter(columns).items() if number > 1]
    for column in [c for c in columns if c not in COLUMNS]:
        near = difflib.get_close_matches(column, COLUMNS, n=1, cutoff=0.5)
        problems.append(f"unknown column {column!r}" + (f". Did you mean {near[0]!r}?" if near else ""))
    problems += [] if {"id", "path"} & set(columns) else ["needs a column 'path' or 'id'"]
    if problems:
        raise all_problems(f"columns of {file.absolute()}", problems, f"known columns: {', '.join(COLUMNS)}")
    return table


def _renamed(table: CsvTable) -> CsvTable:
    """Return known columns in lower case, and none without a name that counts the rows, as pandas writes it."""
    unnamed = [row[""] for row in table.rows] if "" in table.columns else []
    left_out = {""} if counts_rows(unnamed) else set()
    names = {c: c.lower() if c.lower() in COLUMNS else c for c in table.columns if c not in left_out}
    rows = [{names[column]: cell for column, cell in row.items() if column in names} for row in table.rows]
    return CsvTable(list(names.values()), rows, table.lines)


def _stimulus(row: dict[str, str], root: Path) -> tuple[Stimulus | None, list[str]]:
    """Return the stimulus of a row, or what is wrong with the row."""
    values: dict[str, Any] = {c: v.strip() for c, v in row.items() if v.strip()}
    path = values.get("path", "")
    stem = Path(path).with_suffix("").as_posix() if path and not path_problem(path) else path
    values.setdefault("id", stem)
    problems = [] if values["id"] else ["neither path nor id"]
    problems += [f"{c} holds control characters" for c, v in values.items() if not is_printable(v)]
    if path and (problem := path_problem(path) or file_problem(root / path)):
        problems.append(f"{path}: {problem}")
    for c in [c for c in _INTEGERS if c in values]:
        if re.fullmatch("[0-9]{1,18}", values[c]):
            values[c] = int(values[c])
        else:
            problems.append(f"{c} is {values[c][:40]!r}, expected a whole number from 0 to 10¹⁸")
    try:
        check_recipe(values.get("recipe", ""), source=not path)
    except UserError as error:
        problems.append(f"recipe: {error.message}")
    return (None, problems) if problems else (Stimulus(**values), [])


READER = Reader("csv_manifest", LAYOUT, read)
