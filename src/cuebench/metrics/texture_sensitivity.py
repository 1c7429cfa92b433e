"""Texture sensitivity: mean reciprocal rank of the texture class of pure texture cues, over the whole label space."""

from __future__ import annotations

from collections.abc import Sequence

from cuebench.metrics.sensitivity import CLUSTERS, MEMBERS, REFERENCE, TIES, Array, sensitivity
from cuebench.types import MetricInfo

METRIC = MetricInfo(
    name="texture_sensitivity",
    title="Texture sensitivity (Texture-Sens)",
    formula="(1/N) Σ 1/rank_i, rank = best rank of any member of the texture class among all logits",
    denominator="all answered texture cues",
    reference=REFERENCE,
    caveats=(TIES, MEMBERS, CLUSTERS),
    bounds=(0.0, 1.0),
    chance="H_K/K for a random order of K classes: .0075 for K = 1,000",
    higher_is="recognises more texture cues",
    needs=("logits",),
)


def texture_sensitivity(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return the mean reciprocal rank of the texture class of each texture cue, over the whole label space.

    Parameters
    ----------
    logits : float array n × classes
        Answers to texture cues.
    target : int array n
        Position in ``members`` of each cue's class.
    members : sequence of int arrays
        Positions of each class' members among the logits.

    Returns
    -------
    float
        Between 1/classes and 1; NaN where there is no cue.

    References
    ----------
    Kim et al. 2026, https://arxiv.org/abs/2603.10834, eq. 1

    Examples
    --------
    >>> import numpy as np
    >>> texture_sensitivity(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]), [np.array([0]), np.array([1])])
    0.75
    """
    return sensitivity(logits, target, members)
