"""The stimuli of a table of answers: a set without pictures, for answers to stimuli of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cuebench.csv_text import csv_text
from cuebench.errors import UserError, all_problems
from cuebench.files import write_atomic, write_json
from cuebench.labels import spelled_differently
from cuebench.observers.recorded_columns import TRUTH
from cuebench.observers.recorded_files import read_table, stimulus_column
from cuebench.observers.recorded_names import stimulus_key
from cuebench.observers.recorded_rows import named_column, where
from cuebench.stimuli.own_conflicts import known_targets

ABOUT = "Classes of cue-conflict stimuli, from the shapes and textures of a table of answers."
FORM = "one row for each answer: stimulus, shape, texture, decision, and subject where there are several"


class Written(NamedTuple):
    """What was written: the table of stimuli, the map of their classes, and how many there are."""

    stimuli: Path
    labels: Path
    number: int
    classes: tuple[str, ...]


def write_stimuli(answers: Path, out: Path) -> Written:
    """Write ``out/cue_conflict/stimuli.csv`` and ``labels.json`` from the columns of a table of answers.

    Parameters
    ----------
    answers : Path
        CSV or Parquet as ``recorded:`` reads it, with the columns ``shape`` and ``texture`` (the class of each), and
        where they are known ``shape_source`` and ``texture_source``.
    out : Path
        Data root. Files that are there and differ are not overwritten.
    """
    table, _ = read_table(answers.expanduser())
    columns = table.column_names
    stimulus = stimulus_column(answers, table)
    missing = [name for name in ("shape", "texture") if name not in columns]
    if missing or not stimulus:
        lacks = [*missing, *([] if stimulus else ["stimulus"])]
        raise UserError(f"{answers}: no column {', '.join(lacks)}; found {', '.join(columns)}", f"expected {FORM}")
    truths = [name for name in TRUTH if name in columns]
    cells = [named_column(answers, table, name).tolist() for name in truths]
    rows: dict[str, tuple[str, ...]] = {}
    problems = []
    for row, (name, *values) in enumerate(zip(named_column(answers, table, stimulus).tolist(), *cells)):
        key = stimulus_key(name)
        before = rows.setdefault(key, tuple(values))
        if before != tuple(values):
            problems.append(f"{where(answers, row)}: {key!r} was {before}, here it is {tuple(values)}")
    if problems:
        raise all_problems(
            f"stimuli of {answers}", problems, "shape and texture of a stimulus are the same in all rows"
        )
    classes = sorted({value for row in rows.values() for value in row[:2]})
    if alike := spelled_differently(classes):
        raise all_problems(
            f"classes of {answers}", alike, "write each class in one way, in shape, texture and decision"
        )
    home = out.expanduser() / "cue_conflict"
    text = csv_text(["id", *truths], ([key, *row] for key, row in sorted(rows.items())))
    content, place = text.encode(), home / "stimuli.csv"
    if (place.is_file() and place.read_bytes() != content) or (home / "stimuli").is_dir():
        raise UserError(f"{home} holds another set already", "choose another --out")
    write_atomic(place, content)
    if not (home / "labels.json").is_file():
        write_json(home / "labels.json", {"about": ABOUT, "targets": known_targets(classes)})
    return Written(place, home / "labels.json", len(rows), tuple(classes))
