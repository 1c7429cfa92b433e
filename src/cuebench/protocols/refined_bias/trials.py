"""The answers of one observer to REFINED-BIAS cues: what each image adds to each metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import UserError
from cuebench.labels import LabelMap, label_map
from cuebench.labels.decisions import NONE, named, named_full
from cuebench.labels.ranks import best_ranks
from cuebench.metrics.distorted_prediction import distorted
from cuebench.metrics.sensitivity import reciprocal
from cuebench.responses.table import Responses
from cuebench.stimuli.readers.refined_bias import CUES, facts
from cuebench.stimuli.refined_bias.check import Defect, defects
from cuebench.types import StimulusSet

TARGETS = "refined_bias"
MEASURES = ("sensitivity", "top1", "top5")


def targets_of(stimuli: StimulusSet) -> LabelMap:
    """Return the map from an observer's classes to the set's."""
    return label_map(stimuli.targets or TARGETS)


@dataclass(frozen=True)
class Shown:
    """What was shown of one cue, answered or not: one value for each stimulus."""

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

    ``stimulus`` points into ``shown``. ``values`` has what can be had of ``sensitivity``, ``top1``, ``top5``,
    ``distorted``; ``reason`` says why the rest cannot. ``ranks`` is empty where only decisions were given.
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
    targets = targets_of(responses.stimuli)
    bad = {d.stimulus for d in defects_of(responses.stimuli)}
    values, ranks, reason = _values(responses, targets)
    people = responses.columns.get("subject") if responses.kind == "people" else None
    made = {}
    for cue in CUES:
        own = np.array([bool(getattr(s, cue)) for s in responses.stimuli], bool)
        rows = own[responses.stimulus] if len(own) else np.zeros(0, bool)
        position = np.cumsum(own) - 1
        made[cue] = Trials(
            cue=cue,
            shown=_shown(responses, cue, own, bad),
            stimulus=position[responses.stimulus[rows]],
            values={name: v[rows] for name, v in values.items()},
            ranks=ranks[rows] if len(ranks) else ranks,
            subjects=None if people is None else np.asarray(people, np.str_)[rows],
            reason=reason,
        )
    return made


def defects_of(stimuli: StimulusSet) -> list[Defect]:
    """Return what the data check finds in a set."""
    return defects(stimuli)


def _shown(responses: Responses, cue: str, own: Bools, bad: set[str]) -> Shown:
    stimuli = [s for s, here in zip(responses.stimuli, own) if here]
    return Shown(
        ids=np.array([s.id for s in stimuli], np.str_),
        classes=np.array([getattr(s, cue) for s in stimuli], np.str_),
        patch=np.array([facts(s).get("patch", "") for s in stimuli], np.str_),
        clean=np.array([s.id not in bad for s in stimuli], bool),
        readable=np.array([s.id not in responses.excluded for s in stimuli], bool),
    )


def _values(responses: Responses, targets: LabelMap) -> tuple[dict[str, Array], Array, str]:
    """Return what each answer adds to each measure, the ranks, and why something cannot be had."""
    truth = np.where(responses.truth("shape") != "", responses.truth("shape"), responses.truth("texture"))
    target = named(truth, targets.names)
    if len(target) and target.min() == NONE:
        raise UserError(f"{responses.observer}: stimuli have classes that are no target of {targets.name!r}")
    space, columns = responses.labels, responses.columns
    if "logits" in columns and space is not None:
        members = targets.resolve(space).members
        ranks = best_ranks(columns["logits"], target, members)
        by_rank = {"sensitivity": reciprocal(ranks), "top1": ranks <= 1, "top5": ranks <= 5}
        return {**by_rank, "distorted": distorted(columns["logits"], target, members)}, ranks, ""
    given = columns.get("decisions", np.zeros(len(responses), np.str_))
    codes = named(given, targets.names) if space is None else named_full(given, space, targets.resolve(space))
    why = "one decision was given for each image: ranks need logits"
    return {"top1": codes == target}, np.zeros(0, np.int32), why
