"""From logits over many classes to one decision among the few classes of the stimuli.

Decisions are positions in the list of target classes; −1 is an answer outside all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.arrays import Array, Positions
from cuebench.errors import UserError
from cuebench.labels import LabelMap, LabelSpace, ResolvedMap
from cuebench.labels.checks import refuse_nan

Codes = Positions
NONE = -1
ROUNDING = 1e-12
"""Scores that differ by less than this share of the highest are equal."""
UNDECIDED = "undecided"
"""The decision of an observer that answers in words where no class can be read; its text is stored beside it."""


def first_highest(scores: Array) -> Codes:
    """Return the position of the highest score of each row; among equals the first.

    Scores are equal where they differ by less than `ROUNDING` of the highest: sums in another order, or on another
    CPU, differ in the last digits, and these must not choose.

    Parameters
    ----------
    scores : float array … × n
        Finite, or −inf.
    """
    highest = scores.max(axis=-1, keepdims=True)
    return np.asarray((scores >= highest - ROUNDING * np.abs(highest)).argmax(axis=-1), np.intp)


def partial_space(logits: Array, targets: ResolvedMap) -> Codes:
    """Decide among the target classes only: the 16-class decision of Geirhos et al. 2019.

    p = softmax over *all* classes of the observer; score of a target = mean of p over its members; the decision is the
    target with the highest score. Ties: the first in the order of the label map (`first_highest`). A target without
    members is never chosen.

    The scores are computed relative to the largest logit of a member, which changes no decision: where another class
    has nearly all of p, those of the targets would all be rounded to 0, and the first target would win.

    Parameters
    ----------
    logits : float array n × classes
        In the observer's own label space.
    targets : ResolvedMap
        Members of each target class as positions in that space.

    Returns
    -------
    int array of length n
        Position of the target; −1 where the logits of all members are −inf.

    References
    ----------
    Geirhos et al. 2019, https://arxiv.org/abs/1811.12231
    """
    _validate(logits)
    highest = targets.aggregate(logits, "max").max(axis=1, keepdims=True)
    none = np.isneginf(highest)
    with np.errstate(invalid="ignore"):  # ∞ − ∞ of an infinite logit, which is the largest
        below = np.where(logits == highest, 0, np.minimum(logits.astype(np.float64) - np.where(none, 0, highest), 0))
    scores = targets.aggregate(np.exp(below), "mean")
    return np.where(none[:, 0], NONE, first_highest(scores))


def full_space(logits: Array, targets: ResolvedMap) -> Codes:
    """Decide among all classes of the observer: the target that the top-1 class is a member of, or −1.

    Ties: the class with the lowest position. This is the *full space* of REFINED-BIAS.

    Parameters
    ----------
    logits : float array n × classes
        In the observer's own label space.
    targets : ResolvedMap
        Members of each target class as positions in that space; they must not overlap.
    """
    _validate(logits)
    return targets.target_of(logits.shape[1])[logits.argmax(axis=1)]


def named(decisions: Sequence[str] | Array, names: Sequence[str]) -> Codes:
    """Return the positions of decisions that are class names; −1 for ``na`` and all other words."""
    return _positions(decisions, LabelSpace("targets", tuple(names)))


def named_full(decisions: Sequence[str] | Array, labels: LabelSpace, targets: ResolvedMap) -> Codes:
    """Return the targets of top-1 decisions that are names or ids of the observer's whole label space."""
    top1 = _positions(decisions, labels)
    owner = targets.target_of(len(labels))
    return np.where(top1 == NONE, NONE, owner[top1])


def decided(decisions: Sequence[str] | Array, targets: LabelMap | None, labels: LabelSpace | None) -> Codes:
    """Return the positions of decisions among the target classes, or among the classes of the observer without a map.

    Parameters
    ----------
    decisions : sequence of str
        Names or ids in the observer's label space; names of target classes where it has none.
    targets : LabelMap or None
        The target classes.
    labels : LabelSpace or None
        Of the observer.
    """
    if targets is None:
        return _positions(decisions, labels or LabelSpace("none", ()))
    return named(decisions, targets.names) if labels is None else named_full(decisions, labels, targets.resolve(labels))


def _positions(decisions: Sequence[str] | Array, space: LabelSpace) -> Codes:
    words, inverse = np.unique(np.asarray(decisions, dtype=np.str_), return_inverse=True)
    positions = [space.find(str(w)) for w in words]
    return np.array([NONE if p is None else p for p in positions], dtype=np.intp)[inverse.ravel()]


def _validate(logits: Array) -> None:
    if logits.ndim != 2:
        raise UserError(f"logits must be stimuli × classes; got shape {logits.shape}")
    refuse_nan(logits)
