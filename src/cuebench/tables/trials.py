"""The table of trials: one row for each answer of an observer, in each set of classes that it can be read in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.metrics.cue_conflict import Outcomes
from cuebench.responses.table import Responses, once
from cuebench.types import StimulusSet

SHAPE, TEXTURE, BOTH, OTHER, NO_ANSWER = "shape", "texture", "both", "other", "no answer"
"""What came of a trial. ``both``: right, where shape and texture are of one class. ``other``: a class, but neither cue.
``no answer``: nothing could be read, or nothing was said; it wins over all. Empty where there are no two cues."""
OUTCOMES = (SHAPE, TEXTURE, BOTH, OTHER, NO_ANSWER, "")


@dataclass(frozen=True, eq=False)
class Words:
    """A column of words: the position of each row's word in a list."""

    codes: Array
    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str] | Array) -> Words:
        """Number texts in the order in which they occur."""
        known = {word: i for i, word in enumerate(dict.fromkeys(map(str, texts)))}
        return cls(np.array([known[str(text)] for text in texts], np.int32), tuple(known))

    def take(self, rows: Array) -> Words:
        """Return some of the rows."""
        return Words(self.codes[rows], self.words)

    def texts(self) -> Array:
        """Return the words themselves."""
        return np.array(self.words or ("",), dtype=object)[self.codes]

    def __eq__(self, other: object) -> Any:
        """Tell which rows have a word, or the same word as another column."""
        if isinstance(other, Words):
            if other.words is self.words or other.words == self.words:
                return self.codes == other.codes
            return self.texts() == other.texts()
        if other not in self.words:
            return np.zeros(len(self.codes), bool)
        return self.codes == self.words.index(str(other))

    def __ne__(self, other: object) -> Any:
        return ~(self == other)


def words_of(stimuli: StimulusSet, name: str) -> Words:
    """Return a field of the stimuli as words, once for all observers; classes are words of one list."""

    def classes() -> tuple[str, ...]:
        return tuple(dict.fromkeys(getattr(s, f) for s in stimuli for f in ("shape", "texture", "label")))

    def made() -> Words:
        texts = [getattr(s, name) for s in stimuli]
        if name not in ("shape", "texture", "label"):
            return Words.of(texts)
        words = once(stimuli, "all classes", classes)
        place = {word: i for i, word in enumerate(words)}
        return Words(np.array([place[text] for text in texts], np.int32), words)

    return once(stimuli, f"words of {name}", made)


@dataclass(frozen=True)
class Trials:
    """One row for each answer, in each set of classes (``space``) that it can be read in.

    Parameters
    ----------
    asked : Responses
        Who was asked what; its rows are not read.
    stimulus : int array
        Position of the stimulus of each row.
    space : Words
        The set of classes, named by how many they are: ``16-way``.
    among_targets : bool array
        Whether this set is that of the stimuli.
    answer : Words
        The class that was answered; empty for none of the set.
    outcome : Words
        One of `OUTCOMES`.
    correct : bool array
        Whether the class of the stimulus was answered (of two cues: that of the shape).
    row : int array
        Position of the answer that the row was made from.
    subject : Words, optional
        Who gave the answer, of pooled people.
    extra : mapping of str to array
        What a protocol needs besides: ``rank``, ``confidence`` …
    absent : mapping of str to str
        Sets of classes that the answers cannot be read in → why.
    """

    asked: Responses
    stimulus: Array
    space: Words
    among_targets: Bools
    answer: Words
    outcome: Words
    correct: Bools
    row: Array
    subject: Words | None = None
    extra: Mapping[str, Array] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stimulus)

    def only(self, rows: Array) -> Trials:
        """Return some of the rows."""
        return replace(
            self,
            stimulus=self.stimulus[rows],
            space=self.space.take(rows),
            among_targets=self.among_targets[rows],
            answer=self.answer.take(rows),
            outcome=self.outcome.take(rows),
            correct=self.correct[rows],
            row=self.row[rows],
            subject=None if self.subject is None else self.subject.take(rows),
            extra={name: values[rows] for name, values in self.extra.items()},
        )

    def words(self, name: str) -> Words:
        """Return a column of words: ``space``, ``subject``, or a field of the stimuli."""
        if name in ("space", "subject", "answer", "outcome"):
            column: Words | None = getattr(self, name)
            return Words(np.zeros(len(self), np.int32), ("",)) if column is None else column
        return words_of(self.asked.stimuli, name).take(self.stimulus)

    def clusters(self, name: str) -> Array:
        """Return a field of the stimuli as numbers: equal where the texts are equal."""
        return np.asarray(replace(self.asked, stimulus=self.stimulus, columns={}).clusters(name))

    @cached_property
    def label(self) -> Words:
        """The class of an ordinary image."""
        return self.words("label")

    @cached_property
    def shape(self) -> Words:
        """The class of the shape."""
        return self.words("shape")

    @cached_property
    def texture(self) -> Words:
        """The class of the texture."""
        return self.words("texture")

    @cached_property
    def condition(self) -> Words:
        """The condition of the stimulus."""
        return self.words("condition")

    @cached_property
    def cues(self) -> Outcomes:
        """Which stimuli have cues of two classes, and which of the two was answered."""
        return Outcomes(self.shape != self.texture, self.outcome == SHAPE, self.outcome == TEXTURE)

    @cached_property
    def people(self) -> int:
        """How many answers each stimulus should have."""
        return 1 if self.subject is None else len(self.subject.words)
