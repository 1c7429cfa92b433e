"""Recognition: the share of images whose class is answered, among all classes or among those of the stimuli."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import Terms


class Answers(NamedTuple):
    """Whether each image was answered with its class."""

    correct: Bools


def answers(decisions: Sequence[str] | Array, classes: Sequence[str] | Array) -> Answers:
    """Compare decisions with the classes of the images.

    Parameters
    ----------
    decisions : sequence of str or int
        What was answered, one for each image; −1 or any other word is an answer outside the classes.
    classes : sequence of str or int
        The class of each image, in the same terms.

    Examples
    --------
    >>> METRIC(["cat", "dog", "na", "dog"], ["cat", "cat", "cat", "dog"])
    0.5
    """
    given, truth = np.asarray(decisions), np.asarray(classes)
    if given.shape != truth.shape or given.ndim != 1:
        raise UserError(f"{given.shape} decisions about {truth.shape} images", "one decision for each image")
    return Answers(np.asarray(given == truth))


METRIC = Metric(
    name="recognition",
    title="Recognition",
    formula="(1/n) Σ [decision_i = class of image i]",
    denominator="all answered images",
    reference="Geirhos et al. 2019, arXiv:1811.12231; Kim et al. 2026, Fig. 3b, arXiv:2603.10834",
    trials=answers,
    terms=lambda trials: Terms(trials.correct, np.ones(len(trials.correct), bool)),
    caveats=(
        "Ten images of each class: the value of a class moves in steps of .1.",
        "Among 16 classes chance is 1/16; among all classes of a network it is next to nothing.",
    ),
    chance="1 / number of classes",
    higher_is="recognises more images",
    needs=("logits",),
)
