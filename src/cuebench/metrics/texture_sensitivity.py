"""Texture sensitivity: mean reciprocal rank of the texture class of pure texture cues, over the whole label space."""

from __future__ import annotations

from collections.abc import Sequence

from cuebench.metrics.sensitivity import Array, sensitivity, sensitivity_info

METRIC = sensitivity_info("texture")


def texture_sensitivity(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return (1/N) Σ 1/rank_i over the texture cues, between 1/classes and 1; see ``sensitivity.sensitivity``.

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
