"""Accuracy: the share of images whose label is among the k classes with the largest logits."""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array, Bools, Floats
from cuebench.errors import UserError
from cuebench.labels.checks import refuse_nan
from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import Terms


def rank(logits: Array, target: Array) -> Array:
    """Return the rank of the target class in each row, 1 = largest, without sorting.

    Parameters
    ----------
    logits : float array n × classes
        Or probabilities: only the order counts.
    target : int array n
        Position of the right class.
    """
    if logits.ndim != 2 or len(logits) != len(target):
        raise UserError(f"logits of shape {logits.shape} do not fit {len(target)} targets")
    if len(target) and not (target.min() >= 0 and target.max() < logits.shape[1]):
        raise UserError(f"targets must lie in 0 … {logits.shape[1] - 1}; got {target.min()} … {target.max()}")
    refuse_nan(logits)
    of_target = np.take_along_axis(logits, target[:, None], axis=1)
    earlier = np.arange(logits.shape[1])[None] < target[:, None]
    ranks: Array = 1 + ((logits > of_target) | ((logits == of_target) & earlier)).sum(axis=1)
    return ranks


def in_top_k(logits: Array, target: Array, k: int = 1) -> Bools:
    """Tell for each row whether the target is among the k largest logits; the metric is the share of these rows.

    Parameters
    ----------
    logits : float array n × classes
        Or probabilities: only the order counts.
    target : int array n
        Position of the right class.
    k : int
        1: the right class has the largest logit. ImageNet is usually scored with 1 and 5.

    References
    ----------
    Russakovsky et al. 2015, https://arxiv.org/abs/1409.0575

    Examples
    --------
    >>> accuracy(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    0.5
    """
    return np.asarray(rank(np.asarray(logits), np.asarray(target)) <= k)


def terms(hits: Bools | Floats, answered: Bools | None = None) -> Terms:
    """Return what each image adds: 1 to the numerator where it is a hit, 1 to the denominator.

    Parameters
    ----------
    hits : array n
        Whether each image is a hit; for pooled people, the share of hits.
    answered : bool array n, optional
        Images that were answered; the others add nothing. Default: all.
    """
    shown = np.ones(len(hits), bool) if answered is None else answered
    return Terms(hits * shown, shown)


METRIC = Metric(
    name="accuracy",
    title="Top-k accuracy",
    formula="(1/n) Σ [rank of the label ≤ k], rank = 1 + #{larger logits} + #{equal logits of a lower class index}",
    denominator="all answered images with a label",
    reference="Russakovsky et al. 2015, ImageNet Large Scale Visual Recognition Challenge, arXiv:1409.0575",
    trials=in_top_k,
    terms=terms,
    caveats=(
        "Equal logits are ordered by class index, which is the rule of arg max.",
        "In human_alignment: the share of trials in which the decision among the 16 categories is the right one.",
        "The first thing to check: an accuracy below the published one means that the preprocessing is wrong.",
    ),
    chance="k / number of classes",
    higher_is="recognises more images",
    needs=("logits",),
)
accuracy = METRIC
