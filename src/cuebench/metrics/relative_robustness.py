"""Relative robustness: the quality under a corruption over the quality on clean images, averaged over its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.metrics.cue_decomposition import divided
from cuebench.metrics.quality import Quality


def relative_robustness(corrupted: Sequence[float], clean: float) -> float:
    """Return the mean of the qualities at all levels over the clean quality.

    Parameters
    ----------
    corrupted : sequence of float
        Quality at each level.
    clean : float
        Quality without corruption.

    Returns
    -------
    float
        NaN where the clean quality is 0 or there is no level.

    References
    ----------
    Geirhos et al. 2018, https://arxiv.org/abs/1808.08750

    Examples
    --------
    >>> round(relative_robustness([0.8, 0.4], 0.8), 6)
    0.75
    """
    return float(np.mean(corrupted) / clean) if len(corrupted) and clean else float("nan")


def over(corrupted: Quality, clean: Quality) -> Quality:
    """Return one level's quality over the clean one, with draws."""
    return Quality(float(divided(corrupted.value, clean.value)), divided(corrupted.draws, clean.draws), corrupted.n)


def mean_quality(parts: Sequence[Quality]) -> Quality:
    """Return the mean of several (levels of a type, or types), with draws."""
    return Quality(
        float(np.mean([p.value for p in parts])), np.mean([p.draws for p in parts], axis=0), sum(p.n for p in parts)
    )


def by_type(levels: Mapping[str, Sequence[Quality]]) -> dict[str, Quality]:
    """Return type → mean over its levels."""
    return {name: mean_quality(own) for name, own in levels.items() if own}


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
