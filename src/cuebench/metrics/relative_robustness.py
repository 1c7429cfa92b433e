"""Relative robustness: the quality under a corruption over the quality on clean images, averaged over its levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import quotient

Number = TypeVar("Number", float, np.ndarray)


def relative_robustness(corrupted: Sequence[Number], clean: Number) -> Number:
    """Return the mean of the qualities at all levels over the clean quality.

    Parameters
    ----------
    corrupted : sequence of float or array
        Quality at each level.
    clean : float or array
        Quality without corruption.

    Returns
    -------
    float or array
        NaN where the clean quality is 0 or there is no level.

    References
    ----------
    Geirhos et al. 2018, https://arxiv.org/abs/1808.08750

    Examples
    --------
    >>> round(relative_robustness([0.8, 0.4], 0.8), 6)
    0.75
    """
    mean = np.mean(corrupted, axis=0) if len(corrupted) else float("nan")
    robustness: Number = quotient(mean, clean)
    return robustness


METRIC = Metric(
    name="relative_robustness",
    title="Relative robustness under corruptions",
    formula="Q(corrupted) / Q(clean); of a type: mean over its levels; mean: mean over the types",
    denominator="quality on the clean images in colour; n counts the corrupted pictures",
    compute=relative_robustness,
    reference="Geirhos et al. 2018, Generalisation in humans and deep neural networks, arXiv:1808.08750; "
    "Heinert et al. 2025, Table I",
    caveats=(
        "The weakest level of every type is counted too: no change but (for classification) the loss of colour, and "
        "for uniform noise, whose images have a contrast of .3 at every level, the loss of contrast.",
        "The mean over levels depends on which levels were chosen; the published ones are used.",
        "Phase noise as published breaks the symmetry of the spectrum (faithful, counts in the mean); the corrected "
        "one is reported beside it.",
        "The interval resamples images; all pictures made from one are drawn together.",
    ),
    bounds=(0.0, float("inf")),
    chance="(1 / classes) / Q(clean)",
    higher_is="keeps more of its quality",
    needs=("logits",),
)
