"""Shape reliance: the share of shape in what a model loses when shape or texture is suppressed."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import quotient

Number = TypeVar("Number", float, np.ndarray)


def shape_reliance(without_shape: Number, without_texture: Number) -> Number:
    """Return the share of shape in the loss of accuracy without shape and without texture.

    Parameters
    ----------
    without_shape, without_texture : float or array
        Mean relative accuracy under the suppressions of shape and of texture.

    Returns
    -------
    float or array
        NaN where nothing is lost under either.

    Examples
    --------
    >>> shape_reliance(0.25, 0.75)
    0.75
    """
    shape, texture = np.maximum(0.0, 1 - without_shape), np.maximum(0.0, 1 - without_texture)
    reliance: Number = quotient(shape, shape + texture)
    return reliance


METRIC = Metric(
    name="shape_reliance",
    title="Shape reliance under suppression",
    formula="(1 − R_shape) / ((1 − R_shape) + (1 − R_texture)), R = mean relative accuracy without that cue",
    denominator="the loss under shape suppression plus the loss under texture suppression",
    compute=shape_reliance,
    reference="cuebench, after Burgert et al. 2025 (arXiv:2509.20234), who report the relative accuracies themselves",
    caveats=(
        "Needed to put feature suppression beside preferences in one table; the REFINED-BIAS paper, which does so in "
        "its Table A, does not say how it made one number of the relative accuracies.",
        "A relative accuracy above 1 counts as no loss. A model that recognises little gains and loses by chance: its "
        "number is pulled from 0 and 1 towards .5 (by up to .075, simulated); the interval is made without this limit.",
        "It compares the chosen levels: strong shape suppressions against mild texture ones raise it.",
    ),
    bounds=(0.0, 1.0),
    chance="0.5 (equal losses)",
    higher_is="loses more without shape than without texture",
    needs=("logits",),
)
