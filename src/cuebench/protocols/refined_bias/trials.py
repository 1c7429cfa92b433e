"""The answers of one observer to REFINED-BIAS cues: the values of each image that the metrics average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import UserError
from cuebench.labels import LabelMap, LabelSpace, label_map
from cuebench.labels.decisions import NONE, named, named_full
from cuebench.labels.ranks import best_ranks
from cuebench.metrics.refined_bias import CUES, IMAGE_VALUES, distorted, shape_preference
from cuebench.protocols.trials import Asked, TrialRows, top_answers
from cuebench.responses.table import Reduce, Responses, once
from cuebench.statistics.clustered import Sums
from cuebench.statistics.ratios import quotient
from cuebench.stimuli.readers.refined_bias import facts
from cuebench.stimuli.refined_bias.check import Defect, defects
from cuebench.tables.trials import OTHER
from cuebench.types import Stimulus, StimulusSet

if TYPE_CHECKING:
    from cuebench.protocols.base import ScoreOptions

TARGETS = "refined_bias"


def targets_of(stimuli: StimulusSet) -> LabelMap:
    """Return the map from an observer's classes to the set's."""
    return label_map(stimuli.targets or TARGETS)


@dataclass(frozen=True)
class Shown:
    """The stimuli of one cue, answered or not: one value for each stimulus.

    ``images`` and ``class_numbers`` number the ids and the classes in alphabetical order, ``position`` is the place in
    the whole set.
    """

    position: Array
    images: Array
    classes: Array
    class_numbers: Array
    patch: Array
    clean: Bools
    readable: Bools

    def __len__(self) -> int:
        return len(self.position)


def _shown(stimuli: StimulusSet, cue: str) -> Shown:
    """Return the stimuli of one cue, as if all of them could be read."""
    defective = {d.stimulus for d in known_defects(stimuli)}
    of_cue = [(i, s) for i, s in enumerate(stimuli) if getattr(s, cue)]
    classes = np.array([getattr(s, cue) for _, s in of_cue], np.str_)
    return Shown(
        position=np.array([i for i, _ in of_cue], np.intp),
        images=_numbered(np.array([s.id for _, s in of_cue], np.str_)),
        classes=classes,
        class_numbers=_numbered(classes),
        patch=np.array([facts(s).get("patch", "") for _, s in of_cue], np.str_),
        clean=np.array([s.id not in defective for _, s in of_cue], bool),
        readable=np.ones(len(of_cue), bool),
    )


def _numbered(texts: Array) -> Array:
    return np.unique(texts, return_inverse=True)[1].ravel()


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


def known_defects(stimuli: StimulusSet) -> list[Defect]:
    """Return the defects of the files, which are looked for once for all observers."""
    return once(stimuli, "defects", lambda: defects(stimuli))


RANK, DISTORTED = "rank", "distorted"
"""What is kept of logits: the rank of the right class, and whether the answer is a distorted one."""


def condense(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Keep of the logits the rank of the right class, and whether the prediction is distorted."""
    targets = targets_of(stimuli)
    members = None if labels is None else targets.resolve(labels).members

    def ranked(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        kept = {name: values for name, values in columns.items() if name != "logits"}
        if "logits" in columns and members is not None:
            target = named([s.shape or s.texture for s in shown], targets.names)
            known = target != NONE  # others are refused where they are scored
            ranks, strange = np.zeros(len(target), np.int32), np.zeros(len(target), bool)
            logits = columns["logits"] if known.all() else columns["logits"][known]
            if known.any():
                ranks[known] = best_ranks(logits, target[known], members)
                strange[known] = distorted(logits, target[known], members)
            kept |= {RANK: ranks, DISTORTED: strange}
        return kept

    return ranked


def trials_of(responses: Responses) -> dict[str, Trials]:
    """Return cue → the answers to it."""
    values, ranks, reason = _values(responses)
    people = responses.subjects
    stimuli = responses.stimuli
    trials = {}
    for cue in CUES:
        shown = once(stimuli, f"shown {cue}", partial(_shown, stimuli, cue))
        if responses.excluded:
            readable = [stimuli.stimuli[i].id not in responses.excluded for i in shown.position]
            shown = replace(shown, readable=np.array(readable, bool))
        place = np.full(len(stimuli), -1, np.intp)
        place[shown.position] = np.arange(len(shown))
        rows = place[responses.stimulus] >= 0
        trials[cue] = Trials(
            cue=cue,
            shown=shown,
            stimulus=place[responses.stimulus[rows]],
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
    if RANK in columns:
        ranks = columns[RANK]
        values = {measure: of_ranks(ranks) for measure, of_ranks in IMAGE_VALUES.items()}
        return {**values, "distorted": columns[DISTORTED]}, ranks, ""
    decisions = columns.get("decisions", np.zeros(len(responses), np.str_))
    codes = named(decisions, targets.names) if space is None else named_full(decisions, space, targets.resolve(space))
    reason = "one decision was given for each image: ranks need logits"
    return {"top1": codes == target}, np.zeros(0, np.int32), reason


# ------------------------------------------------------------------------------------------------- single answers


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the first answer to each image, the rank of the right class and its reciprocal, the sensitivity."""
    values, ranks, _ = _values(responses.condensed(condense(responses.stimuli, responses.labels)))
    cue = np.where(responses.truth("shape") != "", "shape", "texture")
    columns = {
        "decision": top_answers(responses),
        "outcome": np.where(values["top1"], cue, OTHER),
        "correct": values["top1"],
    }
    if len(ranks):
        columns |= {"rank": ranks, "value": values["sensitivity"]}
    return [TrialRows(responses.view, np.arange(len(responses)), columns)]


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the shape preference as a function of the mean sensitivities to both cues."""
    values, ranks, _ = _values(responses)
    if asked.condition != responses.view or not len(ranks):
        return None
    shape = responses.truth("shape")
    cue = shape != ""
    numbers = values["sensitivity"]
    columns = np.column_stack([np.where(cue, numbers, 0), cue, np.where(cue, 0, numbers), ~cue]).astype(np.float64)
    assert shape_preference.compute is not None
    preference = shape_preference.compute
    return Sums(
        responses.truth("id"),
        columns,
        lambda sums: preference(quotient(sums[:, 0], sums[:, 1]), quotient(sums[:, 2], sums[:, 3])),
        {"classes": np.char.add(np.where(cue, "shape ", "texture "), np.where(cue, shape, responses.truth("texture")))},
        strata=2,
    )
