"""Texturedness: how similar a model's answer to an image is to its answer to the nearest texture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.arrays import Array
from cuebench.interval_methods import STUDENT, WELCH, of_resamples
from cuebench.metrics.base import Metric
from cuebench.metrics.texture_association import resampled
from cuebench.statistics.estimates import difference_of_means, mean, mean_of_sums
from cuebench.types import Estimate


def texturedness_estimate(similarity: Array, with_other_pictures: Array | None = None) -> Estimate:
    """Return the mean similarity with an interval over photographs and texture pictures, as many of each.

    Parameters
    ----------
    similarity : float array n
        From ``texture_association.texture_identity``.
    with_other_pictures : float array, optional
        The mean for the TAV of each resample of the texture pictures (``similarity_with_other_pictures``); without it
        the interval is Student's over photographs, for this TAV.
    """
    if len(similarity) < 2:
        return mean(similarity)
    return _mean_of((float(similarity.mean()), len(similarity)), [similarity], with_other_pictures)


def texturedness_difference(first: Array, second: Array, with_other_pictures: Array | None = None) -> Estimate:
    """Return the mean of the first minus that of the second, with an interval as in `texturedness_estimate`."""
    if min(len(first), len(second)) < 2:
        return difference_of_means(first, second)
    value = float(first.mean() - second.mean())
    return _mean_of((value, len(first) + len(second)), [first, second], with_other_pictures)


def _mean_of(number: tuple[float, int], photographs: Sequence[Array], pictures: Array | None) -> Estimate:
    """Return an estimate whose variance is that over photographs plus that over resampled texture pictures."""
    parts = [(float(values.var(ddof=1)) / len(values), len(values) - 1) for values in photographs]
    method = STUDENT if len(photographs) == 1 else WELCH
    if pictures is not None and len(pictures) > 1:
        method = of_resamples("Student's t with * resamples", len(pictures))
        parts.append((float(np.var(pictures, ddof=1)), len(pictures) - 1))
    variance = sum(part for part, _ in parts)
    doubt = sum(part**2 / freedom for part, freedom in parts)
    return mean_of_sums(number[0], variance, number[1], variance**2 / doubt if doubt else 1.0, method=method)


def similarity_with_other_pictures(
    probabilities: Array, counts: Array, *, seed: int = 0, resamples: int = 1000
) -> Array:
    """Return the mean largest cosine of answers with the TAV of each resample of the texture pictures.

    Parameters
    ----------
    probabilities : float array n × m
        Answers to photographs.
    counts : int array k × m
        Pictures of each texture by top-1 class.
    seed, resamples : int
        Of the resamples.
    """
    # Classes that no texture picture was answered with have no association in any resample.
    used = np.flatnonzero(np.asarray(counts).any(axis=0))
    rows = (probabilities[:, used] / np.linalg.norm(probabilities, axis=1, keepdims=True)).astype(np.float32)
    means = []
    for batch in resampled(np.asarray(counts)[:, used], seed=seed, resamples=resamples):
        for tav in batch.astype(np.float32):
            length = np.linalg.norm(tav, axis=1, keepdims=True)
            unit = np.divide(tav, length, out=np.zeros_like(tav), where=length > 0)
            means.append(float((rows @ unit.T).max(axis=1).mean()))
    return np.array(means)


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
        "Few texture pictures make it too large (by up to .10 in simulations): their associations are too strong. The "
        "interval is for as many other photographs and texture pictures; compare values of equal numbers only.",
        "Depends on the texture set: a class that no texture picture was answered with adds nothing.",
        "It is a property of an image for a model, not of the image alone.",
        "Below 0 only as a difference: the condition `adversarial-clean`.",
    ),
    bounds=(-1.0, 1.0),
    chance="depends on the TAV; the protocol gives the value for a TAV whose classes are shuffled",
    higher_is="the answer looks more like the answer to a pure texture",
    needs=("logits",),
)
