"""What a model is asked and how its words are read: the same for an endpoint and for a model of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cuebench.labels.decisions import UNDECIDED
from cuebench.observers.base import Answers
from cuebench.observers.chat.answers import VERSION, Reading, names_of, read_answer, read_caption
from cuebench.observers.chat.prompts import Prompt, ordered

Match = Callable[[Sequence[str], Sequence[str]], list[Reading]]
"""``match(texts, classes)``: reads free texts as answers with these classes."""


@dataclass(frozen=True)
class Asking:
    """A prompt for the classes of a protocol.

    Parameters
    ----------
    prompt : Prompt
        What is asked.
    classes : tuple of str
        The protocol's classes, in its order.
    wanted : tuple of str
        The user's own order of them; empty: that of the protocol.
    shuffle : int
        Seed of a shuffled order; 0: not shuffled.
    match : callable, optional
        Reads captions; None: by names and synonyms.
    matched_by : str
        How it is called, for the key.
    """

    prompt: Prompt
    classes: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    shuffle: int = 0
    match: Match | None = None
    matched_by: str = ""

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The classes in the order in which they are shown."""
        return ordered(self.classes, self.wanted, self.shuffle)

    @cached_property
    def text(self) -> str:
        """The question, with the options in it."""
        return self.prompt.ask(self.options)

    def among(self, targets: Sequence[str]) -> Asking:
        """Return the same prompt for other classes.

        Raises
        ------
        UserError
            The user's own options are not these classes.
        """
        asking = replace(self, classes=tuple(targets))
        ordered(targets, self.wanted)
        return asking

    def describe(self) -> dict[str, Any]:
        """Return everything that decides what a model writes, JSON-ready."""
        return {"prompt": self.prompt.name, "prompt_sha256": self.prompt.sha256, "text": self.text}

    def describe_reading(self) -> dict[str, Any]:
        """Return everything that decides how that is read, JSON-ready."""
        return {"reading": VERSION, "classes": list(self.classes), "match": self.matched_by}

    def read(self, texts: Sequence[str]) -> list[Reading]:
        """Read what a model wrote."""
        if self.prompt.lettered:
            return [read_answer(text, self.options) for text in texts]
        if self.match is not None:
            return self.match(texts, self.classes)
        names = names_of(self.classes)
        return [read_caption(text, names) for text in texts]


def columns(texts: Sequence[str], readings: Sequence[Reading], cut: Sequence[bool]) -> Answers:
    """Return answers in words as columns; one that was cut before it named a class says so."""
    how = ["cut" if c and r.decision == UNDECIDED else r.how for r, c in zip(readings, cut)]
    return {
        "decisions": np.array([r.decision for r in readings], np.str_),
        "read_by": np.array(how, np.str_),
        "text": np.array(list(texts), np.str_),
    }
