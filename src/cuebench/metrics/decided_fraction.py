"""Decided fraction: the share of conflict trials answered by one of the two cues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.metrics.ratios import Array, Outcomes, Ratio, Terms, outcomes, total
from cuebench.types import MetricInfo

METRIC = MetricInfo(
    name="decided_fraction",
    title="Decided fraction",
    formula="(n_shape + n_texture) / n_conflict",
    denominator="all answered conflict trials (shape class ≠ texture class)",
    reference="cuebench; the denominator of the shape bias of Geirhos et al. 2019, arXiv:1811.12231",
    caveats=(
        "The shape bias rests on this share of the trials only, and it differs between observers.",
        "In the full label space it is smaller: the top-1 class must be a member of one of the two categories.",
    ),
    bounds=(0.0, 1.0),
    chance="2 / number of classes (0.125 for 16)",
    higher_is="answers more often by one of the two cues",
    needs=("decisions",),
)


def terms(trials: Outcomes) -> Terms:
    """Return what each trial adds: numerator [answer = shape or texture], denominator [conflict]."""
    return Terms(trials.decided, trials.conflict)


def count(trials: Outcomes) -> Ratio:
    """Return n_shape + n_texture over n_conflict as counts that add up over shards."""
    return total(terms(trials))


def compute(counts: Ratio) -> float:
    """Return the decided fraction of the counts; NaN where there is no conflict trial."""
    return counts.value


def decided_fraction(
    decisions: Sequence[Any] | Array, shape: Sequence[Any] | Array, texture: Sequence[Any] | Array
) -> float:
    """Return (n_shape + n_texture) / n_conflict.

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
    >>> decided_fraction(["cat", "dog", "cat", "car"], ["cat"] * 4, ["dog"] * 4)
    0.75
    """
    return compute(count(outcomes(decisions, shape, texture)))
