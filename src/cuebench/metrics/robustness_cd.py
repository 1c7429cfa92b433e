"""Cue-decomposition robustness R_cd: what is left of the quality when one of the two cues is taken away."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.metrics.cue_decomposition import divided
from cuebench.metrics.quality import REFERENCE

Number = TypeVar("Number", float, np.ndarray)


def robustness_cd(shape: Number, texture: Number, original: Number) -> Number:
    """Return R_cd = (Q_S + Q_T) / (2 Q_O).

    Parameters
    ----------
    shape, texture, original : float or array
        Q_S, Q_T and Q_O.

    Returns
    -------
    float or array
        NaN where Q_O is 0.

    References
    ----------
    Heinert et al. 2025, eq. 5

    Examples
    --------
    >>> robustness_cd(0.5, 0.75, 1.0)
    0.625
    """
    return divided(shape + texture, 2 * original)


METRIC = Metric(
    name="robustness_cd",
    title="Cue-decomposition robustness, R_cd",
    formula="(Q_S + Q_T) / (2 Q_O)",
    denominator="twice the quality on the originals; n counts the pictures of all three",
    compute=robustness_cd,
    reference=REFERENCE,
    caveats=(
        "No population is needed: it compares a model with itself.",
        "Above 1 only where a cue is recognised better than the original.",
        "On 43 ImageNet models its rank correlation with the mean relative robustness under corruptions is .951.",
    ),
    bounds=(0.0, float("inf")),
    chance="1 / (classes · Q_O)",
    higher_is="is hurt less when a cue is missing",
    needs=("logits",),
)
