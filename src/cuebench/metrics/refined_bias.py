"""REFINED-BIAS: sensitivity, top-k accuracy and preference for shape and texture cues, and distorted predictions.

All but the preferences are means over images of a function of the rank of the right class among all logits; the rank of
a class with several members is the best rank of any of them (see ``labels.ranks``).

>>> shape_sensitivity(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]), [np.array([0]), np.array([1])])
0.75
>>> texture_top5(np.eye(8), np.zeros(8, int), [np.array([0])])
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array, Bools, Floats
from cuebench.errors import UserError
from cuebench.labels.ranks import best_ranks
from cuebench.metrics.base import Metric
from cuebench.statistics.means import mean_or_nan
from cuebench.statistics.ratios import quotient

CUES = ("shape", "texture")
_PAPER = "Kim et al. 2026, On the Reliability of Cue Conflict and Beyond (REFINED-BIAS)"
_REFERENCE = f"{_PAPER}, eq. 1–3; arXiv:2603.10834"
_TIES = "Equal logits are ordered by class index (the rule of arg max); the authors rank float32 softmax values."
_MEMBERS = "A class of several ImageNet classes has the rank of its best member; siblings above it are not removed."
_CLASSES = (
    "Each cue has ten classes: for a statement about other classes, read the interval over classes. It cannot know of "
    "a class that would have nearly all of the value: it then held the truth in 84 % of simulated studies."
)


# ------------------------------------------------------------------------------------------- values of single images


def reciprocal(ranks: Array) -> Floats:
    """Return 1/rank for each image; ranks start at 1."""
    values = np.asarray(ranks, np.float64)
    if values.size and values.min() < 1:
        raise UserError(f"ranks start at 1; got {values.min():g}")
    return 1.0 / values


IMAGE_VALUES: Mapping[str, Callable[[Array], Array]] = {
    "sensitivity": reciprocal,
    "top1": lambda ranks: ranks <= 1,
    "top5": lambda ranks: ranks <= 5,
}
"""Measure → its value for each image, from the rank of the image's class. The metric is the mean over images."""


def distorted(logits: Array, target: Array, members: Sequence[Array]) -> Bools:
    """Return for each image whether it is correct among the classes of the set but not among all classes.

    Parameters
    ----------
    logits : float array n × classes
        Answers.
    target : int array n
        Position in ``members`` of each image's class.
    members : sequence of int arrays
        Positions of the members of each class among the logits; together they are the restricted label space.
    """
    if not len(logits):
        return np.zeros(0, bool)
    best = np.column_stack([logits[:, positions].max(axis=1, initial=-np.inf) for positions in members])
    return np.asarray((best.argmax(axis=1) == target) & (best_ranks(logits, target, members) > 1))


# ------------------------------------------------------------------------------------------------------ the metrics


def _mean_over_images(values_of: Callable[[Array], Array]) -> Callable[[Array, Array, Sequence[Array]], float]:
    def compute(logits: Array, target: Array, members: Sequence[Array]) -> float:
        """Return the mean over images; NaN where there is no image.

        Parameters
        ----------
        logits : float array n × classes
            Answers.
        target : int array n
            Position in ``members`` of each image's class.
        members : sequence of int arrays
            Positions of the members of each class among the logits.

        References
        ----------
        Kim et al. 2026, https://arxiv.org/abs/2603.10834, eq. 1
        """
        return mean_or_nan(values_of(best_ranks(logits, target, members)))

    return compute


def _sensitivity(cue: str) -> Metric:
    return Metric(
        name=f"{cue}_sensitivity",
        title=f"{cue.capitalize()} sensitivity ({cue.capitalize()}-Sens)",
        formula=f"(1/N) Σ 1/rank_i, rank = best rank of any member of the {cue} class among all logits",
        denominator=f"all answered {cue} cues",
        reference=_REFERENCE,
        compute=_mean_over_images(IMAGE_VALUES["sensitivity"]),
        caveats=(_TIES, _MEMBERS, _CLASSES),
        chance="H_K/K for a random order of K classes: .0075 for K = 1,000",
        higher_is=f"recognises more {cue} cues",
        needs=("logits",),
    )


def _top(cue: str, k: int) -> Metric:
    return Metric(
        name=f"{cue}_top{k}",
        title=f"{cue.capitalize()}-cue accuracy, top {k}",
        formula=f"(1/N) Σ [rank_i ≤ {k}], rank = best rank of any member of the {cue} class among all logits",
        denominator=f"all answered {cue} cues",
        reference=_REFERENCE,
        compute=_mean_over_images(IMAGE_VALUES[f"top{k}"]),
        caveats=(_MEMBERS, _CLASSES, "People answer among the given classes: their chance is 1/10, a model's 1/1,000."),
        chance=f"about {k} · members / classes",
        higher_is=f"recognises more {cue} cues",
        needs=("logits",),
    )


def _preference(cue: str, other: str) -> Metric:
    def compute(shape_sensitivity: Any, texture_sensitivity: Any) -> Any:
        """Divide one sensitivity by the sum of both; NaN where both are 0.

        Parameters
        ----------
        shape_sensitivity, texture_sensitivity : float or array
            Mean reciprocal ranks in [0, 1].

        References
        ----------
        Kim et al. 2026, https://arxiv.org/abs/2603.10834, eq. 2 and 3
        """
        sensitivity = shape_sensitivity if cue == "shape" else texture_sensitivity
        return quotient(sensitivity, shape_sensitivity + texture_sensitivity)

    return Metric(
        name=f"{cue}_preference",
        title=f"{cue.capitalize()} preference",
        formula=f"{cue} sensitivity / (shape sensitivity + texture sensitivity)",
        denominator="sum of both sensitivities; n counts the images of both cues",
        reference=_REFERENCE,
        compute=compute,
        caveats=(
            "Read it with both sensitivities: a model that recognises next to nothing and one that recognises "
            "everything can both have .5.",
            "Shape and texture cues are different images of different classes, never in conflict.",
            _CLASSES,
        ),
        chance="0.5 (equal ranks of both)",
        higher_is=f"ranks {cue} cues better than {other} cues",
        needs=("logits",),
    )


def _distorted_prediction(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return the share of images that are correct only because the other classes were removed.

    Parameters
    ----------
    logits, target, members
        As in ``distorted``.

    Examples
    --------
    >>> distorted_prediction(np.array([[0.2, 0.1, 0.9]]), np.array([0]), [np.array([0]), np.array([1])])
    1.0
    """
    return mean_or_nan(distorted(logits, target, members))


shape_sensitivity, texture_sensitivity = (_sensitivity(cue) for cue in CUES)
shape_preference, texture_preference = _preference("shape", "texture"), _preference("texture", "shape")
shape_top1, texture_top1 = (_top(cue, 1) for cue in CUES)
shape_top5, texture_top5 = (_top(cue, 5) for cue in CUES)
distorted_prediction = Metric(
    name="distorted_prediction",
    title="Distorted predictions",
    formula="(1/N) Σ [the best of the set's classes is the right one, but the top-1 of all classes is not]",
    denominator="all answered images",
    reference=f"{_PAPER}, problem 3 and Fig. I; arXiv:2603.10834",
    compute=_distorted_prediction,
    caveats=(
        "The restricted decision takes the largest logit of each class' members; cue conflict takes the mean "
        "probability of the members, so that its 16-way decisions differ a little.",
        "Not an error of the model: what removing classes after the fact adds to its accuracy.",
    ),
    chance="about 1 / number of classes in the set",
    higher_is="a restricted label space flatters the model more",
    needs=("logits",),
)

METRICS = (
    shape_sensitivity,
    texture_sensitivity,
    shape_preference,
    texture_preference,
    shape_top1,
    texture_top1,
    shape_top5,
    texture_top5,
    distorted_prediction,
)
