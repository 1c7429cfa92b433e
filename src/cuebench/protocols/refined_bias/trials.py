"""The answers of one observer to REFINED-BIAS cues: the values of each image that the metrics average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import UserError
from cuebench.labels import LabelMap, label_map
from cuebench.labels.decisions import NONE, named, named_full
from cuebench.labels.ranks import best_ranks
from cuebench.metrics.refined_bias import CUES, IMAGE_VALUES, distorted
from cuebench.responses.table import Responses
from cuebench.stimuli.readers.refined_bias import facts
from cuebench.stimuli.refined_bias.check import defects
from cuebench.types import StimulusSet

TARGETS = "refined_bias"


def targets_of(stimuli: StimulusSet) -> LabelMap:
    """Return the map from an observer's classes to the set's."""
    return label_map(stimuli.targets or TARGETS)


@dataclass(frozen=True)
class Shown:
    """The stimuli of one cue, answered or not: one value for each stimulus."""

    ids: Array
    classes: Array
    patch: Array
    clean: Bools
    readable: Bools

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Trials:
    """The answers to one cue: one value for each answer.

    Parameters
    ----------
    cue : str
        ``shape`` or ``texture``.
    shown : Shown
        The stimuli; ``stimulus`` holds the position of each answer's stimulus in it.
    values : mapping of str to array
        What the metrics average: ``sensitivity``, ``top1``, ``top5`` and ``distorted``, as far as the answers allow.
    ranks : int array
        Rank of the right class; empty where only decisions were given.
    subjects : array or None
        The person behind each answer, for pooled people.
    reason : str
        Why some values are missing.
    """

    cue: str
    shown: Shown
    stimulus: Array
    values: Mapping[str, Array]
    ranks: Array
    subjects: Array | None
    reason: str = ""

    def of(self, field: str) -> Array:
        """Return a field of ``shown`` for each answer."""
        return np.asarray(getattr(self.shown, field))[self.stimulus]


def trials_of(responses: Responses) -> dict[str, Trials]:
    """Return cue → the answers to it."""
    values, ranks, reason = _values(responses)
    defective = {d.stimulus for d in defects(responses.stimuli)}
    people = responses.columns.get("subject") if responses.kind == "people" else None
    trials = {}
    for cue in CUES:
        has_cue = np.array([bool(getattr(s, cue)) for s in responses.stimuli], bool)
        rows = has_cue[responses.stimulus] if len(has_cue) else np.zeros(0, bool)
        stimuli = [s for s, here in zip(responses.stimuli, has_cue) if here]
        trials[cue] = Trials(
            cue=cue,
            shown=Shown(
                ids=np.array([s.id for s in stimuli], np.str_),
                classes=np.array([getattr(s, cue) for s in stimuli], np.str_),
                patch=np.array([facts(s).get("patch", "") for s in stimuli], np.str_),
                clean=np.array([s.id not in defective for s in stimuli], bool),
                readable=np.array([s.id not in responses.excluded for s in stimuli], bool),
            ),
            stimulus=(np.cumsum(has_cue) - 1)[responses.stimulus[rows]],
            values={name: v[rows] for name, v in values.items()},
            ranks=ranks[rows] if len(ranks) else ranks,
            subjects=None if people is None else np.asarray(people, np.str_)[rows],
            reason=reason,
        )
    return trials


def _values(responses: Responses) -> tuple[dict[str, Array], Array, str]:
    """Return measure → value of each answer, the ranks, and why a measure is missing."""
    targets = targets_of(responses.stimuli)
    truth = np.where(responses.truth("shape") != "", responses.truth("shape"), responses.truth("texture"))
    target = named(truth, targets.names)
    if len(target) and target.min() == NONE:
        raise UserError(f"{responses.observer}: stimuli have classes that are no target of {targets.name!r}")
    space, columns = responses.labels, responses.columns
    if "logits" in columns and space is not None:
        members = targets.resolve(space).members
        ranks = best_ranks(columns["logits"], target, members)
        values = {measure: of_ranks(ranks) for measure, of_ranks in IMAGE_VALUES.items()}
        return {**values, "distorted": distorted(columns["logits"], target, members)}, ranks, ""
    decisions = columns.get("decisions", np.zeros(len(responses), np.str_))
    codes = named(decisions, targets.names) if space is None else named_full(decisions, space, targets.resolve(space))
    reason = "one decision was given for each image: ranks need logits"
    return {"top1": codes == target}, np.zeros(0, np.int32), reason
