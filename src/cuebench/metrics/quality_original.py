"""Quality on original images (Q_O): what the qualities on single cues are compared with."""

from __future__ import annotations

from cuebench.metrics.base import Metric
from cuebench.metrics.quality import CAVEATS, REFERENCE


def quality_original(right: int, shown: int) -> float:
    """Return right / shown: the accuracy on the images as they are.

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
    >>> quality_original(3, 4)
    0.75
    """
    return right / shown if shown else float("nan")


METRIC = Metric(
    name="quality_original",
    title="Quality on originals, Q_O",
    formula="Q on the images as they are",
    denominator="all answered original images (pixels of all of them for mIoU)",
    compute=quality_original,
    reference=REFERENCE,
    caveats=(*CAVEATS,),
    chance="1 / classes (accuracy)",
    higher_is="recognises more",
    needs=("logits",),
)
