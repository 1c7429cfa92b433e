"""Texture accuracy: the share of conflict trials answered with the texture class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.metrics.ratios import Array, Outcomes, Ratio, Terms, outcomes, total
from cuebench.types import MetricInfo

METRIC = MetricInfo(
    name="texture_accuracy",
    title="Texture accuracy",
    formula="n_texture / n_conflict",
    denominator="all answered conflict trials (shape class ≠ texture class), decided or not",
    reference="Geirhos et al. 2019, arXiv:1811.12231; Geirhos et al. 2021, arXiv:2106.07411",
    caveats=(
        "Shape and texture accuracy add up to the decided fraction.",
        "By class it is given by *texture* class; only 48 texture sources, three for each class, stand behind it.",
    ),
    bounds=(0.0, 1.0),
    chance="1 / number of classes (0.0625 for 16)",
    higher_is="recognises more textures in spite of a conflicting shape",
    needs=("decisions",),
)


def terms(trials: Outcomes) -> Terms:
    """Return what each trial adds: numerator [answer = texture], denominator [conflict]."""
    return Terms(trials.texture, trials.conflict)


def count(trials: Outcomes) -> Ratio:
    """Return n_texture over n_conflict as counts that add up over shards."""
    return total(terms(trials))


def compute(counts: Ratio) -> float:
    """Return the texture accuracy of the counts; NaN where there is no conflict trial."""
    return counts.value


def texture_accuracy(
    decisions: Sequence[Any] | Array, shape: Sequence[Any] | Array, texture: Sequence[Any] | Array
) -> float:
    """Return n_texture / n_conflict.

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
    >>> texture_accuracy(["cat", "dog", "cat", "car"], ["cat"] * 4, ["dog"] * 4)
    0.25
    """
    return compute(count(outcomes(decisions, shape, texture)))
