"""Right or wrong, image by condition: what the accuracies of many versions of a photograph are made of. Private.

The answers themselves are not kept: a data set with forty versions would store 40,000 numbers for each image. What is
stored is the position of the answered class, which is all that an accuracy needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cuebench import labels as label_files
from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, coverage_problems, decisions
from cuebench.metrics.quality import Quality, accuracies
from cuebench.protocols import imagenet_accuracy
from cuebench.protocols.base import ScoreOptions
from cuebench.responses.table import Reduce, Responses
from cuebench.types import Stimulus, StimulusSet

ANSWER = "answer"


class Table(NamedTuple):
    """Images × conditions of one observer."""

    images: list[str]
    conditions: list[str]
    shown: Array
    values: Array
    """What was stored for each picture, the mean where several answered it; 0 where it was not shown."""


def reduce(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Return the function that keeps of logits (or named decisions) the position of the answered class."""
    targets = label_files.label_map(stimuli.targets) if stimuli.targets else None

    def answered(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        if "logits" not in columns:
            names = targets.names if targets else labels.names if labels else ()
            # People who answered with names to a set without a label map: the names themselves are kept.
            return {ANSWER: decisions.named(columns["decisions"], names).astype(np.int32) if names
                    else columns["decisions"].astype(np.str_)}  # fmt: skip
        if targets is None or labels is None:
            return {ANSWER: columns["logits"].argmax(axis=1).astype(np.int32)}
        return {ANSWER: decisions.partial_space(columns["logits"], targets.resolve(labels)).astype(np.int32)}

    return answered


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the images an observer cannot answer."""
    if not stimuli.targets:
        return imagenet_accuracy.check(labels, stimuli)
    return coverage_problems(label_files.label_map(stimuli.targets).resolve(labels), (s.label for s in stimuli))


def truth(responses: Responses, field: str = "label") -> Array:
    """Return the position of each row's class among the answers; −1 where it has none."""
    targets = responses.stimuli.targets
    space = LabelSpace("targets", label_files.label_map(targets).names) if targets else responses.labels
    if space is None:
        raise UserError(f"{responses.observer} has no label space")
    words, inverse = np.unique(responses.truth(field), return_inverse=True)
    found = [space.find(str(w)) for w in words]
    return np.array([-1 if f is None else f for f in found], np.intp)[inverse.ravel()]


def right(responses: Responses, field: str = "label") -> Array:
    """Return for each row whether the answer is its class."""
    answers = responses.columns[ANSWER]
    if answers.dtype.kind in "OU":
        return np.asarray(answers.astype(np.str_) == responses.truth(field).astype(np.str_))
    return np.asarray(answers == truth(responses, field))


def qualities(
    responses: Responses, options: ScoreOptions, conditions: Sequence[str]
) -> tuple[Table, dict[str, Quality]]:
    """Return right or wrong of every picture, images × conditions, and condition → accuracy."""
    found = table(responses, right(responses), conditions)
    own = accuracies(found.values, found.shown, seed=options.seed, resamples=options.resamples)
    return found, dict(zip(conditions, own))


def table(responses: Responses, values: Array, conditions: Sequence[str]) -> Table:
    """Sort one value for each row into images × conditions.

    The images are those of the manifest, answered or not, so that all observers of a set have the same rows and are
    resampled together.
    """
    wanted = set(conditions)
    kept = [s for s in responses.stimuli if s.condition in wanted]
    images = sorted({s.image for s in kept})
    row = {name: i for i, name in enumerate(images)}
    column = {name: i for i, name in enumerate(conditions)}
    answers = np.zeros((len(images), len(conditions)), np.int64)
    cells = np.zeros((len(images), len(conditions), *values.shape[1:]), np.result_type(values.dtype, np.int64))
    stimuli = responses.stimuli.stimuli
    for at, position in enumerate(responses.stimulus):
        stimulus = stimuli[position]
        if stimulus.condition in column:
            where = row[stimulus.image], column[stimulus.condition]
            answers[where] += 1
            cells[where] += values[at]
    several = answers.max(initial=0) > 1  # people pooled: each picture counts once, by the share that was right
    means = cells / np.maximum(answers, 1).reshape(*answers.shape, *[1] * (values.ndim - 1)) if several else cells
    return Table(images, list(conditions), answers > 0, means)
