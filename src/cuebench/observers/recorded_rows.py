"""Single columns and rows of recorded files: texts, the place of a row, and the trials of model-vs-human."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.arrays import Floats, Strings
from cuebench.errors import UserError, all_problems
from cuebench.observers.model_vs_human import Trial, data_set_of_file, parse_name, trial_of

if TYPE_CHECKING:
    import pyarrow as pa

DATA_SET = "data_set"
"""Column of a tidy file of raw data that names the data set of each trial."""
NO_ANSWERS = {"", "na", "n/a", "nan", "none", "null"}
"""What stands in a cell without a value."""
SLOWEST = 120
"""Longest median of response times, in seconds."""
TEXTS = {".csv", ".tsv"}
"""Endings of tables as text, whose lines can be named."""


def where(file: Path, row: int) -> str:
    """Return ``FILE line 7`` for a CSV (the header is line 1) and ``FILE row 6`` for Parquet."""
    return f"{file} line {row + 2}" if file.suffix.lower() in TEXTS else f"{file} row {row + 1}"


def cells_of(table: pa.Table, column: str) -> list[str]:
    """Return a column as texts without spaces around them; an empty one where there is no value."""
    return [str("" if v is None else v).strip() for v in table[column].to_pylist()]


def named_column(file: Path, table: pa.Table, column: str) -> Strings:
    """Return a column of names; every row must have one."""
    values = cells_of(table, column)
    empty = [i for i, v in enumerate(values) if not v]
    if empty:
        raise UserError(f"{where(file, empty[0])}: column {column} is empty", "every row needs one")
    return checked_texts(file, column, values)


def checked_texts(file: Path, column: str, values: list[str]) -> Strings:
    """Return texts as an array, which would drop null characters at their end."""
    null = next((i for i, value in enumerate(values) if "\0" in value), None)
    if null is not None:
        raise UserError(f"{where(file, null)}: column {column} holds a null character", "remove it")
    return np.array(values)


def names_of(data_set: str, names: Sequence[str]) -> Sequence[str]:
    """Return the names of one data set; all of them where they are names of something else.

    >>> names_of("edge", ["edge/cat/cat1", "sketch/cat/cat-1"])
    ['edge/cat/cat1']
    """
    trials = {name: parse_name(name) for name in names}
    if not any(trials.values()):
        return names
    return [name for name, trial in trials.items() if trial is not None and trial.data_set == data_set]


def trials_of(file: Path, table: pa.Table) -> list[Trial]:
    """Return what each row of raw data shows, where they belong to data sets of model-vs-human; else nothing.

    The column ``data_set`` says which, or the name of the file's folder, or the beginning of the file's name.

    Raises
    ------
    UserError
        With the lines whose data set, condition or category there is not.
    """
    known = data_set_of_file(file)
    if not known and DATA_SET not in table.column_names:
        return []
    images = named_column(file, table, "imagename").tolist()
    sets = [known] * len(images) if DATA_SET not in table.column_names else named_column(file, table, DATA_SET).tolist()
    conditions, categories = (texts_of(table, column) for column in ("condition", "category"))
    trials = [trial_of(*parts) for parts in zip(sets, images, conditions, categories)]
    problems = [f"{where(file, row)}: {problem}" for row, problem in enumerate(trials) if isinstance(problem, str)]
    if problems:
        raise all_problems(f"{file}", problems, "correct these rows, or leave them out")
    return [trial for trial in trials if isinstance(trial, Trial)]


def texts_of(table: pa.Table, column: str) -> list[str]:
    """Return a column as texts; empty ones where there is no such column or value."""
    if column not in table.column_names:
        return [""] * table.num_rows
    values = cells_of(table, column)
    return ["" if v.lower() in NO_ANSWERS else v for v in values]


def numbers_of(file: Path, table: pa.Table, column: str) -> Floats:
    """Return a column of numbers; empty cells and ``na`` are NaN, anything else that is no number is refused."""
    import pyarrow as pa

    values = table[column]
    try:
        return np.asarray(values.cast(pa.float64()).to_numpy(), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        numbers = np.array([_number(v) for v in values.to_pylist()], dtype=object)
    # Empty cells and 'na' are missing values, as in the public raw data; anything else that is no number is a mistake.
    bad = [i for i, n in enumerate(numbers) if n is None]
    if bad:
        raise UserError(
            f"{where(file, bad[0])}: column {column} is {values[bad[0]].as_py()!r}, not a number",
            "write a number or NaN",
        )
    return numbers.astype(np.float64)


def seconds_of(file: Path, table: pa.Table) -> Floats:
    """Return the response times in the column ``rt``; NaN where there is none, milliseconds are refused."""
    if "rt" not in table.column_names:
        return np.full(table.num_rows, np.nan)
    times = numbers_of(file, table, "rt")
    check_seconds(file, times)
    return times


def check_seconds(file: Path, times: Floats) -> None:
    """Raise where response times are too long to be in seconds."""
    known = times[np.isfinite(times)]
    if len(known) and np.median(known) > SLOWEST:
        raise UserError(
            f"{file}: column rt has the median {np.median(known):,.0f}, which looks like milliseconds",
            "divide it by 1000: rt is in seconds",
        )


def _number(value: Any) -> float | None:
    text = str("" if value is None else value).strip()
    try:
        # Python reads 1_000 as a number; in a table it is a spelling mistake.
        return np.nan if text.lower() in NO_ANSWERS else float(text if "_" not in text else "no number")
    except ValueError:
        return None
