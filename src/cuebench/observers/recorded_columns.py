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

RAW = ("subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename")
RAW_ANSWER = ("imagename", "subj", "object_response")
"""Stimulus, subject and answer of raw data."""
RAW_NEEDED = ("subj", "rt", "object_response", "imagename")
STIMULUS = ("stimulus", "image", "imagename", "id", "image_name", "filename", "file", "picture", "path")
PEOPLE = ("subject", "subj", "participant", "subject_id", "participant_id", "worker_id")
SUBJECT = ("observer", *PEOPLE, "model")
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
FORMATS = (
    "expected the raw-data columns " + ",".join(RAW) + ", or a stimulus column "
    f"({'/'.join(STIMULUS)}) with logit_0…, prob_0…, a list column logits, one column for each class, or a decision "
    f"({'/'.join(DECISION)}), and who answered where there are several ({'/'.join(SUBJECT)}); "
    "or choices between matches: anchor, shape_match, texture_match, choice; or the export of a study"
)


def spelled(name: str, known: Container[str]) -> str:
    """Return a column as it is known, where it is: capitals, and spaces or hyphens for underscores, do not matter.

    >>> spelled("Participant ID", KNOWN), spelled("workerId", KNOWN), spelled("Tabby cat", KNOWN)
    ('participant_id', 'worker_id', 'Tabby cat')
    """
    plain = name.lower()
    forms = (plain, plain.replace(" ", "_").replace("-", "_"), re.sub("(?<=[a-z])(Id|ID)$", "_id", name).lower())
    return next((form for form in forms if form in known), name)


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
