"""The raw responses of model-vs-human as one tidy table: a row for each trial of every person and every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.observers.model_vs_human import DATA_SETS, PERSON, data_set_of_file, uncovered
from cuebench.observers.recorded_columns import RAW, RAW_NEEDED
from cuebench.observers.recorded_files import read_table
from cuebench.observers.recorded_rows import check_seconds, trials_of, where

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Mapping[str, str] = {
    "data_set": "one of the 17 data sets, as its folder is called",
    "subj": "who answered, as in the raw data; subject-01 of two data sets are two people",
    "kind": "person or model",
    "session": "session of the experiment",
    "trial": "number of the trial",
    "rt": "response time in seconds; empty for models",
    "object_response": "the answer; na: none in time",
    "category": "the correct answer",
    "condition": "condition in the spelling of cuebench; empty in data sets with one condition",
    "image": "<data set>/<condition>/<category>/<image>: the same for everyone who saw it",
    "imagename": "name of the image file, as in the raw data",
    "file": "file that the row comes from",
}
"""Column → meaning."""


@dataclass(frozen=True)
class RawData:
    """What a folder of raw responses holds.

    Parameters
    ----------
    table : pyarrow.Table
        With the columns of `COLUMNS`, in the order of files and trials.
    unknown : tuple of str
        Files that belong to no data set and were left out.
    gaps : tuple of str
        Files of models that do not cover the trials that people saw.
    """

    table: pa.Table
    unknown: tuple[str, ...]
    gaps: tuple[str, ...]

    def summary(self) -> list[dict[str, Any]]:
        """Return a row for each data set: files, people, models, trials."""
        columns = {name: self.table[name].to_pylist() for name in ("data_set", "subj", "kind", "file")}
        by_data_set: dict[str, dict[str, set[str]]] = {}
        trials: dict[str, int] = {}
        for data_set, subject, kind, file in zip(*columns.values()):
            who = by_data_set.setdefault(data_set, {"person": set(), "model": set(), "file": set()})
            who[kind].add(subject)
            who["file"].add(file)
            trials[data_set] = trials.get(data_set, 0) + 1
        return [
            {
                "data set": name,
                "files": len(by_data_set[name]["file"]),
                "people": len(by_data_set[name]["person"]),
                "models": len(by_data_set[name]["model"]),
                "trials": trials[name],
            }
            for name in DATA_SETS
            if name in by_data_set
        ]


def read_raw_data(folder: str | Path) -> RawData:
    """Read the folder ``raw-data`` of model-vs-human, or the folder that holds it.

    Parameters
    ----------
    folder : path
        Holds ``<data set>/*.csv``, or a folder ``raw-data`` that does.

    Raises
    ------
    UserError
        With every file that cannot be read, and every trial that occurs twice.
    """
    import pyarrow as pa

    root = Path(folder).expanduser()
    root = root / "raw-data" if (root / "raw-data").is_dir() else root
    if not root.is_dir():
        raise UserError(f"{root} is no folder", "name the folder raw-data of model-vs-human, with <data set>/*.csv")
    files = [file for file in sorted(root.rglob("*")) if _is_csv(file)]
    unknown = tuple(f.relative_to(root).as_posix() for f in files if not data_set_of_file(f))
    tables, problems = [], []
    for file in files:
        if not data_set_of_file(file):
            continue
        try:
            tables.append(_tidy(file, file.relative_to(root).as_posix()))
        except UserError as error:
            problems.append(error.message)
    if problems:
        raise all_problems(f"{len(problems)} of {len(files)} files", problems, "correct these files, or move them away")
    if not tables:
        known = ", ".join(DATA_SETS)
        raise UserError(f"{root} holds no raw responses", f"expected <data set>/*.csv; data sets: {known}")
    table = pa.concat_tables(tables)
    _check_repeats(table)
    return RawData(table, unknown, _gaps(table))


def _tidy(file: Path, name: str) -> pa.Table:
    """Return the rows of one file in the columns of `COLUMNS`."""
    import pyarrow as pa

    table, _ = read_table(file)
    missing = [c for c in RAW_NEEDED if c not in table.column_names]
    if missing:
        raise UserError(f"{file}: missing columns {', '.join(missing)}")
    trials = trials_of(file, table)
    texts = {c: _texts(table, c) for c in RAW if c in table.column_names}
    empty = [""] * table.num_rows
    subjects = texts["subj"]
    values: dict[str, Sequence[Any]] = {
        "data_set": [t.data_set for t in trials],
        "subj": subjects,
        "session": texts.get("session", empty),
        "trial": texts.get("trial", empty),
        "rt": [_number(text, file, row) for row, text in enumerate(texts["rt"])],
        "object_response": texts["object_response"],
        "category": [t.category for t in trials],
        "condition": [t.condition for t in trials],
        "image": [t.name for t in trials],
        "imagename": texts["imagename"],
        "file": [name] * table.num_rows,
    }
    check_seconds(file, np.array([np.nan if rt is None else rt for rt in values["rt"]]))
    timed = {s for s, rt in zip(subjects, values["rt"]) if rt is not None}
    values["kind"] = ["person" if PERSON.fullmatch(s) or s in timed else "model" for s in subjects]
    return pa.table({c: pa.array(values[c], pa.float64() if c == "rt" else pa.string()) for c in COLUMNS})


def _is_csv(file: Path) -> bool:
    return file.suffix.lower() == ".csv" and not file.name.startswith(".") and not file.is_dir()


def _texts(table: pa.Table, column: str) -> list[str]:
    return [str("" if v is None else v).strip() for v in table[column].to_pylist()]


def _number(text: str, file: Path, row: int) -> float | None:
    if text.lower() in ("", "na", "nan"):
        return None
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{where(file, row)}: column rt is {text!r}, not a number") from None


def _check_repeats(table: pa.Table) -> None:
    first: dict[tuple[str, str], str] = {}
    repeats = []
    for subject, image, file in zip(*(table[c].to_pylist() for c in ("subj", "image", "file"))):
        if (subject, image) in first:
            repeats.append(f"{subject} answered {image!r} in {first[subject, image]} and again in {file}")
        first.setdefault((subject, image), file)
    if repeats:
        raise all_problems("repeated trials", repeats, "keep one row for each subject and image")


def _gaps(table: pa.Table) -> tuple[str, ...]:
    """Return the files of models that do not cover what people saw in the same data set."""
    seen: dict[str, set[str]] = {}
    answered: dict[tuple[str, str], set[str]] = {}
    for data_set, kind, image, file in zip(*(table[c].to_pylist() for c in ("data_set", "kind", "image", "file"))):
        if kind == "person":
            seen.setdefault(data_set, set()).add(image)
        else:
            answered.setdefault((data_set, file), set()).add(image)
    return tuple(uncovered(seen, answered))
