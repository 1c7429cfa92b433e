"""What the columns of recorded answers are called, and which of them is meant where several could be."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cuebench.errors import UserError
from cuebench.observers.recorded_rows import DATA_SET, NO_ANSWERS, cells_of, where

if TYPE_CHECKING:
    import pyarrow as pa

    from cuebench.labels import LabelSpace

RAW = ("subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename")
RAW_ANSWER = ("imagename", "subj", "object_response")
"""Stimulus, subject and answer of raw data."""
RAW_NEEDED = ("subj", "rt", "object_response", "imagename")
STIMULUS = ("stimulus", "image", "imagename", "id", "image_name", "filename", "file", "picture", "path")
PEOPLE = (
    *("subject", "subj", "participant", "subject_id", "participant_id", "worker_id"),
    *("subject_nr", "subject_no", "subject_number", "participant_nr", "participant_no", "participant_number"),
    *("prolific_pid", "prolific_id", "participant_private_id", "participant_public_id", "pid", "sub", "sub_id"),
    *("respondent", "respondent_id", "observer_id", "worker", "user", "user_id", "rater", "rater_id", "annotator"),
    *("annotator_id", "vp", "vp_id", "vp_nr", "vpn", "proband", "versuchsperson"),
)
"""Columns of people's names, as programs and laboratories call them."""
SUBJECT = ("observer", *PEOPLE, "model")
NUMBERED = re.compile(r"^(logit|prob)(?:s|ability|abilities)?_(\d+)$")
"""A column of the scores of one class, by its number."""
WORDS = "response"
"""The one decision column that may hold what a model wrote instead of a class (`observers.chat.recorded`)."""
READING = "pred_label"
DECISION = ("decision", "decisions", WORDS, "answer", "prediction", READING)
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
_ABOUT_TRIALS = re.compile(
    "time|trial|session|prob|logit|correct|label|class|categ|shape|texture|truth|duration|comment|rt$|"
    "(?:^|[^a-z])(?:date|block|run|index|order|count|conf|acc|right|error|cond|target|expect|version|split|seed|url|"
    "format|width|height|size|note)"
)
"""What is in the name of a column that says something of the trial, not who answered."""
_SURELY_TRUE = re.compile("correct|corr|truth|true|gold|^gt|gt$|expect")
_GIVEN = re.compile("pred|output|answer|respon|resp$|decision|choice|chosen|guess|model|given")
_PERHAPS_TRUE = re.compile("target|shape|texture|categ|cond")
_TRUE_BESIDE_GIVEN = re.compile("label|class|object")
FORMATS = (
    "expected the raw-data columns " + ",".join(RAW) + ", or a stimulus column "
    f"({'/'.join(STIMULUS)}) with logit_0…, prob_0…, a list column logits, one column for each class, or a decision "
    f"({'/'.join(DECISION)}), and who answered where there are several (participant, observer, model …); "
    "or choices between matches: anchor, shape_match, texture_match, choice; or the export of a study"
)


def spelled(name: str, known: Container[str]) -> str:
    """Return a column as it is known, where it is: capitals, and spaces or hyphens for underscores, do not matter.

    In names of those who answered, nor does it matter whether there is anything between the words.

    >>> spelled("Participant Private ID", KNOWN), spelled("workerId", KNOWN), spelled("Tabby cat", KNOWN)
    ('participant_private_id', 'worker_id', 'Tabby cat')
    """
    plain = name.lower()
    if NUMBERED.match(plain):
        return plain
    people = _PEOPLE_JOINED.get(_joined(name), name)
    return next((form for form in (plain, re.sub("[ -]", "_", plain), people) if form in known), name)


def _joined(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).lower()


_PEOPLE_JOINED = {_joined(name): name for name in PEOPLE}


Same = Callable[[str, str], bool]


def chosen_column(
    file: Path, table: pa.Table, what: str, names: Sequence[str], same: Same, *, empty_says: bool = False
) -> str:
    """Return the column that says something, or an empty name where none does.

    Parameters
    ----------
    file, table : Path, pyarrow.Table
        Where the columns are.
    what : str
        What is looked for, as messages say it: ``the stimulus``.
    names : sequence of str
        What such a column may be called.
    same : callable
        Whether two cells say the same. An empty cell says nothing, unless…
    empty_says : bool
        …it says "no answer". A column that is empty everywhere says nothing beside a filled one.

    Raises
    ------
    UserError
        Several columns could be it, and they differ.
    """
    found = {name: cells_of(table, name) for name in names if name in table.column_names}
    if len(found) > 1:  # a column that counts the rows, from 0 or 1, is no name beside another one
        found = {name: cells for name, cells in found.items() if not counts_rows(cells)} or found
    if empty_says:
        found = {name: ["" if cell.lower() in NO_ANSWERS else cell for cell in found[name]] for name in found}
    chosen, *others = found or [""]
    for other in [name for name in others if any(found[name])]:
        for row, (first, second) in enumerate(zip(found[chosen], found[other])):
            if (empty_says or (first and second)) and not same(first, second):
                raise UserError(
                    f"{where(file, row)}: {' and '.join(found)} could be {what}, but {chosen} is {first[:60]!r} and "
                    f"{other} is {second[:60]!r}",
                    f"keep the column that is {what}, and rename or remove the other",
                )
    return chosen


def subject_column(file: Path, table: pa.Table) -> str:
    """Return the column of who answered; columns that name the same people, each in its way, are no contradiction."""
    people = [name for name in PEOPLE if name in table.column_names]
    named = {name: cells_of(table, name) for name in people}
    again = {name for name in people[1:] if _one_to_one(named[people[0]], named[name])}
    return chosen_column(file, table, "the subject", [name for name in SUBJECT if name not in again], same_words)


def _one_to_one(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether two columns of names stand for the same people."""
    pairs = set(zip(first, second))
    return all(map(all, pairs)) and len(pairs) == len(set(first)) == len(set(second))


def unused_columns(table: pa.Table, labels: LabelSpace | None) -> tuple[str, ...]:
    """Return the columns of a file that may say who answered, under a name that is not known."""
    found = []
    for name in table.column_names:
        if name and name not in KNOWN and not _ABOUT_TRIALS.search(name.lower()) and not _is_class(name, labels):
            cells = cells_of(table, name)
            names = len(set(cells)) > 1 and not counts_rows(cells)
            found += [name] if names and not any(_FRACTION.fullmatch(cell) for cell in cells) else []
    return tuple(found)


_FRACTION = re.compile(r"[+-]?\d*[.,]\d*[1-9]\d*(?:[eE][+-]?\d+)?")


def _is_class(name: str, labels: LabelSpace | None) -> bool:
    return labels is not None and labels.find(name) is not None


def check_one_answer(file: Path, table: pa.Table, decision: str, labels: LabelSpace) -> None:
    """Raise where a second column holds classes, others than the answers, and may be the answers itself."""
    answers = [labels.find(cell) for cell in cells_of(table, decision)]
    for name in [name for name in table.column_names if name not in KNOWN and not says_truth(name, decision)]:
        cells = cells_of(table, name)
        found = {cell: labels.find(cell) for cell in set(cells) if cell.lower() not in NO_ANSWERS}
        if 10 * sum(place is not None for place in found.values()) < 9 * max(len(found), 1):
            continue
        for row, (answer, cell) in enumerate(zip(answers, cells)):
            if answer is not None and found.get(cell) not in (None, answer):
                raise UserError(
                    f"{where(file, row)}: {decision} and {name} could both be the answer, {decision} is "
                    f"{labels.names[answer]!r} and {name} is {cell[:60]!r}",
                    "call the column of the given answers decision; remove the other one, or rename it to truth where "
                    "it holds the right answers",
                )


def says_truth(name: str, decision: str) -> bool:
    """Tell whether a column says what was right, not what was answered in the column ``decision``.

    >>> says_truth("corrAns", "answer"), says_truth("label", "prediction"), says_truth("label", "answer")
    (True, True, False)
    """
    plain = _joined(name)
    if _SURELY_TRUE.search(plain) or _GIVEN.search(plain):
        return _SURELY_TRUE.search(plain) is not None
    # "answer" may itself be the right one, beside what a model called a label.
    return bool(_PERHAPS_TRUE.search(plain) or (decision != "answer" and _TRUE_BESIDE_GIVEN.search(plain)))


def counts_rows(cells: Sequence[str]) -> bool:
    """Tell whether cells are the numbers of the rows: 0, 1, 2 … or 1, 2, 3 …"""
    starts = (first for first in (0, 1) if cells and cells[0] == str(first))
    return any(all(cell == str(number) for number, cell in enumerate(cells, first)) for first in starts)


def same_words(first: str, second: str) -> bool:
    """Tell whether two answers, or two subjects, are one: capitals, hyphens and underscores do not matter."""
    return _plain(first) == _plain(second)


def _plain(text: str) -> str:
    return text.strip().lower().replace("_", " ").replace("-", " ")


def listing(table: pa.Table) -> str:
    """Return the names of the first columns."""
    names = table.column_names
    return ", ".join(names[:12]) + f" … ({len(names)} columns)" * (len(names) > 12)
