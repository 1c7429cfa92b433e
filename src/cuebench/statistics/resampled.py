"""Statistics of sums over images, with intervals from resampled images, and averages of such estimates.

All versions of an image are drawn together, and everybody who was shown the same number of images is resampled with the
same draws, so that quotients and means of the estimates have valid intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.statistics.estimates import derived, from_draws
from cuebench.statistics.intervals import weight_parts
from cuebench.types import Estimate

_CHUNK = 4_000_000  # float64 numbers made at once (32 MB)


def estimates_of_sums(
    values: Array, statistic: Callable[[Floats], Any], n: Sequence[int] | Array, *, seed: int, resamples: int
) -> list[Estimate]:
    """Return statistics of the sums over all images, with intervals over images; the draws are kept.

    Parameters
    ----------
    values : array images × …
        What each image adds; 0 where it was not shown.
    statistic : callable
        Turns sums, m × …, into m × k: k statistics of each of m samples.
    n : sequence of k int
        Number of pictures behind each statistic.
    seed, resamples : int
        Of the bootstrap. Fewer than two images are not resampled.

    Examples
    --------
    >>> values = np.array([[1, 1], [0, 1]])
    >>> ratio, = estimates_of_sums(values, lambda sums: sums[:, :1] / sums[:, 1:], [2], seed=0, resamples=99)
    >>> ratio.value, ratio.n, len(ratio.draws["images"])
    (0.5, 2, 99)
    """
    shape = values.shape[1:]
    flat = np.asarray(values, np.float64).reshape(len(values), int(np.prod(shape)))
    sample = np.asarray(statistic(flat.sum(axis=0).reshape(1, *shape)))[0]
    draws = np.empty((0, len(sample)))
    if len(values) >= 2:
        drawn = weight_parts("images", len(values), seed, resamples, max(1, _CHUNK // max(flat.shape)))
        sums = (part.astype(np.float64) @ flat for part in drawn)
        draws = np.concatenate([np.asarray(statistic(part.reshape(-1, *shape))) for part in sums])
    return [from_draws(value, int(n[k]), {"images": draws[:, k]}) for k, value in enumerate(sample.tolist())]


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of several estimates, each of which weighs the same, with intervals from their draws."""
    return derived(lambda *values: np.mean(values, axis=0), *estimates)


def quotient(numerator: Any, denominator: Any) -> Any:
    """Divide element by element; NaN where the denominator is 0. Two numbers give a float.

    >>> quotient(1, 4), quotient(1, 0)
    (0.25, nan)
    """
    top, bottom = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    ratio = np.divide(top, bottom, out=np.full(np.broadcast(top, bottom).shape, np.nan), where=bottom != 0)
    return ratio if ratio.ndim else float(ratio)
