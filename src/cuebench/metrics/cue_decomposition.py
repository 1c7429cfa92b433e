"""Cue decomposition: quality on originals, shape cues and texture cues; shape bias S_cd and robustness R_cd."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import quotient

Number = TypeVar("Number", float, np.ndarray)

_PAPER = "Heinert et al. 2025, Shape Bias and Robustness Evaluation via Cue Decomposition, eq. 3 to 5; arXiv:2503.12453"


def quality(right: Number, shown: Number) -> Number:
    """Return right / shown: the accuracy on one version of the images.

    For segmentation the quality is `mean_iou` over all images instead.

    Parameters
    ----------
    right, shown : int or array
        Number of pictures that were answered correctly, and number of those that were answered.

    Returns
    -------
    float or array
        NaN where nothing was shown.

    References
    ----------
    Heinert et al. 2025, section III

    Examples
    --------
    >>> quality_shape(3, 4)
    0.75
    """
    ratio: Number = quotient(right, shown)
    return ratio


def shape_bias_of(shape: Number, texture: Number, s: Number | float, t: Number | float) -> Number:
    """Return S_cd = (Q_S/s) / (Q_S/s + Q_T/t).

    Parameters
    ----------
    shape, texture : float or array
        Q_S and Q_T.
    s, t : float or array
        Their means over the population H.

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
    relative_shape, relative_texture = quotient(shape, s), quotient(texture, t)
    bias: Number = quotient(relative_shape, relative_shape + relative_texture)
    return bias


def robustness_of(shape: Number, texture: Number, original: Number) -> Number:
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
    robustness: Number = quotient(shape + texture, 2 * original)
    return robustness


def _quality(version: str, title: str, formula: str, pictures: str, higher_is: str, *caveats: str) -> Metric:
    return Metric(
        name=f"quality_{version}",
        title=title,
        formula=f"Q on {formula}; Q = right / shown (accuracy), or the mean IoU of a segmentation",
        denominator=f"all answered {pictures} (pixels of all of them for mIoU)",
        reference=_PAPER,
        compute=quality,
        caveats=(
            *caveats,
            "Accuracy (top-1 over all classes of the model, or over a label map) or dataset-level mIoU; the note says "
            "which.",
            "The interval resamples images; all versions of one are drawn together.",
        ),
        chance="1 / classes (accuracy)",
        higher_is=higher_is,
        needs=("logits",),
    )


quality_original = _quality(
    "original", "Quality on originals, Q_O", "the images as they are", "original images", "recognises more"
)
quality_shape = _quality(
    "shape",
    "Quality on shape cues, Q_S",
    "the images after edge-enhancing diffusion",
    "EED images",
    "recognises more by shape",
    "EED keeps colour and coarse shading; it is not shape alone.",
)
quality_texture = _quality(
    "texture",
    "Quality on texture cues, Q_T",
    "shuffled images (Voronoi with 32 sites unless the condition says otherwise)",
    "texture images",
    "recognises more by texture",
    "For segmentation the masks move with the pixels.",
)

shape_bias_cd = Metric(
    name="shape_bias_cd",
    title="Cue-decomposition shape bias, S_cd",
    formula="(Q_S/s) / (Q_S/s + Q_T/t), with s and t the means of Q_S and Q_T over a population H of models",
    denominator="sum of both normalised qualities; n counts the pictures of both cues",
    reference=_PAPER,
    compute=shape_bias_of,
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

robustness_cd = Metric(
    name="robustness_cd",
    title="Cue-decomposition robustness, R_cd",
    formula="(Q_S + Q_T) / (2 Q_O)",
    denominator="twice the quality on the originals; n counts the pictures of all three",
    reference=_PAPER,
    compute=robustness_of,
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

METRICS = (quality_original, quality_shape, quality_texture, shape_bias_cd, robustness_cd)
