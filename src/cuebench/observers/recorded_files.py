"""Files of recorded answers: their formats and columns; errors name the file, the line and the column."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from cuebench.arrays import Counts, Floats, Strings
from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace
from cuebench.observers.model_vs_human import DATA_SETS
from cuebench.observers.recorded_csv import read_csv_bytes
from cuebench.observers.recorded_rows import (
    DATA_SET,
    NO_ANSWERS,
    cells_of,
    checked_texts,
    named_column,
    numbers_of,
    trials_of,
    where,
)
from cuebench.observers.study_export import answers_of, as_recorded, is_export
from cuebench.reading import file_kind_problem, is_regular, parse_parquet, read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["raw data", "predictions", "triplet choices", "study"]

RAW = ("subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename")
RAW_NEEDED = ("subj", "rt", "object_response", "imagename")
STIMULUS = ("stimulus", "image", "imagename", "id", "image_name", "filename", "file", "picture", "path")
SUBJECT = ("observer", "subject", "subj", "participant")
PEOPLE = ("subject", "subj", "participant")
WORDS = "response"
"""The one decision column that may hold what a model wrote instead of a class (`observers.chat.recorded`)."""
DECISION = ("decision", "decisions", WORDS, "answer", "prediction", "pred_label")
LISTS = ("logits", "probabilities", "probs")
TRIPLET = ("anchor", "shape_match", "choice")
"""Columns of recorded choices between the matches of triplets, beside one of `OTHER_MATCH`."""
OTHER_MATCH = {"texture_match": "choices", "size_match": "novel/match=size", "colour_match": "novel/match=colour"}
"""Column of the match that does not share the shape → condition of the trials where the file names none."""
CHOICE_SHAPE, CHOICE_TEXTURE = "shape", "texture"
"""How a choice is stored: the shape match, or the other one."""
RESERVED = {*RAW, DATA_SET, *STIMULUS, *SUBJECT, *DECISION, *LISTS}
TRUTH = ("shape", "texture", "shape_source", "texture_source")
"""What may be known of the stimulus of a row."""
KNOWN = {*RESERVED, *TRIPLET, *OTHER_MATCH, *TRUTH}
"""Columns whose names may be capitalised."""
NO_ANSWER = "na"
"""How 'no answer' is stored: a trial that counts as undecided and is never dropped."""

LARGEST = 16 << 30
"""Most bytes of a recorded file."""
_NUMBERED = re.compile(r"^(logit|prob)(?:s|ability|abilities)?_(\d+)$")
_IMAGE = {"png", "jpg", "jpeg", "webp", "bmp", "tif", "tiff", "gif", "ppm"}
# The names of the public raw data: trial_experiment_subject_condition_category_number_IMAGE.
_TRIAL = re.compile(r"^\d+_[^_]+_[^_]+_[^_]+_[^_]+_\d+_(.+)$")
# The smallest float32: softmax of its logarithm gives 0 in every printed digit, and the logit stays finite.
_SMALLEST = float(np.finfo(np.float32).tiny)
_FORMATS = (
    "expected the raw-data columns " + ",".join(RAW) + ", or a stimulus column "
    f"({'/'.join(STIMULUS)}) with logit_0…, prob_0…, a list column logits, one column for each class, or a decision "
    f"({'/'.join(DECISION)}), and who answered where there are several ({'/'.join(SUBJECT)}); "
    "or choices between matches: anchor, shape_match, texture_match, choice; or the export of a study"
)


@dataclass(frozen=True)
class Recording:
    """The columns of one file, one row for each trial.

    ``logits`` are those of the file, or the logarithms of its probabilities, which softmax turns back. ``classes`` are
    the label names where the file has one column for each class. ``people``: the file names subjects and has no column
    of response times, which would tell people from the models of the public raw data. ``data_sets`` names the data sets
    of model-vs-human that raw data belong to, where that is known; ``names`` are then those of `Trial.name`.
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
    in_words: bool = False
    sessions: Strings | None = None
    choices: Strings | None = None
    data_sets: tuple[str, ...] = ()
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def where(self, row: int) -> str:
        """Return the place of a row as a user finds it in an editor."""
        return where(self.file, row)


@lru_cache(maxsize=65_536)
def stimulus_key(name: str) -> str:
    """Return what identifies the image of a recorded name: no extension, no trial prefix, folders kept.

    >>> stimulus_key("0001_s5n_dnn_0_airplane_00_airplane1-bicycle2.png")
    'airplane1-bicycle2'
    >>> stimulus_key("cats/1.jpg")
    'cats/1'
    """
    path = name.strip().replace("\\", "/")
    stem, dot, suffix = path.rpartition(".")
    path = stem if dot and suffix.lower() in _IMAGE else path
    trial = _TRIAL.match(path.rpartition("/")[2])
    return trial.group(1) if trial else path.removeprefix("./")


def files_of(path: Path) -> list[Path]:
    """Return the file itself, or the CSV and Parquet files of a folder in the order of their names.

    Of a folder of raw data of model-vs-human, the files of its data sets: ``<data set>/*.csv``.
    """
    if is_regular(path):
        if path.suffix.lower() not in {".csv", ".parquet"}:
            raise UserError(f"recorded responses {path}: not a .csv or .parquet file", _FORMATS)
        return [path]
    if file_kind_problem(path) != "a folder, not a file":
        raise UserError(f"recorded responses {path}: no such file or folder", "write recorded:FILE or recorded:FOLDER")
    folders = [path, *(path / name for name in DATA_SETS if (path / name).is_dir())]
    files = [f for folder in folders for f in folder.iterdir() if _is_recording(f)]
    if not files:
        raise UserError(f"recorded responses {path}: the folder holds no .csv or .parquet file", _FORMATS)
    return sorted(files)


def _is_recording(file: Path) -> bool:
    return file.suffix.lower() in {".csv", ".parquet"} and not file.name.startswith(".") and not file.is_dir()


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
        ``logits`` or ``probabilities`` says what class columns hold; empty: probabilities where all rows are.
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
    stimulus = _first(columns, STIMULUS)
    if not stimulus:
        raise UserError(f"{file}: no stimulus column ({'/'.join(STIMULUS)}); found {_listing(table)}", _FORMATS)
    decision = "object_response" if is_raw else _first(columns, DECISION)
    logits, classes = (None, ()) if is_raw else _logits(file, table, labels, values, whole)
    if not decision and logits is None:
        raise UserError(f"{file}: no logits, probabilities or decision; found {_listing(table)}", _FORMATS)
    subject = _first(columns, SUBJECT)
    trials = trials_of(file, table) if is_raw else []
    return Recording(
        file=file,
        format="raw data" if is_raw else "predictions",
        names=np.array([trial.name for trial in trials]) if trials else named_column(file, table, stimulus),
        subjects=named_column(file, table, subject) if subject else np.full(table.num_rows, file.stem),
        rt=numbers_of(file, table, "rt") if "rt" in columns else np.full(table.num_rows, np.nan),
        decisions=_decisions(file, table, decision) if decision else None,
        logits=logits,
        classes=classes,
        digest=digest,
        people="rt" not in columns and subject in PEOPLE,
        in_words=decision == WORDS,
        sessions=checked_texts(file, "session", cells_of(table, "session")) if "session" in columns else None,
        data_sets=tuple(dict.fromkeys(trial.data_set for trial in trials)),
    )


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
    subject = _first(columns, SUBJECT)
    return Recording(
        file=file,
        format="triplet choices",
        names=np.array(["|".join(trial) for trial in zip(named, *images)]),
        subjects=named_column(file, table, subject) if subject else np.full(table.num_rows, file.stem),
        rt=numbers_of(file, table, "rt") if "rt" in columns else np.full(table.num_rows, np.nan),
        decisions=None,
        logits=None,
        classes=(),
        digest=digest,
        people="rt" not in columns and subject in PEOPLE,
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
        Where it cannot be read, holds no trial, or lacks a column that raw data have.
    """
    # Read once: the bytes that are hashed are the bytes that are read.
    data = read_bytes(file, "recorded responses", most=LARGEST)
    table = _table(file, data)
    if not table.num_rows:
        raise UserError(f"{file} holds no trial, only a header", "record some responses, or leave the file out")
    columns = set(table.column_names)
    missing = [c for c in RAW_NEEDED if _is_raw(columns) and c not in columns]
    if missing:
        raise UserError(f"{file}: missing column{'s' * (len(missing) > 1)} {', '.join(missing)}", _FORMATS)
    return table, hashlib.sha256(data).hexdigest()


def _table(file: Path, data: bytes) -> pa.Table:
    """Return the table in the bytes of a file: no spaces around names of columns, known ones in lower case."""
    table = (
        parse_parquet(data, str(file), hint=_FORMATS)
        if file.suffix.lower() == ".parquet"
        else read_csv_bytes(file, data, hint=_FORMATS)
    )
    names = [name.strip() for name in table.column_names]
    names = [name.lower() if name.lower() in KNOWN and name.lower() not in names else name for name in names]
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise UserError(f"{file}: column {repeated[0]!r} occurs twice", "rename or remove one of them")
    return table.rename_columns(names)


def _is_raw(columns: set[str]) -> bool:
    """Tell raw data by ``object_response``, or by most of its other columns where there is no other answer."""
    answers = columns & {*DECISION, *LISTS} or any(map(_NUMBERED.match, columns))
    return "object_response" in columns or (len(columns & set(RAW)) >= 4 and not answers)


def _logits(
    file: Path, table: pa.Table, labels: LabelSpace | None, values: str, whole: bool
) -> tuple[Floats | None, tuple[str, ...]]:
    """Find the scores of the classes in one of the three accepted forms; None where there are only decisions."""
    numbered = [m for m in map(_NUMBERED.match, table.column_names) if m]
    listed = _first(set(table.column_names), LISTS)
    if numbered:
        columns = _in_order(file, [m.group(0) for m in numbered])
        scores, is_probability = _matrix(file, table, columns), numbered[0].group(1) == "prob"
        return (_log_probabilities(file, scores) if is_probability else scores), ()
    if listed:
        scores = _list_column(file, table, listed)
        return (scores if listed == "logits" else _log_probabilities(file, scores)), ()
    chosen = _class_columns(file, table, labels)
    if not chosen or labels is None:
        return None, ()
    if whole:
        check_all_classes(file, labels, [labels.names[i] for i in chosen])
    scores = _matrix(file, table, list(chosen.values()))
    if values == "probabilities" or (not values and _are_probabilities(scores)):
        scores = _log_probabilities(file, scores)
    return scores, tuple(labels.names[i] for i in chosen)


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
        rows = [_parsed_list(file, i, column, cell or "") for i, cell in enumerate(values.to_pylist())]
        return np.array([len(r) for r in rows]), np.array([v for r in rows for v in r], np.float64)
    try:
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
        return lengths.astype(np.int64), pc.list_flatten(values).cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        kind = f"{file}: column {column} has type {values.type}"
        raise UserError(kind, "write a list of numbers in each row") from None


def _parsed_list(file: Path, row: int, column: str, cell: str) -> list[float]:
    try:
        return [float(p) for p in re.split(r"[,;\s]+", cell.strip(" []()")) if p]
    except ValueError:
        raise UserError(f"{where(file, row)}: {column} is {cell[:40]!r}", "write [1.5, -0.2, …]") from None


def _are_probabilities(values: Floats) -> bool:
    return bool((values >= 0).all() and (np.abs(values.sum(axis=1) - 1) < 0.01).all())


def _log_probabilities(file: Path, values: Floats) -> Floats:
    bad = np.flatnonzero((values < 0).any(axis=1) | (np.abs(values.sum(axis=1) - 1) >= 0.01))
    if len(bad):
        row, total = int(bad[0]), values[bad[0]].sum()
        raise UserError(
            f"{where(file, row)}: the probabilities are not in [0, 1] with sum 1 (smallest {values[row].min():.4g}, "
            f"sum {total:.4g})",
            "give softmax outputs, or name the columns logit_0… where they are logits",
        )
    return np.log(np.maximum(values, _SMALLEST))


def _decisions(file: Path, table: pa.Table, column: str) -> Strings:
    values = cells_of(table, column)
    return checked_texts(file, column, [NO_ANSWER if v.lower() in NO_ANSWERS else v for v in values])


def _first(have: set[str], names: Sequence[str]) -> str:
    return next((n for n in names if n in have), "")


def _listing(table: pa.Table) -> str:
    names = table.column_names
    return ", ".join(names[:12]) + f" … ({len(names)} columns)" * (len(names) > 12)
