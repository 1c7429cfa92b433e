"""Top-1 accuracy on texture cues: the share whose texture class is among the 1 first of the whole label space."""

from __future__ import annotations

from collections.abc import Sequence

from cuebench.metrics.ranks import best_ranks
from cuebench.metrics.sensitivity import CLUSTERS, MEMBERS, REFERENCE, Array, mean
from cuebench.types import MetricInfo

METRIC = MetricInfo(
    name="texture_top1",
    title="Texture-cue accuracy, top 1",
    formula="(1/N) Σ [rank_i ≤ 1], rank = best rank of any member of the texture class among all logits",
    denominator="all answered texture cues",
    reference=REFERENCE,
    caveats=(MEMBERS, CLUSTERS, "People answer among the given classes: their chance is 1/10, a model's 1/1,000."),
    bounds=(0.0, 1.0),
    chance="about 1 · members / classes",
    higher_is="recognises more texture cues",
    needs=("logits",),
)


def texture_top1(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return the share of texture cues with a member of their class among the 1 largest logits.

    Parameters
    ----------
    logits : float array n × classes
        Answers to texture cues.
    target : int array n
        Position in ``members`` of each cue's class.
    members : sequence of int arrays
        Positions of each class' members among the logits.

    References
    ----------
    Kim et al. 2026, https://arxiv.org/abs/2603.10834, §3.1

    Examples
    --------
    >>> import numpy as np
    >>> texture_top1(np.eye(8), np.zeros(8, int), [np.array([0])])
    0.125
    """
    return mean(best_ranks(logits, target, members) <= 1)
