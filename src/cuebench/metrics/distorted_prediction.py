"""Distorted prediction: images that are right only because all other classes were taken out of the choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.labels.ranks import best_ranks
from cuebench.metrics.base import Metric
from cuebench.metrics.sensitivity import Array, mean


def distorted(logits: Array, target: Array, members: Sequence[Array]) -> Array:
    """Return for each row whether it is right in the restricted label space and wrong in the full one.

    Parameters
    ----------
    logits : float array n × classes
        Answers.
    target : int array n
        Position in ``members`` of each row's class.
    members : sequence of int arrays
        Positions of each class' members among the logits; all of them together are the restricted space.
    """
    best = np.column_stack([logits[:, m].max(axis=1) for m in members]) if len(logits) else np.empty((0, len(members)))
    restricted = best.argmax(axis=1) == target if len(logits) else np.zeros(0, bool)
    found: Array = restricted & (best_ranks(logits, target, members) > 1)
    return found


def distorted_prediction(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return the share of images that only the restriction to the set's classes makes right.

    Examples
    --------
    >>> distorted_prediction(np.array([[0.2, 0.1, 0.9]]), np.array([0]), [np.array([0]), np.array([1])])
    1.0
    """
    return mean(distorted(logits, target, members))


METRIC = Metric(
    name="distorted_prediction",
    title="Distorted predictions",
    formula="(1/N) Σ [best of the set's classes is the right one, but the top-1 of all classes is not]",
    denominator="all answered images",
    compute=distorted_prediction,
    reference="Kim et al. 2026 (REFINED-BIAS), problem 3 and Fig. I; arXiv:2603.10834",
    caveats=(
        "The restricted choice takes the largest logit of each class' members; the cue-conflict protocol takes the "
        "mean probability of the members, so that its own partial space differs a little.",
        "Not an error of the model: what a post-hoc filter adds to its accuracy.",
    ),
    chance="about 1 / number of classes in the set",
    higher_is="a restricted label space flatters the model more",
    needs=("logits",),
)
