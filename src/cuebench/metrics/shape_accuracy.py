"""Shape accuracy: the share of conflict trials answered with the shape class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.metrics.ratios import Array, Outcomes, Ratio, Terms, outcomes, total
from cuebench.types import MetricInfo

METRIC = MetricInfo(
    name="shape_accuracy",
    title="Shape accuracy",
    formula="n_shape / n_conflict",
    denominator="all answered conflict trials (shape class ≠ texture class), decided or not",
    reference="Geirhos et al. 2019, arXiv:1811.12231; Geirhos et al. 2021, arXiv:2106.07411",
    caveats=(
        "Shape and texture accuracy add up to the decided fraction.",
        "A trial that a person left unanswered counts as wrong; a stimulus that was never shown is excluded.",
    ),
    bounds=(0.0, 1.0),
    chance="1 / number of classes (0.0625 for 16)",
    higher_is="recognises more shapes in spite of a conflicting texture",
    needs=("decisions",),
)


def terms(trials: Outcomes) -> Terms:
    """Return what each trial adds: numerator [answer = shape], denominator [conflict]."""
    return Terms(trials.shape, trials.conflict)


def count(trials: Outcomes) -> Ratio:
    """Return n_shape over n_conflict as counts that add up over shards."""
    return total(terms(trials))


def compute(counts: Ratio) -> float:
    """Return the shape accuracy of the counts; NaN where there is no conflict trial."""
    return counts.value


def shape_accuracy(
    decisions: Sequence[Any] | Array, shape: Sequence[Any] | Array, texture: Sequence[Any] | Array
) -> float:
    """Return n_shape / n_conflict.

    Parameters
    ----------
    decisions, shape, texture : arrays of str or int, one value for each trial
        The answer and the two classes.

    Returns
    -------
    float
        Between 0 and 1; NaN where there is no conflict trial.

    References
    ----------
    Geirhos et al. 2019, https://arxiv.org/abs/1811.12231

    Examples
    --------
    >>> shape_accuracy(["cat", "dog", "cat", "car"], ["cat"] * 4, ["dog"] * 4)
    0.5
    """
    return compute(count(outcomes(decisions, shape, texture)))
