"""The export of a study with people (``cuebench study export``): one row for each answer of a participant.

A file is an export where it has the columns `MARKS`. Rows of kind ``trial`` that no rule excludes are answers;
practice, familiarisation and attention checks are none. ``docs/studies.md`` lists all columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError, all_problems
from cuebench.observers.model_vs_human import CATEGORIES, Trial, trial_of
from cuebench.observers.recorded_rows import named_column, numbers_of, texts_of, where

if TYPE_CHECKING:
    import pyarrow as pa

MARKS = frozenset({"participant", "task", "kind", "stimulus", "response", "excluded"})
"""Columns by which an export is known."""
_ONLY_HERE = frozenset({"rules_sha256", "planned_ms", "shown_ms", "focus_losses"})
"""Columns that nothing but an export has."""
EXCLUDED = ("excluded", "exclude")
"""What a column is called that says which rows do not count."""
BETWEEN = "|"
"""What joins several values in a cell: options, words, the images of a triplet."""
TRIAL = "trial"
_NO_TRIALS = {"familiarisation", "practice", "attention"}
TRIPLET, WORDS = "same_kind", "words"
"""Tasks whose answer is no class: one of two images, or texture words."""
_TASKS = {"shape", "texture", "category", TRIPLET, WORDS}
Chosen = Literal["shape", "texture", ""]
_TRUE, _FALSE = {"true", "1", "1.0", "yes", "y", "t"}, {"false", "0", "0.0", "no", "n", "f"}
_NO_REASON = "no reason given"
_TEXTS = (
    *("group", "block", "task", "kind", "stimulus", "shape", "texture", "label", "chosen", "excluded"),
    "rules_sha256",
)
_NUMBERS = ("position", "rt_ms", "planned_ms", "shown_ms", "focus_losses")
COLUMNS = MARKS | {*_TEXTS, *_NUMBERS, "options", "finished", "correct"}
"""All columns that are read; their names may be capitalised."""


@dataclass(frozen=True, slots=True)
class StudyAnswer:
    """One row of an export. Texts are empty and numbers NaN where there is no value.

    ``right`` is 1, 0, or NaN where there is no correct answer. ``row`` is the place in the file, from 0.
    """

    row: int
    participant: str
    group: str
    block: str
    task: str
    kind: str
    stimulus: str
    shape: str
    texture: str
    label: str
    options: tuple[str, ...]
    response: tuple[str, ...]
    right: float
    chosen: str
    finished: bool
    excluded: str
    rules: str
    position: float = np.nan
    rt_ms: float = np.nan
    planned_ms: float = np.nan
    shown_ms: float = np.nan
    focus_losses: float = np.nan

    @property
    def counts(self) -> bool:
        """Whether it is an answer to be analysed: a trial that no rule excludes."""
        return self.kind == TRIAL and not self.excluded

    @property
    def cues(self) -> tuple[str, str]:
        """Classes of shape and texture."""
        return self.shape, self.texture


def is_export(columns: Iterable[str]) -> bool:
    """Tell whether a table with these columns is the export of a study; capitals do not matter."""
    return {column.strip().lower() for column in columns} >= MARKS


def check_all_count(file: Path, table: pa.Table) -> None:
    """Raise where a table that is no export says of rows that they do not count, or was an export that could say so.

    Whatever is no export is read whole: practice, attention checks and excluded rows would be answers like all others.
    """
    names = {name.strip().lower(): name for name in table.column_names}
    kinds, tasks = (
        [text.lower() for text in texts_of(table, names[name])] if name in names else [] for name in ("kind", "task")
    )
    own = sorted(names[name] for name in _ONLY_HERE & names.keys())
    if len(MARKS & names.keys()) == len(MARKS) - 1 and not own:  # one is lost, and the others hold what an export says
        own += [names["kind"]] if kinds and {*kinds} <= {TRIAL, *_NO_TRIALS} else []
        own += [names["task"]] if tasks and {*tasks} <= _TASKS else []
    if own:
        raise UserError(
            f"{file} seems to be the export of a study, and has no column {', '.join(sorted(MARKS - names.keys()))}: "
            "which rows count, and for what, cannot be told",
            "write it anew: cuebench study export STUDY --out FILE; in a table of another program rename or remove "
            f"what only an export has: {', '.join(own)}",
        )
    left_out = {name: _reasons_of(texts_of(table, names[name])) for name in EXCLUDED if name in names}
    left_out["kind"] = [kind if kind in _NO_TRIALS else "" for kind in kinds]
    for column, reasons in left_out.items():
        rows = [row for row, reason in enumerate(reasons) if reason]
        if rows:
            name = names[column]
            raise UserError(
                f"{where(file, rows[0])}: the column {name} says that this row does not count ({len(rows):,} of "
                f"{table.num_rows:,} rows), and all rows of such a file are counted",
                f"remove these rows, and the column {name}",
            )


def answers_of(file: Path, table: pa.Table) -> list[StudyAnswer]:
    """Return the rows of an export.

    Raises
    ------
    UserError
        Where a column is missing or a value is none of those that can stand there.
    """
    missing = sorted(MARKS - set(table.column_names))
    if missing:
        raise UserError(
            f"{file} is no export of a study: missing column{'s' * (len(missing) > 1)} {', '.join(missing)}",
            "write one with: cuebench study export STUDY --out FILE",
        )
    people = named_column(file, table, "participant").tolist()
    texts = {name: texts_of(table, name) for name in _TEXTS}
    texts["kind"] = [kind.lower() for kind in texts["kind"]]
    texts["task"] = [task.lower() if task.lower() in {TRIPLET, WORDS} else task for task in texts["task"]]
    texts["excluded"] = _reasons_of(texts["excluded"])
    unknown = next((i for i, kind in enumerate(texts["kind"]) if kind not in {TRIAL, *_NO_TRIALS}), None)
    if unknown is not None:
        raise UserError(
            f"{where(file, unknown)}: column kind is {texts['kind'][unknown]!r}",
            f"write {TRIAL} for answers that count, and {', '.join(sorted(_NO_TRIALS))} for others",
        )
    options, responses = (_several(texts_of(table, name)) for name in ("options", "response"))
    finished, right = (_truths(file, table, name) for name in ("finished", "correct"))
    numbers = {name: _numbers(file, table, name) for name in _NUMBERS}
    return [
        StudyAnswer(
            row=i,
            participant=people[i],
            group=texts["group"][i],
            block=texts["block"][i],
            task=texts["task"][i],
            kind=texts["kind"][i],
            stimulus=texts["stimulus"][i],
            shape=texts["shape"][i],
            texture=texts["texture"][i],
            label=texts["label"][i],
            chosen=texts["chosen"][i],
            excluded=texts["excluded"][i],
            options=options[i],
            response=responses[i],
            right=float(right[i]),
            finished=bool(np.isnan(finished[i]) or finished[i]),
            rules=texts["rules_sha256"][i],
            position=float(numbers["position"][i]),
            rt_ms=float(numbers["rt_ms"][i]),
            planned_ms=float(numbers["planned_ms"][i]),
            shown_ms=float(numbers["shown_ms"][i]),
            focus_losses=float(numbers["focus_losses"][i]),
        )
        for i in range(table.num_rows)
    ]


def _reasons_of(cells: Sequence[str]) -> list[str]:
    """Return why each row is excluded; empty texts for rows that are not: also where the cell says false, no, 0, -."""
    plain = {**dict.fromkeys((*_FALSE, "-"), ""), **dict.fromkeys(_TRUE, _NO_REASON)}
    return [plain.get(cell.lower(), cell) for cell in cells]


def _several(cells: Sequence[str]) -> list[tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for cell in cells:
        if cell not in known:
            known[cell] = tuple(part for text in cell.split(BETWEEN) if (part := text.strip()))
    return [known[cell] for cell in cells]


def _numbers(file: Path, table: pa.Table, column: str) -> Floats:
    return numbers_of(file, table, column) if column in table.column_names else np.full(table.num_rows, np.nan)


def _truths(file: Path, table: pa.Table, column: str) -> Floats:
    """Return a column of true and false as 1, 0 and NaN for an empty cell."""
    cells = [text.lower() for text in texts_of(table, column)]
    bad = next((i for i, text in enumerate(cells) if text and text not in _TRUE | _FALSE), None)
    if bad is not None:
        raise UserError(
            f"{where(file, bad)}: column {column} is {cells[bad]!r}", "write true or false, or leave it empty"
        )
    return np.array([np.nan if not text else float(text in _TRUE) for text in cells])


# ---------------------------------------------------------------------------------------- as recorded responses


class Recorded(NamedTuple):
    """The answers of an export as the trials of a recording.

    ``names`` are those of the protocols' stimuli. ``notes`` says what was left out: participant → notes, and under the
    empty name those of all people together.
    """

    answers: tuple[StudyAnswer, ...]
    names: tuple[str, ...]
    choices: tuple[Chosen, ...]
    notes: Mapping[str, tuple[str, ...]]

    @property
    def are_choices(self) -> bool:
        """Whether the answers are choices between two images, not classes."""
        return self.answers[0].task == TRIPLET


def as_recorded(file: Path, rows: Sequence[StudyAnswer], task: str = "") -> Recorded:
    """Return the answers that count, each with the name of its stimulus.

    Parameters
    ----------
    file : Path
        Where they are from, for messages.
    rows : sequence of StudyAnswer
        All rows of the export.
    task : str
        Only this task: needed where people answered several questions about one image.

    Raises
    ------
    UserError
        Where nothing is left, or a person answered two questions about one image and no task was chosen.
    """
    tasks = tuple(dict.fromkeys(r.task for r in rows if r.kind == TRIAL))
    if task and task not in tasks:
        raise UserError(f"{file} has no task {task!r}", f"its tasks: {', '.join(tasks) or 'none'}")
    of_task = [r for r in rows if r.kind == TRIAL and task in ("", r.task)]
    answers = tuple(r for r in of_task if not r.excluded)
    if not answers:
        raise UserError(
            f"{file}: no answer is left ({_reasons(of_task) or 'no trials'})", "leave the file out, or ask more people"
        )
    if any(r.task == WORDS for r in answers):
        raise UserError(
            f"{file} holds texture words, which are several answers to one image and no class",
            f"see: cuebench study analyse {file}; and cuebench figure texture_judgements RUN --set answers=FILE",
        )
    if len({r.task == TRIPLET for r in answers}) > 1:
        raise UserError(
            f"{file} mixes choices between images with classes", f"choose one with ?task=: {', '.join(tasks)}"
        )
    _check_one_question(file, answers)
    choices: tuple[Chosen, ...] = ()
    if answers[0].task == TRIPLET:
        names, choices = _triplets(file, answers)
    else:
        names = tuple(_name(r) for r in answers)
    return Recorded(answers, names, choices, _notes(of_task))


def _name(answer: StudyAnswer) -> str:
    """Return the name of a stimulus; of a cue-conflict image, the one that human alignment knows too."""
    if set(answer.cues) <= set(CATEGORIES):
        trial = trial_of("cue-conflict", answer.stimulus, category=answer.shape)
        if isinstance(trial, Trial):
            return trial.name
    return answer.stimulus


def _check_one_question(file: Path, answers: Sequence[StudyAnswer]) -> None:
    asked: dict[tuple[str, str], str] = {}
    for r in answers:
        other = asked.setdefault((r.participant, r.stimulus), r.task)
        if other != r.task:
            raise UserError(
                f"{file}: people were asked for {other} and for {r.task} of the same image",
                f"choose one: recorded:{file}?task={other}, or ?task={r.task}",
            )


def _triplets(file: Path, answers: Sequence[StudyAnswer]) -> tuple[tuple[str, ...], tuple[Chosen, ...]]:
    """Return ``CONDITION|ANCHOR|SHAPE MATCH|OTHER MATCH`` of each trial, and which match was chosen."""
    names, choices, problems = list[str](), list[Chosen](), list[str]()
    for r in answers:
        parts = [part.partition("/") for part in r.stimulus.split(BETWEEN)]
        images = [image for image, _, _ in parts]
        shapes = [image.partition("-")[0] for image in images]
        if len(images) != 3 or (shapes[1] == shapes[0]) == (shapes[2] == shapes[0]):
            problems.append(f"{where(file, r.row)}: {r.stimulus!r} is no anchor|match|match of names SHAPE-TEXTURE")
            continue
        by_shape, other = (1, 2) if shapes[1] == shapes[0] else (2, 1)
        meaning: dict[str, Chosen] = {
            "shape": "shape",
            "texture": "texture",
            images[by_shape]: "shape",
            images[other]: "texture",
        }
        # By the name of the chosen image where it is there: instances, not classes, make a match.
        answer = r.response[0].partition("/")[0] if r.response else ""
        answer = answer if answer in meaning else r.chosen or answer
        if answer and answer not in meaning:
            problems.append(f"{where(file, r.row)}: {answer!r} is neither match")
        names.append(BETWEEN.join((parts[0][2] or "choices", images[0], images[by_shape], images[other])))
        choices.append(meaning.get(answer, ""))
    if problems:
        raise all_problems(f"triplets of {file}", problems, "write it anew: cuebench study export STUDY --out FILE")
    return tuple(names), tuple(choices)


def _notes(rows: Sequence[StudyAnswer]) -> dict[str, tuple[str, ...]]:
    """Return participant → what was left out; under the empty name, how many people and trials of all."""
    by_participant: dict[str, list[StudyAnswer]] = {}
    for row in rows:
        by_participant.setdefault(row.participant, []).append(row)
    left = {person for person, answers in by_participant.items() if not all(r.excluded for r in answers)}
    notes: dict[str, tuple[str, ...]] = {}
    for person in sorted(left):
        if reasons := _reasons(by_participant[person]):
            excluded = sum(bool(r.excluded) for r in by_participant[person])
            notes[person] = (f"{excluded:,} of {len(by_participant[person]):,} trials excluded: {reasons}",)
    overall = []
    if gone := [answers[0].excluded for person, answers in by_participant.items() if person not in left]:
        listed = ", ".join(f"{why} ({n:,})" for why, n in Counter(gone).most_common())
        overall.append(f"{len(gone):,} of {len(by_participant):,} participants excluded: {listed}")
    kept = [r for r in rows if r.participant in left]
    if reasons_of_trials := _reasons(kept):
        overall.append(f"{sum(bool(r.excluded) for r in kept):,} of {len(kept):,} trials excluded: {reasons_of_trials}")
    return {**notes, "": tuple(overall)} if overall else notes


def _reasons(rows: Sequence[StudyAnswer]) -> str:
    counts = Counter(r.excluded for r in rows if r.excluded)
    return ", ".join(f"{why} ({n:,})" for why, n in counts.most_common())
