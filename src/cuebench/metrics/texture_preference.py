"""Texture preference: the texture sensitivity's part of both sensitivities."""

from __future__ import annotations

from cuebench.metrics.sensitivity import preference, preference_info

METRIC = preference_info("texture", "shape")


def texture_preference(shape_sensitivity: float, texture_sensitivity: float) -> float:
    """Return Texture-Sens / (Shape-Sens + Texture-Sens).

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
    >>> texture_preference(0.5, 0.5)
    0.5
    """
    return preference(texture_sensitivity, shape_sensitivity)
