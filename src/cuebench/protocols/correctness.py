"""Per-image correctness by condition: how protocols with many versions of each image measure accuracy.

The answers themselves are not kept: a data set with forty versions would store 40,000 numbers for each image. What is
stored is the position of the answered class, which is all that an accuracy needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools, Positions
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, coverage_problems, label_map
from cuebench.labels.decisions import decided, partial_space
from cuebench.metrics.accuracy import terms as accuracy_terms
from cuebench.metrics.cue_decomposition import quality
from cuebench.metrics.mean_iou import mean_iou_of_areas
from cuebench.protocols import imagenet_accuracy
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.trials import TrialRows, class_names, cue_outcomes
from cuebench.responses.table import Reduce, Responses, once
from cuebench.statistics.clustered import Sums
from cuebench.statistics.sums import estimates_of_sums
from cuebench.tables.engine import Result
from cuebench.types import REMOVED, Estimate, Stimulus, StimulusSet

ANSWER = "answer"
"""Column of the stored position of the answered class."""


class Table(NamedTuple):
    """Images × conditions of one observer.

    ``shown``: whether the picture was answered. ``values``: what was stored for it, the mean where several people
    answered it; 0 where it was not shown.
    """

    images: list[str]
    conditions: list[str]
    shown: Bools
    values: Array


@dataclass(frozen=True)
class Qualities:
    """The quality of one observer in every condition.

    Parameters
    ----------
    responses : Responses
        Whose answers.
    by_condition : mapping of str to Estimate
        Condition → accuracy, or mIoU.
    measure : str
        What the quality is, as a note beside every number.
    """

    responses: Responses
    by_condition: Mapping[str, Estimate]
    measure: str

    @cached_property
    def _asked(self) -> Counter[str]:
        stimuli = self.responses.stimuli
        return once(stimuli, "number by condition", lambda: Counter(s.condition for s in stimuli))

    @cached_property
    def _unreadable(self) -> Counter[str]:
        return Counter(s.condition for s in self.responses.stimuli if s.id in self.responses.excluded)

    def add(
        self, result: Result, condition: str, metric: str, estimate: Estimate, pictures: Collection[str], *notes: str
    ) -> None:
        """Add a number to the result, with its measure and with what is outside its denominator.

        Parameters
        ----------
        result : Result
            To be added to.
        condition, metric, estimate
            As in ``Result.add``.
        pictures : collection of str
            Conditions of the pictures that the number rests on.
        notes : str
            Further notes.
        """
        unreadable = sum(self._unreadable[c] for c in pictures)
        unanswered = sum(self._asked[c] for c in pictures) - estimate.n - unreadable
        complete = estimate.noting(self.measure, *notes).excluding({"unreadable": unreadable, "unanswered": unanswered})
        result.add(self.responses, condition, metric, complete)


def reduce(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Return the function that keeps of logits (or named decisions) the position of the answered class."""
    targets = label_map(stimuli.targets) if stimuli.targets else None

    def answered(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        if "logits" not in columns:
            decisions = columns["decisions"]
            if targets is None and labels is None:
                # People who answered with names to a set without a label map: the names themselves are kept.
                return {ANSWER: decisions.astype(np.str_)}
            return {ANSWER: decided(decisions, targets, labels).astype(np.int32)}
        if targets is None or labels is None:
            return {ANSWER: columns["logits"].argmax(axis=1).astype(np.int32)}
        return {ANSWER: partial_space(columns["logits"], targets.resolve(labels)).astype(np.int32)}

    return answered


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the images an observer cannot answer."""
    if not stimuli.targets:
        return imagenet_accuracy.check(labels, stimuli)
    return coverage_problems(label_map(stimuli.targets).resolve(labels), (s.label for s in stimuli))


def answers_and_truth(responses: Responses, *fields: str) -> tuple[Array, ...]:
    """Return the answer of each row and its class by each of some fields of the manifest.

    All are positions of classes (−1: no class of the observer), or all are names where names were stored.
    """
    answers = responses.columns[ANSWER]
    if answers.dtype.kind in "OU":
        return answers.astype(np.str_), *(responses.truth(field) for field in fields)
    targets = responses.stimuli.targets
    space = LabelSpace("targets", label_map(targets).names) if targets else responses.labels
    if space is None:
        raise UserError(f"{responses.observer} has no label space")
    columns = []
    for field in fields:
        words, row = np.unique(responses.truth(field), return_inverse=True)
        positions = [space.find(str(word)) for word in words]
        columns.append(np.array([-1 if p is None else p for p in positions], np.intp)[row.ravel()])
    return answers, *columns


def correct_answers(responses: Responses) -> Bools:
    """Return for each row whether the answer is the class of the image."""
    answers, truth = answers_and_truth(responses, "label")
    return np.asarray(answers == truth)


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the answered class of each picture, whether it is right, and which cue it names where there are two."""
    answers, label, shape, texture = answers_and_truth(responses, "label", "shape", "texture")
    columns: dict[str, Any] = {"decision": answers, "correct": answers == label}
    unknown: Any = ""
    if answers.dtype.kind not in "OU":
        targets = responses.stimuli.targets
        labels = label_map(targets).names if targets else responses.labels.names if responses.labels else ()
        columns["decision"], unknown = class_names(answers, labels), -1
    cues = [responses.truth(cue) for cue in ("shape", "texture")]
    both = np.all([(cue != "") & (cue != REMOVED) for cue in cues], axis=0)
    if both.any():
        columns["outcome"] = np.where(both, cue_outcomes(answers, shape, texture, unknown), "")
    return [TrialRows(responses.truth("condition"), np.arange(len(responses)), columns)]


def quality_sums(
    pictures: Table, conditions: Sequence[str], statistic: Callable[[Sequence[Array]], Any], of_areas: bool = False
) -> Sums:
    """Return a number as a function of sums over images, from the quality in each of some conditions.

    Parameters
    ----------
    pictures : Table
        Correct answers of each image in each condition, or the areas of its classes.
    conditions : sequence of str
        Those that the number is made of.
    statistic : callable
        ``statistic(qualities)``: the number from the quality in each condition, element by element.
    of_areas : bool
        The quality is the mean IoU.
    """
    columns = [pictures.conditions.index(c) for c in conditions]
    values = pictures.values[:, columns].astype(np.float64)
    if of_areas:
        shape = values.shape[1:]

        def qualities(sums: Array) -> list[Array]:
            by_condition = sums.reshape(-1, *shape)
            return [mean_iou_of_areas(by_condition[:, i]) for i in range(shape[0])]
    else:
        number = len(columns)
        values = np.column_stack([values, pictures.shown[:, columns]])

        def qualities(sums: Array) -> list[Array]:
            return [quality(sums[:, i], sums[:, number + i]) for i in range(number)]

    images = np.array(pictures.images)
    answered = pictures.shown[:, columns].any(axis=1)
    flat = values.reshape(len(values), -1)
    return Sums(images[answered], flat[answered], lambda sums: statistic(qualities(sums)))


def table(responses: Responses, values: Array, conditions: Sequence[str]) -> Table:
    """Sort one value for each row into images × conditions.

    The images are those of the manifest, answered or not, so that all observers of a set have the same rows and are
    left out together.
    """
    images, row, column = once(
        responses.stimuli, f"images of {tuple(conditions)}", lambda: _cells(responses.stimuli.stimuli, conditions)
    )
    answers = np.zeros((len(images), len(conditions)), np.int64)
    cells = np.zeros((len(images), len(conditions), *values.shape[1:]), np.result_type(values.dtype, np.int64))
    counted = column[responses.stimulus] >= 0
    here = responses.stimulus[counted]
    np.add.at(answers, (row[here], column[here]), 1)
    np.add.at(cells, (row[here], column[here]), values[counted])
    if answers.max(initial=0) > 1:  # pooled people: each picture counts once, by the share of correct answers
        cells = cells / np.maximum(answers, 1).reshape(*answers.shape, *[1] * (values.ndim - 1))
    return Table(images, list(conditions), answers > 0, cells)


def _cells(stimuli: Sequence[Stimulus], conditions: Sequence[str]) -> tuple[list[str], Positions, Positions]:
    """Return the images shown in some conditions, and row and column of each stimulus; column −1: none of them."""
    number = {name: i for i, name in enumerate(conditions)}
    column = np.array([number.get(s.condition, -1) for s in stimuli], np.intp)
    names = [s.image for s in stimuli]
    images = sorted({name for name, at in zip(names, column) if at >= 0})
    place = {name: i for i, name in enumerate(images)}
    return images, np.array([place.get(name, -1) for name in names], np.intp), column


def accuracies(correct: Table) -> dict[str, Estimate]:
    """Return condition → accuracy, with an interval over images."""
    terms = [accuracy_terms(hits, answered) for hits, answered in zip(correct.values.T, correct.shown.T)]
    number = len(terms)
    estimates = estimates_of_sums(
        np.column_stack([*(t.numerator for t in terms), *(t.denominator for t in terms)]),
        lambda sums: quality(sums[:, :number], sums[:, number:]),
        correct.shown.sum(axis=0),
    )
    return dict(zip(correct.conditions, estimates))
