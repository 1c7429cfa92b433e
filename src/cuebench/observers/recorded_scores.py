"""The scores of the classes in a recorded file: numbered columns, a column of lists, or one column for each class."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cuebench.arrays import Counts, Floats
from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace, are_probabilities, logits_of, softmax
from cuebench.observers.recorded_columns import KNOWN, LISTS, NUMBERED, RESERVED, counts_rows
from cuebench.observers.recorded_csv import SEPARATOR
from cuebench.observers.recorded_rows import cells_of, numbers_of, where

if TYPE_CHECKING:
    import pyarrow as pa

_COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")


class Scores(NamedTuple):
    """Logits, n × classes; the classes where the columns name them; what the observer must say about them."""

    logits: Floats
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def scores_of(file: Path, table: pa.Table, labels: LabelSpace | None, values: str, whole: bool) -> Scores | None:
    """Find the scores of the classes in one of the three accepted forms; None where there are only decisions.

    Raises
    ------
    UserError
        Numbers cannot be what they are said to be, or there are several forms that differ.
    """
    found: dict[str, Scores] = {}
    if numbered := [m for m in map(NUMBERED.match, table.column_names) if m]:
        columns = _in_order(file, [m.group(0) for m in numbered])
        named = "probabilities" if numbered[0].group(1) == "prob" else "logits"
        found[f"{columns[0]} …"] = Scores(_as_logits(file, _matrix(file, table, columns), values or named))
    for listed in LISTS:
        if listed in table.column_names:
            named = "logits" if listed == "logits" else "probabilities"
            found[listed] = Scores(_as_logits(file, _list_column(file, table, listed), values or named))
    chosen = _class_columns(file, table, labels)
    # Beside other scores a single class may be anything, such as the right answer.
    if chosen and labels is not None and (not found or len(chosen) > 1):
        found[f"{next(iter(chosen.values()))} …"] = _scores_by_class(file, table, labels, chosen, values, whole)
    first, *others = found or [""]
    for other in others:
        _check_one_answer(file, (first, found[first].logits), (other, found[other].logits))
    return found.get(first)


def _check_one_answer(file: Path, first: tuple[str, Floats], second: tuple[str, Floats]) -> None:
    """Raise where two forms of the scores are not the same probabilities, as logits and their softmax are."""
    (name, a), (other, b) = first, second
    if a.shape != b.shape or not np.allclose(softmax(a), softmax(b), atol=1e-3):
        raise UserError(
            f"{file}: the columns {name} and {other} could both be the scores of the classes, and they differ",
            "keep those that are to be scored, and rename or remove the others",
        )


def _scores_by_class(
    file: Path, table: pa.Table, labels: LabelSpace, chosen: Mapping[int, str], values: str, whole: bool
) -> Scores:
    """Read one column for each class; other columns of numbers are named where they could be scores, too."""
    if whole:
        check_all_classes(file, labels, [labels.names[i] for i in chosen])
    matrix = _matrix(file, table, list(chosen.values()))
    kind = values or ("probabilities" if _are_shares(matrix) else "logits")
    others = _other_numbers(file, table, labels)
    left = f"{len(others)} column{'s' * (len(others) > 1)} of numbers {', '.join(map(repr, others[:3]))}"
    left += " …" * (len(others) > 3)
    logits = _as_logits(file, matrix, kind, f"{left}: no class of {labels.name!r}" if others else "")
    # Probabilities of all classes sum to 1, so that nothing was left out; of logits nobody can tell.
    note = f"{left} left out: no class of {labels.name!r}"
    return Scores(logits, tuple(labels.names[i] for i in chosen), (note,) if others and kind == "logits" else ())


def _other_numbers(file: Path, table: pa.Table, labels: LabelSpace) -> list[str]:
    """Return the columns of numbers that are no class and nothing else that is known."""
    found = []
    for column in table.column_names:
        if column in KNOWN or labels.find(column) is not None:
            continue
        try:
            numeric = np.isfinite(numbers_of(file, table, column)).all()
        except UserError:
            continue
        if numeric and not counts_rows(cells_of(table, column)):
            found.append(column)
    return found


def _in_order(file: Path, columns: list[str]) -> list[str]:
    kinds = {c.rpartition("_")[0] for c in columns}
    if len(kinds) > 1:
        raise UserError(f"{file}: both {' and '.join(sorted(kinds))} columns", "keep the logits or the probabilities")
    kind, numbered = kinds.pop(), dict[int, str]()
    for column in columns:
        if len(column.rpartition("_")[2]) > 9:
            raise UserError(f"{file}: column {column[:40]}… has no number of a class", f"write {kind}_0, {kind}_1, …")
        other = numbered.setdefault(int(column.rpartition("_")[2]), column)
        if other != column:
            raise UserError(f"{file}: columns {other} and {column} have the same number", "keep one of them")
    missing = [i for i in range(len(numbered)) if i not in numbered]
    if missing:
        raise UserError(
            f"{file}: {len(numbered)} columns {kind}_…, but {kind}_{missing[0]} is missing",
            "number them from 0 without gaps",
        )
    return [numbered[i] for i in range(len(numbered))]


def _class_columns(file: Path, table: pa.Table, labels: LabelSpace | None) -> dict[int, str]:
    """Return class → its column, in the order of the label space; none where no column is a class."""
    if labels is None:
        return {}
    free = [c for c in table.column_names if c not in RESERVED]
    columns: dict[int, str] = {}
    for column in free:
        if (position := labels.find(column)) is None:
            continue
        other = columns.setdefault(position, column)
        if other != column:
            name = labels.names[position]
            raise UserError(f"{file}: columns {other!r} and {column!r} are both class {name!r}", "keep one of them")
    return {i: columns[i] for i in sorted(columns)}


def check_all_classes(file: Path, labels: LabelSpace, covered: Sequence[str]) -> None:
    """Raise where a label space has classes for which a file has no column."""
    missing = [n for n in labels.names if n not in set(covered)]
    if missing:
        raise UserError(
            f"{file}: columns for {len(labels) - len(missing)} of the {len(labels)} classes of {labels.name!r}; "
            f"missing {', '.join(missing[:5])}{' …' * (len(missing) > 5)}",
            "add the columns, or name the label space of this file with ?labels=FILE",
        )


def _matrix(file: Path, table: pa.Table, columns: Sequence[str]) -> Floats:
    matrix = np.column_stack([numbers_of(file, table, c) for c in columns])
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, column = bad[0]
        raise _not_finite(file, int(row), columns[column], matrix[row, column], len(np.unique(bad[:, 0])))
    return matrix


def _not_finite(file: Path, row: int, column: str, value: object, rows: int) -> UserError:
    more = f" ({rows} rows are affected)" if rows > 1 else ""
    return UserError(
        f"{where(file, row)}: {column} is {value}, not a finite number{more}",
        "run the model again for these stimuli, or leave the rows out: they are then excluded and counted",
    )


def _list_column(file: Path, table: pa.Table, column: str) -> Floats:
    lengths, flat = _flattened(file, table, column)
    usual = int(max(np.unique(lengths), key=lambda n: (np.sum(lengths == n), n)))
    unequal = np.flatnonzero(lengths != usual)
    wrong = [f"{where(file, int(i))}: {lengths[i]} {column} instead of {usual}" for i in unequal]
    if wrong or not usual:
        raise all_problems(f"{file}: {column} of unequal length", wrong or ["no numbers"], "write one for each class")
    matrix = flat.reshape(len(lengths), usual)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, at = bad[0]
        raise _not_finite(file, int(row), f"{column}[{at}]", matrix[row, at], len(np.unique(bad[:, 0])))
    return matrix


def _flattened(file: Path, table: pa.Table, column: str) -> tuple[Counts, Floats]:
    """Return the length of each row's list, and all numbers in one array. CSV cells are parsed as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table[column]
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        separator = (table.schema.metadata or {}).get(SEPARATOR, b",").decode()
        rows = [_parsed_list(file, i, column, cell or "", separator) for i, cell in enumerate(values.to_pylist())]
        return np.array([len(r) for r in rows]), np.array([v for r in rows for v in r], np.float64)
    try:
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
        return lengths.astype(np.int64), pc.list_flatten(values).cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        kind = f"{file}: column {column} has type {values.type}"
        raise UserError(kind, "write a list of numbers in each row") from None


def _parsed_list(file: Path, row: int, column: str, cell: str, separator: str) -> list[float]:
    """Return the numbers in a cell; ``separator``: of the columns of the file."""
    try:
        return [float(part) for part in _split(cell.strip(), separator)]
    except ValueError:
        decimal = separator == ";"
        raise UserError(
            f"{where(file, row)}: {column} is {cell[:40]!r}",
            "write [1.5, -0.2, …]" + " or 1,5 -0,2 …: a comma is a decimal comma or stands between numbers" * decimal,
        ) from None


def _split(cell: str, separator: str) -> list[str]:
    """Return the numbers of a list as texts; a comma is a decimal comma or stands between numbers, never both.

    In files of semicolons it can be either. Nor is 0,5,0,1 sure to be four numbers in a file of tabs, unless programs
    wrote it: in brackets.
    """
    text = cell.strip(" []()\r\n\t")
    marks = set(re.findall(r"\s*([,;])\s*|\s+", text))  # an empty one where there are only spaces
    if "," not in marks:
        return re.split(r"[;\s]+", text) if text else []
    if marks == {","}:
        parts = re.split(r"\s*,\s*", text)
        parts = parts if parts[-1] else parts[:-1]
        spaced = len(re.findall(r",\s", text + " ")) == text.count(",")
        sure = separator == "," or (separator == "\t" and cell.startswith(("[", "(")))
        if sure or spaced or all("." in part for part in parts):
            return parts
    elif separator == ";":
        parts = re.split(r"[;\s]+", text)
        if all(_COMMA_NUMBER.fullmatch(part) for part in parts):
            return [part.replace(",", ".") for part in parts]
    raise ValueError(cell)


def _are_shares(values: Floats) -> bool:
    """Tell whether numbers that nobody has named seem to be shares of the classes, as fractions or in percent.

    Probabilities in percent, or with a few decimals, would be scored as logits that hardly differ.
    """
    fractions = (values <= 1).all()
    percent = (values <= 101).all() and abs(np.median(values.sum(axis=1)) - 100) < 10
    return bool((values >= 0).all() and (fractions or percent))


def _as_logits(file: Path, values: Floats, kind: str, left: str = "") -> Floats:
    """Return logits; ``kind`` says what the numbers are, ``left`` which columns are not among them."""
    return values if kind == "logits" else _log_probabilities(file, values, left)


def _log_probabilities(file: Path, values: Floats, left: str) -> Floats:
    if len(values) and not are_probabilities(values):
        row = next(r for r in range(len(values)) if not are_probabilities(values[r : r + 1]))
        total = values[row].sum()
        raise UserError(
            f"{where(file, row)}: the probabilities are not in [0, 1] with sum 1 (smallest {values[row].min():.4g}, "
            f"sum {total:.4g}){f'; beside them: {left}' if left else ''}",
            "give softmax outputs as fractions, with all their digits; where the numbers are logits, say so: "
            "recorded:FILE?values=logits",
        )
    return logits_of(values)
