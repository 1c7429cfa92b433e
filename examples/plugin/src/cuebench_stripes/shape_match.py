"""Shape match: how often a picture of the same shape is more similar than one of the same texture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import Terms


class Similarities(NamedTuple):
    """Similarity to the picture of the same shape and to that of the same texture, one of each for each trial."""

    shape: Floats
    texture: Floats


def similarities(to_shape: Sequence[float] | Floats, to_texture: Sequence[float] | Floats) -> Similarities:
    """Return the two similarities of each trial as arrays.

    Parameters
    ----------
    to_shape, to_texture : arrays of float, one value for each trial
        Similarity to the picture that shares the shape, and to the one that shares the texture.

    Raises
    ------
    UserError
        Where the lengths differ.

    Examples
    --------
    >>> METRIC([0.9, 0.2, 0.5], [0.1, 0.8, 0.5])
    0.5
    """
    shape, texture = np.asarray(to_shape, np.float64), np.asarray(to_texture, np.float64)
    if shape.ndim != 1 or shape.shape != texture.shape:
        raise UserError(f"similarities of shape {shape.shape} and {texture.shape}", "give one of each for each trial")
    return Similarities(shape, texture)


METRIC = Metric(
    name="shape_match",
    title="Shape match",
    formula="n_shape / (n_shape + n_texture), n_shape = trials in which the same shape is the more similar one",
    denominator="trials in which the two similarities differ",
    reference="this example; the triplet shape bias of Tartaglini et al. 2022 is of the same form",
    trials=similarities,
    terms=lambda trials: Terms(trials.shape > trials.texture, trials.shape != trials.texture),
    caveats=("Trials share pictures: read it with the interval over shape and texture sources.",),
    chance="0.5",
    higher_is="compares pictures more by shape",
    needs=("features",),
)
