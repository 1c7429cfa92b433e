"""Texturedness: how similar a model's answer to an image is to its answer to the nearest texture."""

from __future__ import annotations

from cuebench.arrays import Array
from cuebench.metrics.base import Metric
from cuebench.statistics.estimates import mean
from cuebench.types import Estimate


def texturedness_estimate(similarity: Array) -> Estimate:
    """Return the mean similarity with Student's interval over images."""
    return mean(similarity)


def texturedness(similarity: Array) -> float:
    """Return the mean similarity; NaN where there is no image.

    Parameters
    ----------
    similarity : float array n
        From ``texture_association.texture_identity``.

    Examples
    --------
    >>> import numpy as np
    >>> texturedness(np.array([0.5, 1.0]))
    0.75
    """
    return texturedness_estimate(similarity).value


METRIC = Metric(
    name="texturedness",
    title="Texturedness (size of the TID)",
    formula="(1/n) Σ_x max_i cos(softmax(f(x)), TAV_i)",
    denominator="all answered images",
    compute=texturedness,
    reference="Hoak, Sheatsley & McDaniel, Err on the Side of Texture, equation 3 with max, figure 14",
    caveats=(
        "Depends on the texture set: a class that no texture picture was answered with adds nothing.",
        "It is a property of an image for a model, not of the image alone.",
        "Below 0 only as a difference: the condition `adversarial-clean`.",
    ),
    bounds=(-1.0, 1.0),
    chance="depends on the TAV; the protocol gives the value for a TAV whose classes are shuffled",
    higher_is="the answer looks more like the answer to a pure texture",
    needs=("logits",),
)
