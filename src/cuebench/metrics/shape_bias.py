"""Shape bias: of the trials answered by one of the two cues, the share answered by shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.metrics.ratios import Array, Outcomes, Ratio, Terms, outcomes, total
from cuebench.types import MetricInfo

METRIC = MetricInfo(
    name="shape_bias",
    title="Shape bias",
    formula="n_shape / (n_shape + n_texture)",
    denominator="conflict trials (shape class ≠ texture class) answered with the shape class or the texture class",
    reference="Geirhos et al. 2019, ImageNet-trained CNNs are biased towards texture, ICLR; arXiv:1811.12231",
    caveats=(
        "Read it with the decided fraction: about 40 % of a network's trials are answered by neither cue and drop out.",
        "It is not an accuracy: an observer that is wrong in most trials can have a shape bias of 1.",
        "Aligned trials (80 of the 1,280 published images) never count.",
        "The images share 160 shape sources and 48 texture sources: the interval over images is about three times too "
        "narrow for a statement about new textures.",
    ),
    bounds=(0.0, 1.0),
    chance="0.5 (a guess hits either class equally often)",
    higher_is="answers more by shape",
    needs=("decisions",),
)


def terms(trials: Outcomes) -> Terms:
    """Return what each trial adds: numerator [answer = shape], denominator [answer = shape or texture]."""
    return Terms(trials.shape, trials.decided)


def count(trials: Outcomes) -> Ratio:
    """Return n_shape over n_shape + n_texture as counts that add up over shards."""
    return total(terms(trials))


def compute(counts: Ratio) -> float:
    """Return the shape bias of the counts; NaN where no trial was decided."""
    return counts.value


def shape_bias(decisions: Sequence[Any] | Array, shape: Sequence[Any] | Array, texture: Sequence[Any] | Array) -> float:
    """Return n_shape / (n_shape + n_texture).

    Parameters
    ----------
    decisions, shape, texture : arrays of str or int, one value for each trial
        The answer and the two classes. An answer that is neither is undecided and leaves the denominator.

    Returns
    -------
    float
        Between 0 (texture) and 1 (shape); NaN where no trial was decided.

    References
    ----------
    Geirhos et al. 2019, https://arxiv.org/abs/1811.12231

    Examples
    --------
    >>> shape_bias(["cat", "dog", "cat", "car"], ["cat"] * 4, ["dog"] * 4)
    0.6666666666666666
    """
    return compute(count(outcomes(decisions, shape, texture)))
