"""Triplet bias gain: what training added, the shape bias of a network minus that of its random initialisations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics.base import Metric


def triplet_bias_gain(trained: float | Array, baselines: Sequence[float] | Array) -> float | Array:
    """Return the triplet shape bias of a network minus the mean of its random initialisations.

    Parameters
    ----------
    trained : float or array
        Triplet shape bias of the network, or of several.
    baselines : array … × initialisations
        Triplet shape bias of each random initialisation, on the same triplets.

    Returns
    -------
    float or array
        One value for each value of ``trained``; NaN where there is no baseline.

    References
    ----------
    Tartaglini, Vong & Lake 2022, https://escholarship.org/uc/item/6hj739kb

    Examples
    --------
    >>> round(triplet_bias_gain(0.75, [0.5, 0.6]), 2)
    0.2
    """
    values = np.asarray(baselines, np.float64)
    if not values.shape[-1]:
        return trained * np.nan
    gain = trained - values.mean(axis=-1)
    return gain if np.ndim(gain) else float(gain)


METRIC = Metric(
    name="triplet_bias_gain",
    title="Triplet bias gain over random initialisation",
    formula="triplet_shape_bias(trained) − mean over seeds of triplet_shape_bias(random initialisation)",
    denominator="each bias by its own triplets; the seeds weigh the same",
    compute=triplet_bias_gain,
    reference="Tartaglini, Vong & Lake 2022, A Developmentally-Inspired Examination of Shape versus Texture Bias in "
    "Machines, CogSci 44: ten random initialisations of the same architecture",
    caveats=(
        "A random network is a baseline, not chance: with aligned shapes it sees which pixels overlap.",
        "The interval holds for other seeds and other images (or sources) together, on the same trials for both.",
    ),
    bounds=(-1.0, 1.0),
    chance="0",
    higher_is="training made shape count more",
    needs=("features",),
)
