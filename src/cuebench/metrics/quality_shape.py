"""Quality on shape cues (Q_S): what is recognised after edge-enhancing diffusion took texture away."""

from __future__ import annotations

from cuebench.metrics.base import Metric
from cuebench.metrics.quality import CAVEATS, REFERENCE


def quality_shape(right: int, shown: int) -> float:
    """Return right / shown: the accuracy on images without texture.

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
    >>> quality_shape(3, 4)
    0.75
    """
    return right / shown if shown else float("nan")


METRIC = Metric(
    name="quality_shape",
    title="Quality on shape cues, Q_S",
    formula="Q on the images after edge-enhancing diffusion",
    denominator="all answered EED images (pixels of all of them for mIoU)",
    compute=quality_shape,
    reference=REFERENCE,
    caveats=(
        "EED keeps colour and coarse shading; it is not shape alone.",
        *CAVEATS,
    ),
    chance="1 / classes (accuracy)",
    higher_is="recognises more by shape",
    needs=("logits",),
)
