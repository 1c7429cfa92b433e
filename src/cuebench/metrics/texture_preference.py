"""Texture preference: the texture sensitivity's part of both sensitivities."""

from __future__ import annotations

from cuebench.metrics.sensitivity import CLUSTERS, REFERENCE, preference
from cuebench.types import MetricInfo

METRIC = MetricInfo(
    name="texture_preference",
    title="Texture preference",
    formula="Texture-Sens / (Shape-Sens + Texture-Sens)",
    denominator="sum of both sensitivities; n counts the images of both cues",
    reference=REFERENCE,
    caveats=(
        "Read it with both sensitivities: two models that see next to nothing and two that see all share a .5.",
        "Shape and texture cues are different images of different classes, never in conflict.",
        CLUSTERS,
    ),
    bounds=(0.0, 1.0),
    chance="0.5 (equal ranks of both)",
    higher_is="ranks texture cues better than shape cues",
    needs=("logits",),
)


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
