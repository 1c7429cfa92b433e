"""What recordings must agree in before they are observers: formats, names of subjects, trials, classes of decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.labels import LabelSpace
from cuebench.observers.recorded_files import NO_ANSWER, Recording
from cuebench.observers.recorded_names import is_trial, stimulus_key


def check_one_format(body: str, recordings: Sequence[Recording]) -> None:
    """Raise where the files of a folder (``body``) are of several formats."""
    forms = {(r.format, r.logits is not None): r.file for r in recordings}
    if len(forms) > 1:
        listed = [f"{file.name}: {form}{' with logits' if logits else ''}" for (form, logits), file in forms.items()]
        raise all_problems(f"{body} mixes formats", listed, "put each format in its own folder and name both")


def check_subjects(recordings: Sequence[Recording]) -> None:
    """Raise where two names of subjects differ only by case or blanks: they may be one person, or two."""
    spellings: dict[str, dict[str, Recording]] = {}
    for recording in recordings:
        for subject in dict.fromkeys(recording.subjects.tolist()):
            spellings.setdefault(re.sub(r"\s+", "", subject).casefold(), {}).setdefault(subject, recording)
    problems = [
        " and ".join(f"{subject!r} ({recording.file.name})" for subject, recording in same.items())
        for same in spellings.values()
        if len(same) > 1
    ]
    if problems:
        raise all_problems(
            "subjects that differ only by case or blanks",
            problems,
            "write the name of one subject in one way everywhere, and those of two so that they differ in more",
        )


def check_repeats(recordings: Sequence[Recording]) -> None:
    """Raise where a subject answered a stimulus twice."""
    seen: dict[tuple[str, str], tuple[Recording, int]] = {}
    repeats, shortened, anonymous, unused = [], False, False, dict[str, None]()
    for recording in recordings:
        keys = zip(recording.subjects.tolist(), map(stimulus_key, recording.names.tolist()))
        for row, key in enumerate(keys):
            first, first_row = seen.setdefault(key, (recording, row))
            if first is not recording or first_row != row:
                repeats.append(
                    f"{key[0]} answered {key[1]!r} at {first.where(first_row)} and again at {recording.where(row)}"
                )
                shortened = shortened or is_trial(str(recording.names[row]))
                anonymous = anonymous or recording.anonymous
                unused |= dict.fromkeys(recording.unused)
    if repeats:
        hint = "keep one row for each subject and stimulus"
        if anonymous:
            hint = f"no column says who answered{_not_used(tuple(unused))}: rename the one that does to participant; "
            hint += "where all rows are one observer's, keep one row for each stimulus"
        form = "0001_experiment_subject_condition_class_10_IMAGE"
        hint += f"; a name like {form} is that of a trial, and IMAGE its stimulus" * shortened
        raise all_problems("repeated trials", repeats, hint)


def anonymous_note(recordings: Sequence[Recording]) -> tuple[str, ...]:
    """Return a note where columns that may say who answered were not used."""
    unused = tuple(dict.fromkeys(name for r in recordings for name in r.unused))
    return (f"no column says who answered: taken for one observer{_not_used(unused)}",) if unused else ()


def _not_used(columns: Sequence[str]) -> str:
    more = " …" if len(columns) > 3 else ""
    return f" (not used: {', '.join(map(repr, columns[:3]))}{more})" if columns else ""


class Placed(NamedTuple):
    """A label space that the user named, and recordings whose decisions are found in it."""

    space: LabelSpace
    recordings: list[Recording]


def in_named_space(recordings: Sequence[Recording], space: LabelSpace) -> Placed:
    """Return recordings whose decisions are ids where they were positions, and the space, with ids if need be.

    Raises
    ------
    UserError
        A number is no position, or no decision of a file is a class.
    """
    alone = [r for r in recordings if r.decisions is not None and r.logits is None]
    words = dict.fromkeys(word for recording in alone for word in _words_of(recording))
    places = {word: space.place(word) for word in words if space.find(word) is None}
    numbers = {word: place for word, place in places.items() if place is not None}
    for recording in alone:
        _check_positions(recording, space, numbers)
    if not numbers:
        return Placed(space, list(recordings))
    # Two classes of one name cannot be told apart by it: a space without ids gets its positions as ids.
    known = space if space.ids else replace(space, ids=tuple(map(str, range(len(space)))))
    spelled = {word: known.ids[place] for word, place in numbers.items()}
    return Placed(known, [_respelled(r, spelled) if r in alone else r for r in recordings])


def _check_positions(recording: Recording, space: LabelSpace, numbers: dict[str, int]) -> None:
    """Raise where there are positions among the decisions of a file, and a number that is none."""
    words = _words_of(recording)
    beyond = [word for word in words if re.fullmatch("-?[0-9.]+", word) and space.place(word) is None]
    if beyond and any(word in numbers for word in words):
        raise UserError(
            f"{recording.file}: the decision {beyond[0]!r} is no position in the label space {space.name!r}, which has "
            f"the positions 0 to {len(space) - 1}",
            "count the classes from 0, write their names, or leave the cell empty where there is no answer",
        )


def _words_of(recording: Recording) -> list[str]:
    """Return the decisions of a recording, each once."""
    words = [] if recording.decisions is None else np.unique(recording.decisions).tolist()
    return [word for word in words if word != NO_ANSWER]


def _respelled(recording: Recording, spelled: dict[str, str]) -> Recording:
    assert recording.decisions is not None
    words = [spelled.get(word, word) for word in recording.decisions.tolist()]
    return replace(recording, decisions=np.array(words))


def check_known_responses(recordings: Sequence[Recording], space: LabelSpace, what: str, otherwise: str) -> None:
    """Stop where *no* response of a file is a class: it then belongs to another experiment.

    Single unknown responses stay: an answer outside the classes is an undecided trial, and is counted as one.

    Parameters
    ----------
    recordings : sequence of Recording
        The files.
    space : LabelSpace
        The classes.
    what, otherwise : str
        Whose classes these are, and what else to do, as the message says it.
    """
    for recording in recordings:
        answers = _words_of(recording) if recording.logits is None else []
        if answers and all(space.find(a) is None for a in answers):
            listed = ", ".join(space.names[:20]) + " …" * (len(space) > 20)
            raise UserError(
                f"{recording.file}: no response is a class of {what}; found {', '.join(answers[:6])}",
                f"the classes are {listed}; {otherwise}",
            )
