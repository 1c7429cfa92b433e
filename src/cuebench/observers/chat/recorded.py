"""Recorded answers in words: files with a column ``response`` that holds what a model wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Strings
from cuebench.labels import LabelSpace
from cuebench.labels.decisions import UNDECIDED
from cuebench.observers.chat.answers import VERSION, Reading, names_of, read_answer, read_caption
from cuebench.observers.chat.prompts import CAPTION, ordered
from cuebench.observers.recorded_files import NO_ANSWER, Recording

_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")


class Read(NamedTuple):
    """What was read of the words: columns of answers, and notes for the rows of the result."""

    columns: Mapping[str, Array]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Wording:
    """What a model wrote, and how it is to be read.

    Parameters
    ----------
    texts : array of str
        One for each row of the recording.
    prompt : str
        ``caption``; anything else: lettered options.
    options : sequence of str
        The options as they were shown; empty: the classes in their order.
    """

    texts: Strings
    prompt: str = ""
    options: Sequence[str] = ()
    version: int = VERSION

    def read(self, classes: Sequence[str]) -> Read:
        """Return the answers among these classes."""
        words, inverse = np.unique(self.texts, return_inverse=True)
        reader = _Reader(classes, self.prompt, self.options)
        readings = [reader(str(text)) for text in words]
        columns = {
            "decisions": np.array([r.decision for r in readings], np.str_)[inverse],
            "read_by": np.array([r.how for r in readings], np.str_)[inverse],
            "text": self.texts,
        }
        unread = np.mean(columns["decisions"] == UNDECIDED) if len(self.texts) else 0
        captions = "most of these answers are no letters; if they are captions write ?prompt=caption"
        return Read(columns, (captions,) if unread > 0.5 and not self.prompt else ())


class _Reader:
    """Reads one text; a class as it is spelled in the label space is itself, whatever the prompt."""

    def __init__(self, classes: Sequence[str], prompt: str, options: Sequence[str]) -> None:
        self.space = LabelSpace("targets", tuple(classes))
        self.names = names_of(classes) if prompt == CAPTION else {}
        # The classes of all protocols of a run are more than those of one: its own options are checked there.
        self.options = tuple(options) if set(options) <= set(classes) and options else ordered(classes)

    def __call__(self, text: str) -> Reading:
        if text == NO_ANSWER:
            return Reading(UNDECIDED, "nothing")
        if (position := self.space.find(text)) is not None:
            return Reading(self.space.names[position], "name")
        return read_caption(text, self.names) if self.names else read_answer(text, self.options)


def holds_words(
    recordings: Sequence[Recording],
    classes: Sequence[str],
    prompt: str = "",
    options: Sequence[str] = (),
    *,
    kind: str = "",
) -> bool:
    """Tell whether responses are words to be read, not classes: some are no class, and can be read.

    A file of classes with a few spelling mistakes stays one: these are undecided, and a note names them. Keys
    that people pressed are not read as letters of options. Bare numbers are not read as options: they may be indices
    of classes. With ``?prompt=`` or ``?options=`` responses are always words; ``kind`` is the value of ``?kind=``.
    """
    if not classes or not all(r.in_words and r.logits is None and r.decisions is not None for r in recordings):
        return False
    if prompt or options:
        return True
    if kind != "model" and any(kind or r.people or np.isfinite(r.rt).any() for r in recordings):
        return False
    space = LabelSpace("targets", tuple(classes))
    texts = {str(t) for r in recordings if r.decisions is not None for t in np.unique(r.decisions)} - {NO_ANSWER}
    unknown = [text for text in texts if space.find(text) is None and not _NUMBER.fullmatch(text.strip())]
    reader = _Reader(classes, prompt, options)
    return any(reader(text).decision != UNDECIDED for text in unknown)
