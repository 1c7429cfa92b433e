"""Relative accuracy: the accuracy under a suppression over the accuracy on the unchanged images."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.statistics.intervals import weights

REFERENCE = "Burgert et al. 2025, ImageNet-trained CNNs are not biased towards texture; arXiv:2509.20234"


def relative_accuracy(correct: Array, original: Array) -> float:
    """Return mean(correct) / mean(original).

    Parameters
    ----------
    correct, original : bool arrays
        Whether each picture was answered right, with and without the suppression.

    Returns
    -------
    float
        NaN where nothing was right without it.

    References
    ----------
    Burgert et al. 2025, https://arxiv.org/abs/2509.20234

    Examples
    --------
    >>> relative_accuracy(np.array([True, False]), np.array([True, True]))
    0.5
    """
    if not len(correct) or not len(original) or not np.any(original):
        return float("nan")
    return float(np.mean(correct) / np.mean(original))


def resampled_accuracies(correct: Array, present: Array, *, seed: int, resamples: int) -> Floats:
    """Return resamples × conditions: the accuracy in each condition when photographs are drawn with replacement.

    Parameters
    ----------
    correct, present : arrays photographs × conditions
        Whether the picture was answered right, and whether it was shown at all.
    seed, resamples : int
        Of the bootstrap. NaN where a draw has no picture of a condition.
    """
    if correct.shape != present.shape:
        raise UserError(f"correct has shape {correct.shape}, present {present.shape}")
    drawn = weights("images", len(correct), seed, resamples)
    step = max(1, 4_000_000 // max(len(correct), 1))
    out = np.full((resamples, correct.shape[1]), np.nan)
    both = np.concatenate([correct * present, present], axis=1).astype(np.float64)
    for start in range(0, resamples, step):
        sums = drawn[start : start + step].astype(np.float64) @ both
        right, shown = np.split(sums, 2, axis=1)
        np.divide(right, shown, out=out[start : start + step], where=shown > 0)
    return out


METRIC = Metric(
    name="relative_accuracy",
    title="Relative accuracy under suppression",
    formula="top-1 on suppressed images / top-1 on the same images unchanged",
    denominator="top-1 on the unchanged images; n counts the suppressed pictures",
    compute=relative_accuracy,
    reference=REFERENCE,
    caveats=(
        "A suppression takes away more than it says: blur removes fine shape too. See its quality measures.",
        "The interval resamples photographs; all pictures made from one are drawn together.",
        "The mean over levels depends on which levels were chosen.",
    ),
    bounds=(0.0, float("inf")),
    chance="(1 / classes) / top-1 on the unchanged images",
    higher_is="relies less on what was taken away",
    needs=("logits",),
)
