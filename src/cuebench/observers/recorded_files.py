"""Files of recorded answers: their formats and columns; errors name the file, the line and the column."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from cuebench.arrays import Floats, Strings
from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace
from cuebench.observers.guess import TABLES
from cuebench.observers.model_vs_human import DATA_SETS
from cuebench.observers.recorded_columns import (
    CHOICE_SHAPE,
    CHOICE_TEXTURE,
    DECISION,
    FORMATS,
    KNOWN,
    LISTS,
    NUMBERED,
    OTHER_MATCH,
    PEOPLE,
    RAW,
    RAW_ANSWER,
    RAW_NEEDED,
    READING,
    STIMULUS,
    TRIPLET,
    TRUTH,
    WORDS,
    check_one_answer,
    chosen_column,
    counts_rows,
    listing,
    same_words,
    spelled,
    subject_column,
    unused_columns,
)
from cuebench.observers.recorded_csv import read_csv_bytes
from cuebench.observers.recorded_names import image_of_trial, same_stimulus, stimulus_key
from cuebench.observers.recorded_rows import (
    NO_ANSWERS,
    cells_of,
    checked_texts,
    named_column,
    seconds_of,
    texts_of,
    trials_of,
    where,
)
from cuebench.observers.recorded_scores import scores_of
from cuebench.observers.study_export import COLUMNS as OF_EXPORT
from cuebench.observers.study_export import answers_of, as_recorded, check_all_count, is_export
from cuebench.reading import file_kind_problem, is_regular, parse_parquet, read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["raw data", "predictions", "triplet choices", "study"]
NO_ANSWER = "na"
"""How 'no answer' is stored: a trial that counts as undecided and is never dropped."""

OTHER_TABLES = (
    *(".xlsx", ".xlsm", ".xls", ".ods", ".json", ".jsonl", ".ndjson", ".txt", ".tab", ".dat", ".feather", ".arrow"),
    *(".pkl", ".npy", ".npz", ".mat", ".sav", ".dta", ".rds", ".h5", ".hdf5", ".db", ".sqlite"),
    *(".gz", ".bz2", ".xz", ".zst", ".zip", ".7z", ".tar", ".tgz", ".part"),
)
"""Endings of files that may hold answers in a form that is not read."""
NO_TABLES = ("readme", "license", "licence", "citation", "labels.json")
"""How names of files begin that hold none."""
LARGEST = 16 << 30
"""Most bytes of a recorded file."""


@dataclass(frozen=True)
class Recording:
    """The columns of one file, one row for each trial.

    ``logits`` are those of the file, or the logarithms of its probabilities, which softmax turns back. ``classes`` are
    the label names where the file has one column for each class. ``truths``: the shape and texture of each stimulus,
    where the file has such columns; an empty text says nothing. ``people``: the column of who answered is that of
    people; the public raw data have one column for people and models. ``anonymous``: there is none, and ``unused`` are
    the columns that may be it. ``data_sets`` names the data sets of model-vs-human that raw data belong to, where that
    is known; ``names`` are then those of `Trial.name`. ``kinds``: subject → person or model, where raw data say it.
    ``in_words``: the decisions may be what a model wrote. ``notes``: subject → what was left out of its trials, and
    under the empty name those of the pooled people.
    """

    file: Path
    format: Format
    names: Strings
    subjects: Strings
    rt: Floats
    decisions: Strings | None
    logits: Floats | None
    classes: tuple[str, ...]
    digest: str
    people: bool = False
    anonymous: bool = False
    unused: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    in_words: bool = False
    sessions: Strings | None = None
    choices: Strings | None = None
    data_sets: tuple[str, ...] = ()
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    truths: Mapping[str, Strings] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def where(self, row: int) -> str:
        """Return the place of a row as a user finds it in an editor."""
        return where(self.file, row)


def files_of(path: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Return the file itself, or the CSV, TSV and Parquet files of a folder in the order of their names, and a note.

    Of a folder of raw data of model-vs-human, the files of its data sets: ``<data set>/*.csv``. It is published with
    further folders of tables that are no answers: those are left out, and the note names them.

    Raises
    ------
    UserError
        There is none, or the folder holds other tables, or folders of tables: nothing of it is left out in silence.
    """
    if is_regular(path):
        if path.suffix.lower() not in TABLES:
            raise UserError(f"recorded responses {path}: not a .csv, .tsv or .parquet file", FORMATS)
        return [path], ()
    if file_kind_problem(path) != "a folder, not a file":
        raise UserError(f"recorded responses {path}: no such file or folder", "write recorded:FILE or recorded:FOLDER")
    sets = [path / name for name in DATA_SETS if (path / name).is_dir()]
    inside = [f for folder in (path, *sets) for f in folder.iterdir() if not f.name.startswith(".") and f not in sets]
    others = [f for f in inside if (_tables_below(f) if f.is_dir() else _is_other_table(f))]
    no_answers = [f for f in others if sets and f.is_dir() and not any(map(_may_hold_answers, _tables_below(f)))]
    if others := [f for f in others if f not in no_answers]:
        raise all_problems(
            f"recorded responses {path}: tables that are not read",
            [f"{f.relative_to(path)}{'/' * f.is_dir()}" for f in sorted(others)],
            "save them as .csv in this folder if they are answers, and move them out of it if not; a folder is an "
            "observer of its own: recorded:FOLDER",
        )
    files = [f for f in inside if f.suffix.lower() in TABLES and not f.is_dir()]
    if not files:
        raise UserError(f"recorded responses {path}: the folder holds no .csv, .tsv or .parquet file", FORMATS)
    names = ", ".join(sorted(f"{f.name}/" for f in no_answers))
    return sorted(files), (f"left out of {path.name}: {names} (tables that are no answers)",) if names else ()


def _is_other_table(file: Path) -> bool:
    """Tell whether a file may hold answers in a form that is not read."""
    name = file.name.lower()
    return name.endswith(OTHER_TABLES) and not name.startswith(NO_TABLES)


def _tables_below(folder: Path) -> list[Path]:
    """Return the tables anywhere below a folder."""
    found = (Path(where, name) for where, _, names in os.walk(folder) for name in names if not name.startswith("."))
    return [file for file in found if file.suffix.lower() in TABLES or _is_other_table(file)]


def _may_hold_answers(file: Path) -> bool:
    """Tell whether a table names stimuli, or cannot be read."""
    if file.suffix.lower() not in TABLES:
        return True
    try:
        table = _table(file, read_bytes(file, "recorded responses", most=LARGEST))
        return bool(stimulus_column(file, table)) or not set(TRIPLET).isdisjoint(table.column_names)
    except UserError:
        return True


def read_recording(
    file: Path, labels: LabelSpace | None, values: str = "", *, whole: bool = True, task: str = ""
) -> Recording:
    """Read one file.

    Parameters
    ----------
    file : Path
        CSV or Parquet.
    labels : LabelSpace or None
        Classes to look for as column names.
    values : str
        ``logits`` or ``probabilities`` says what the numbers are. Empty: as the columns are called (``logit_0``,
        ``prob_0``); those of classes hold probabilities where no number is below 0 or above 1.
    whole : bool
        Where one class has a column, all must have one. False: the file may be about some of the classes.
    task : str
        Only the answers to this task of a study.
    """
    table, digest = read_table(file)
    columns = set(table.column_names)
    if is_export(columns):
        return _study(file, table, digest, task)
    if task:
        raise UserError(f"{file} is no export of a study: it has no task {task!r}", "leave ?task= out")
    if set(TRIPLET) <= columns:
        return _choices(file, table, digest)
    is_raw = _is_raw(columns)
    stimulus, subject, decision = RAW_ANSWER if is_raw else _own_columns(file, table)
    if not stimulus:
        raise UserError(f"{file}: no stimulus column ({'/'.join(STIMULUS)}); found {listing(table)}", FORMATS)
    scores = None if is_raw else scores_of(file, table, labels, values, whole)
    if not decision and scores is None:
        raise UserError(f"{file}: no logits, probabilities or decision; found {listing(table)}", FORMATS)
    if decision and scores is None and labels is not None and not is_raw:
        check_one_answer(file, table, decision, labels)
    trials = trials_of(file, table) if is_raw else []
    names = [image_of_trial(name) if is_raw else name for name in named_column(file, table, stimulus).tolist()]
    subjects = named_column(file, table, subject) if subject else np.full(table.num_rows, file.stem)
    return Recording(
        file=file,
        format="raw data" if is_raw else "predictions",
        names=np.array([trial.name for trial in trials] or names),
        subjects=subjects,
        rt=seconds_of(file, table),
        decisions=_decisions(file, table, decision) if decision else None,
        logits=scores.logits if scores else None,
        classes=scores.classes if scores else (),
        digest=digest,
        people=not is_raw and subject in PEOPLE,
        kinds=_kinds(table, subjects) if is_raw else {},
        anonymous=not subject,
        unused=() if subject or scores else unused_columns(table, labels),
        in_words=decision == WORDS,
        sessions=checked_texts(file, "session", cells_of(table, "session")) if "session" in columns else None,
        data_sets=tuple(dict.fromkeys(trial.data_set for trial in trials)),
        truths={name: np.array(texts_of(table, name)) for name in TRUTH[:2] if name in columns},
        notes=dict.fromkeys(["", *subjects.tolist()], scores.notes) if scores and scores.notes else {},
    )


def _kinds(table: pa.Table, subjects: Strings) -> dict[str, str]:
    """Return subject → person or model by the column ``kind`` of `raw_data`; nothing where it says something else."""
    pairs = set(zip(subjects.tolist(), texts_of(table, "kind")))
    kinds = dict(pairs)
    return kinds if len(kinds) == len(pairs) and {*kinds.values()} <= {"person", "model"} else {}


def _own_columns(file: Path, table: pa.Table) -> tuple[str, str, str]:
    """Return the columns of stimulus, subject and answer in a file of the user's."""
    # Beside what a model wrote, pred_label is somebody else's reading of it, as in published answers of chat models.
    answers = [name for name in DECISION if name != READING or WORDS not in table.column_names]
    return (
        stimulus_column(file, table),
        subject_column(file, table),
        chosen_column(file, table, "the answer", answers, same_words, empty_says=True),
    )


def stimulus_column(file: Path, table: pa.Table) -> str:
    """Return the column of the names of the pictures; an empty name where there is none."""
    return chosen_column(file, table, "the stimulus", STIMULUS, same_stimulus)


def _choices(file: Path, table: pa.Table, digest: str) -> Recording:
    """Read choices between the two matches of triplets; each trial is named by its condition and its three images."""
    columns = set(table.column_names)
    others = [column for column in OTHER_MATCH if column in columns]
    if len(others) != 1:
        what = "no column of the other match" if not others else f"both {' and '.join(others)}"
        raise UserError(f"{file}: {what}", f"one of {', '.join(OTHER_MATCH)}")
    images = [_images(file, table, column) for column in ("anchor", "shape_match", others[0])]
    default = OTHER_MATCH[others[0]]
    named = [default] * table.num_rows
    if "condition" in columns:
        conditions = _decisions(file, table, "condition").tolist()
        named = [condition if condition != NO_ANSWER else default for condition in conditions]
    answers = _decisions(file, table, "choice")
    chosen, problems = [], []
    for row, answer in enumerate(answers):
        name = stimulus_key(str(answer)).rpartition("/")[2]
        meaning = {
            NO_ANSWER: NO_ANSWER,
            images[2][row]: CHOICE_TEXTURE,
            images[1][row]: CHOICE_SHAPE,
            others[0].removesuffix("_match"): CHOICE_TEXTURE,
            CHOICE_TEXTURE: CHOICE_TEXTURE,
            CHOICE_SHAPE: CHOICE_SHAPE,
        }.get(name)
        problems += [f"{where(file, row)}: choice {str(answer)!r} is neither match"] if meaning is None else []
        chosen.append(meaning or NO_ANSWER)
    if problems:
        raise all_problems(
            f"choices of {file}", problems, "write shape, texture, the name of a match, or leave it empty"
        )
    subject = subject_column(file, table)
    return Recording(
        file=file,
        format="triplet choices",
        names=np.array(["|".join(trial) for trial in zip(named, *images)]),
        subjects=named_column(file, table, subject) if subject else np.full(table.num_rows, file.stem),
        rt=seconds_of(file, table),
        decisions=None,
        logits=None,
        classes=(),
        digest=digest,
        people=subject in PEOPLE,
        anonymous=not subject,
        unused=() if subject else unused_columns(table, None),
        choices=np.array(chosen),
    )


def _study(file: Path, table: pa.Table, digest: str, task: str) -> Recording:
    """Read the export of a study: every participant is a person, reaction times are in seconds as in raw data."""
    recorded = as_recorded(file, answers_of(file, table), task)
    answers = recorded.answers
    decided = [choice or NO_ANSWER for choice in recorded.choices]
    return Recording(
        file=file,
        format="triplet choices" if recorded.are_choices else "study",
        names=np.array(recorded.names),
        subjects=np.array([a.participant for a in answers]),
        rt=np.array([a.rt_ms for a in answers]) / 1000,
        decisions=None if decided else np.array([a.response[0] if a.response else NO_ANSWER for a in answers]),
        logits=None,
        classes=(),
        digest=digest,
        people=True,
        choices=np.array(decided) if decided else None,
        notes=recorded.notes,
    )


def _images(file: Path, table: pa.Table, column: str) -> list[str]:
    """Return the names of images without folders and endings."""
    names = [stimulus_key(str(name)).rpartition("/")[2] for name in named_column(file, table, column)]
    bad = next((i for i, name in enumerate(names) if "|" in name), None)
    if bad is not None:
        raise UserError(f"{where(file, bad)}: column {column} is {names[bad]!r}", "a name without |")
    return names


def read_table(file: Path) -> tuple[pa.Table, str]:
    """Return the columns of a file, those of raw data in lower case, and the SHA-256 of its bytes.

    Raises
    ------
    UserError
        Where it cannot be read, holds no trial, lacks a column that raw data have, or says of rows that they do not
        count (exports of studies are read as such).
    """
    # Read once: the bytes that are hashed are the bytes that are read.
    data = read_bytes(file, "recorded responses", most=LARGEST)
    table = _table(file, data)
    if not table.num_rows:
        raise UserError(f"{file} holds no trial, only a header", "record some responses, or leave the file out")
    columns = set(table.column_names)
    if not is_export(columns):
        check_all_count(file, table)
    missing = [c for c in RAW_NEEDED if _is_raw(columns) and c not in columns]
    if missing:
        raise UserError(f"{file}: missing column{'s' * (len(missing) > 1)} {', '.join(missing)}", FORMATS)
    return table, hashlib.sha256(data).hexdigest()


def _table(file: Path, data: bytes) -> pa.Table:
    """Return the table in the bytes of a file: no spaces around names of columns, known ones in lower case."""
    table = (
        parse_parquet(data, str(file), hint=FORMATS)
        if file.suffix.lower() == ".parquet"
        else read_csv_bytes(file, data, hint=FORMATS)
    )
    known = KNOWN | OF_EXPORT if is_export(table.column_names) else KNOWN
    names = [spelled(name.strip(), known) for name in table.column_names]
    for column in [i for i, name in enumerate(names) if i and not name]:
        cells = [str(cell) for cell in table[column].to_pylist()]
        if any(cells) and not counts_rows(cells):  # the right half of numbers such as 0,84, for example
            raise UserError(f"{file}: column {column + 1} has values and no name", "name it, or remove it")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise UserError(f"{file}: column {repeated[0]!r} occurs twice", "rename or remove one of them")
    return table.rename_columns(names).replace_schema_metadata(table.schema.metadata)


def _is_raw(columns: set[str]) -> bool:
    """Tell raw data by ``object_response``, or by most of its other columns where there is no other answer."""
    answers = columns & {*DECISION, *LISTS} or any(map(NUMBERED.match, columns))
    return "object_response" in columns or (len(columns & set(RAW)) >= 4 and not answers)


def _decisions(file: Path, table: pa.Table, column: str) -> Strings:
    values = cells_of(table, column)
    return checked_texts(file, column, [NO_ANSWER if v.lower() in NO_ANSWERS else v for v in values])
