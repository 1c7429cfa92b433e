"""The answers of one observer to one stimulus set, as columns: what protocols score. Needs no model and no image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.types import ObserverKind, Stimulus, StimulusSet

Reduce = Callable[[Mapping[str, np.ndarray[Any, Any]], Sequence[Stimulus]], dict[str, np.ndarray[Any, Any]]]
"""``reduce(answers, their stimuli)``: the columns that are kept instead, with one row for each row of the answers."""
_ROWS = 2048
Made = TypeVar("Made")


@dataclass(frozen=True)
class Responses:
    """Columns with one row for each answer.

    Parameters
    ----------
    observer : str
        Public name.
    kind : str
        ``model``, ``person``, ``people`` or ``ideal``.
    stimuli : StimulusSet
        What was asked, in the order of the manifest, including what could not be answered.
    stimulus : int array
        Row → position in ``stimuli``. A crowd has several rows for a stimulus.
    columns : mapping of str to array
        ``logits``, ``features``, ``decisions``, and whatever else was recorded (``subject``, ``rt``); same length.
    labels : LabelSpace or None
        What the logits stand for.
    view : str
        Name of the protocol's view (how the stimuli were preprocessed).
    excluded : mapping of str to str
        Stimulus id → why there is no answer (unreadable file …).
    notes : tuple of str
        What must stand beside every score made from this.
    baseline_of : str
        Name of the observer of which this is a random initialisation; empty: it stands for itself.
    """

    observer: str
    kind: ObserverKind
    stimuli: StimulusSet
    stimulus: np.ndarray[Any, np.dtype[np.intp]]
    columns: Mapping[str, np.ndarray[Any, Any]]
    labels: LabelSpace | None = None
    view: str = ""
    excluded: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    baseline_of: str = ""

    def __post_init__(self) -> None:
        logits = self.columns.get("logits")
        if self.labels is not None and logits is not None and logits.shape[1:] != (len(self.labels),):
            shape_text = " × ".join(map(str, logits.shape[1:])) or "no"
            classes = f"{len(self.labels)} classes of its label space {self.labels.name!r}"
            hint = "run the same command again with --fresh"
            raise UserError(f"the answers of {self.observer} have {shape_text} logits for the {classes}", hint)

    def __len__(self) -> int:
        return len(self.stimulus)

    def truth(self, name: str) -> np.ndarray[Any, np.dtype[np.str_]]:
        """Return a field of the manifest (``shape``, ``texture_source`` …), one value for each row."""
        values = once(self.stimuli, name, lambda: np.array([getattr(s, name) for s in self.stimuli], dtype=np.str_))
        return values[self.stimulus] if len(values) else values

    def clusters(self, name: str) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Return a field of the manifest as numbers in the order of its texts: equal where the texts are equal."""

        def numbered() -> np.ndarray[Any, np.dtype[np.intp]]:
            if all(getattr(a, name) < getattr(b, name) for a, b in pairwise(self.stimuli)):
                return np.arange(len(self.stimuli))  # ids of a set are sorted: no need of another copy of them
            texts = np.array([getattr(s, name) for s in self.stimuli], dtype=np.str_)
            return np.unique(texts, return_inverse=True)[1].ravel()

        values = once(self.stimuli, f"clusters of {name}", numbered)
        return values[self.stimulus] if len(values) else values

    @property
    def subjects(self) -> np.ndarray[Any, Any] | None:
        """Who gave each answer, of pooled people; None of anybody else."""
        column = self.columns.get("subject") if self.kind == "people" else None
        return None if column is None else np.asarray(column, dtype=np.str_)

    def condensed(self, reduce: Reduce) -> Responses:
        """Return the same answers with the columns that a function keeps of them, made a bounded number at a time."""
        stimuli = self.stimuli.stimuli
        parts = [
            reduce(
                {name: values[start : start + _ROWS] for name, values in self.columns.items()},
                [stimuli[i] for i in self.stimulus[start : start + _ROWS]],
            )
            for start in range(0, max(len(self), 1), _ROWS)
        ]
        return replace(self, columns={name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def once(stimuli: StimulusSet, name: str, make: Callable[[], Made]) -> Made:
    """Return what is computed from a stimulus set, computed the first time only: all observers of a run share it."""
    made: dict[str, Any] = vars(stimuli).setdefault("_made", {})
    if name not in made:
        made[name] = make()
    result: Made = made[name]
    return result
