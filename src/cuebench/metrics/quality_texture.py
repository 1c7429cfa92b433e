"""Quality on texture cues (Q_T): what is recognised after shuffling took shape away."""

from __future__ import annotations

from cuebench.metrics.base import Metric
from cuebench.metrics.quality import CAVEATS, REFERENCE


def quality_texture(right: int, shown: int) -> float:
    """Return right / shown: the accuracy on images without shape.

    Parameters
    ----------
    right, shown : int
        Pictures answered right, and all that were answered.

    Returns
    -------
    float
        NaN where nothing was shown.

    References
    ----------
    Heinert et al. 2025, section III

    Examples
    --------
    >>> quality_texture(3, 4)
    0.75
    """
    return right / shown if shown else float("nan")


METRIC = Metric(
    name="quality_texture",
    title="Quality on texture cues, Q_T",
    formula="Q on shuffled images (Voronoi with 32 sites unless the condition says otherwise)",
    denominator="all answered texture images (pixels of all of them for mIoU)",
    compute=quality_texture,
    reference=REFERENCE,
    caveats=(
        "For segmentation the masks move with the pixels.",
        *CAVEATS,
    ),
    chance="1 / classes (accuracy)",
    higher_is="recognises more by texture",
    needs=("logits",),
)
