"""Statistics of sums over images, with intervals from leaving each image out, and averages of such estimates.

All versions of an image are left out together, and in the same order for everybody who was shown the same images, so
that quotients and means of the estimates have valid intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.statistics.estimates import derived, jackknifed
from cuebench.types import Estimate

_CHUNK = 4_000_000  # float64 numbers made at once (32 MB)


def estimates_of_sums(
    values: Array,
    statistic: Callable[[Floats], Any],
    n: Sequence[int] | Array,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> list[Estimate]:
    """Return statistics of the sums over all images, with intervals over images.

    Parameters
    ----------
    values : array images × …
        What each image adds; 0 where it was not shown.
    statistic : callable
        Turns sums, m × …, into m × k: k statistics of each of m samples.
    n : sequence of k int
        Number of pictures behind each statistic.
    bounds : pair of float
        Smallest and largest possible value of the statistics.

    Examples
    --------
    >>> values = np.array([[1, 1], [0, 1]])
    >>> ratio, = estimates_of_sums(values, lambda sums: sums[:, :1] / sums[:, 1:], [2])
    >>> ratio.value, ratio.n, ratio.left_out["images"]["images"].tolist()
    (0.5, 2, [0.0, 1.0])
    """
    shape = values.shape[1:]
    flat = np.asarray(values, np.float64).reshape(len(values), int(np.prod(shape)))
    total = flat.sum(axis=0)
    sample = np.asarray(statistic(total.reshape(1, *shape)))[0]
    without = np.empty((0, len(sample)))
    if len(values) >= 2:
        size = max(1, _CHUNK // max(1, flat.shape[1]))
        parts = (total - flat[start : start + size] for start in range(0, len(flat), size))
        without = np.concatenate([np.asarray(statistic(part.reshape(-1, *shape))) for part in parts])
    return [
        jackknifed(value, int(n[k]), {"images": {"images": without[:, k]}}, bounds=bounds)
        for k, value in enumerate(sample.tolist())
    ]


def mean_estimate(estimates: Sequence[Estimate], bounds: tuple[float, float] | None = None) -> Estimate:
    """Return the mean of several estimates, each of which weighs the same."""
    return derived(lambda *values: np.mean(values, axis=0), *estimates, bounds=bounds)
