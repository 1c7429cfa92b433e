"""Cue-decomposition shape bias S_cd: quality on shape cues against quality on texture cues, each over its mean."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.metrics.cue_decomposition import divided
from cuebench.metrics.quality import REFERENCE

Number = TypeVar("Number", float, np.ndarray)


def shape_bias_cd(shape: Number, texture: Number, s: Number | float, t: Number | float) -> Number:
    """Return S_cd = (Q_S/s)/(Q_S/s + Q_T/t).

    Parameters
    ----------
    shape, texture : float or array
        Q_S and Q_T.
    s, t : float or array
        Their means over H.

    Returns
    -------
    float or array
        Between 0 and 1; NaN where both qualities, or s or t, are 0.

    References
    ----------
    Heinert et al. 2025, eq. 4

    Examples
    --------
    >>> shape_bias_cd(0.6, 0.8, 0.6, 0.8)
    0.5
    """
    one, other = divided(shape, s), divided(texture, t)
    return divided(one, one + other)


METRIC = Metric(
    name="shape_bias_cd",
    title="Cue-decomposition shape bias, S_cd",
    formula="(Q_S/s) / (Q_S/s + Q_T/t), with s and t the means of Q_S and Q_T over a population H of models",
    denominator="sum of both normalised qualities; n counts the pictures of both cues",
    compute=shape_bias_cd,
    reference=REFERENCE,
    caveats=(
        "It depends on H: .5 is the bias of H's average model, not of an unbiased one. The condition names H, and its "
        "members, s and t stand in the table `population`.",
        "A frozen H belongs to its own images and classes; with others only the order of models means something.",
        "With H = run the interval resamples s and t with the images; with a frozen H they are fixed.",
    ),
    chance="0.5 for a model with Q_S = s and Q_T = t",
    higher_is="recognises shape cues better than texture cues, compared with H",
    needs=("logits",),
)
