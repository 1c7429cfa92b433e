"""Relative accuracy: the accuracy under a suppression over the accuracy on the unchanged images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import quotient

_PAPER = "Burgert et al. 2025, ImageNet-trained CNNs are not biased towards texture; arXiv:2509.20234"


def relative_accuracy(correct: Sequence[Any] | Array, original: Sequence[Any] | Array) -> Any:
    """Return mean(correct) / mean(original).

    Parameters
    ----------
    correct, original : sequences of bool or float
        Whether each picture was answered correctly, with and without the suppression; or the accuracy of each level
        and that without suppression, as numbers or as arrays of equal length (then the result is such an array).

    Returns
    -------
    float or array
        NaN where nothing was answered correctly without the suppression.

    References
    ----------
    Burgert et al. 2025, https://arxiv.org/abs/2509.20234

    Examples
    --------
    >>> relative_accuracy(np.array([True, False]), np.array([True, True]))
    0.5
    """
    if not len(correct) or not len(original):
        return float("nan")
    return quotient(np.mean(correct, axis=0), np.mean(original, axis=0))


METRIC = Metric(
    name="relative_accuracy",
    title="Relative accuracy under suppression",
    formula="top-1 on suppressed images / top-1 on the same images unchanged; of a suppression: mean over its levels; "
    "of a kind of suppression (suppress=…): mean over its suppressions",
    denominator="top-1 on the unchanged images; n counts the suppressed pictures",
    compute=relative_accuracy,
    reference=_PAPER,
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
