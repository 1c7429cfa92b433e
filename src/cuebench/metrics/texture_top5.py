"""Top-5 accuracy on texture cues: the share whose texture class is among the 5 first of the whole label space."""

from __future__ import annotations

from collections.abc import Sequence

from cuebench.metrics.sensitivity import Array, top_k, top_k_info

METRIC = top_k_info("texture", 5)


def texture_top5(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return (1/N) Σ [rank_i ≤ 5] over the texture cues; see ``sensitivity.top_k``.

    References
    ----------
    Kim et al. 2026, https://arxiv.org/abs/2603.10834, §3.1

    Examples
    --------
    >>> import numpy as np
    >>> texture_top5(np.eye(8), np.zeros(8, int), [np.array([0])])
    1.0
    """
    return top_k(logits, target, members, 5)
