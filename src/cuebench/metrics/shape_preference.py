"""Shape preference: the shape sensitivity's part of both sensitivities."""

from __future__ import annotations

from cuebench.metrics.sensitivity import preference, preference_info

METRIC = preference_info("shape", "texture")


def shape_preference(shape_sensitivity: float, texture_sensitivity: float) -> float:
    """Return Shape-Sens / (Shape-Sens + Texture-Sens).

    Parameters
    ----------
    shape_sensitivity, texture_sensitivity : float
        Mean reciprocal ranks in [0, 1].

    Returns
    -------
    float
        Between 0 and 1; NaN where both are 0.

    References
    ----------
    Kim et al. 2026, https://arxiv.org/abs/2603.10834, eq. 2 and 3

    Examples
    --------
    >>> shape_preference(0.5, 0.5)
    0.5
    """
    return preference(shape_sensitivity, texture_sensitivity)
