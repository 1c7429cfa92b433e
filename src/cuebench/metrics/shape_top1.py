"""Top-1 accuracy on shape cues: the share whose shape class is among the 1 first of the whole label space."""

from __future__ import annotations

from collections.abc import Sequence

from cuebench.metrics.sensitivity import Array, top_k, top_k_info

METRIC = top_k_info("shape", 1)


def shape_top1(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return (1/N) Σ [rank_i ≤ 1] over the shape cues; see ``sensitivity.top_k``.

    References
    ----------
    Kim et al. 2026, https://arxiv.org/abs/2603.10834, §3.1

    Examples
    --------
    >>> import numpy as np
    >>> shape_top1(np.eye(8), np.zeros(8, int), [np.array([0])])
    0.125
    """
    return top_k(logits, target, members, 1)
