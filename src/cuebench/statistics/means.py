"""Means over images with bootstrap intervals: images, or whole clusters of images, are drawn with replacement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.statistics.estimates import from_draws
from cuebench.statistics.intervals import weighted_sums
from cuebench.types import Estimate, IntervalKind

_CHUNK = 4_000_000  # float64 numbers made at once (32 MB)


class Draws(NamedTuple):
    """Resampled means, resamples × columns; ``reason`` says why there are none."""

    means: Floats
    reason: str = ""


def mean_or_nan(values: Array) -> float:
    """Return the mean; NaN where there is nothing to average."""
    return float(np.mean(values)) if len(values) else float("nan")


def resampled_means(columns: Array, clusters: Array, stream: str, *, seed: int = 0, resamples: int = 10_000) -> Draws:
    """Draw clusters of images with replacement and return the mean of every column over the images drawn.

    Parameters
    ----------
    columns : float array n × k
        The values to average, one row for each image.
    clusters : array n
        The unit that is drawn: the image itself, its class, or the person who answered.
    stream : str
        Name of the random stream. The same stream and seed give the same draws, another stream gives independent ones.
    seed, resamples : int
        Of the bootstrap.
    """
    names, code = np.unique(clusters, return_inverse=True)
    if len(names) < 2:
        return Draws(np.empty((0, columns.shape[1])), f"{len(names)} cluster: nothing to resample")
    ones = np.ones(len(columns))
    totals: Floats = np.column_stack([np.bincount(code.ravel(), c, len(names)) for c in (*columns.T, ones)])
    sums = weighted_sums(stream, totals, seed, resamples, max(1, _CHUNK // len(names)))
    return Draws(sums[:, :-1] / sums[:, -1:])


def mean_estimates(
    columns: Mapping[str, Array],
    clusters: Mapping[IntervalKind, Array],
    stream: str,
    *,
    seed: int = 0,
    resamples: int = 10_000,
) -> dict[str, Estimate]:
    """Return the mean of every column with one interval for each kind of cluster; draws are kept for derived numbers.

    Parameters
    ----------
    columns : mapping of name to array
        The values to average; all of the same images.
    clusters : mapping of interval kind to array
        The cluster of each image, for each kind of interval.
    stream : str
        Name of the random stream; each kind has a stream of its own, ``<stream>/<kind>``.
    seed, resamples : int
        Of the bootstrap.

    Examples
    --------
    >>> estimates = mean_estimates({"top1": np.array([0.0, 1.0])}, {"images": np.arange(2)}, "x", resamples=100)
    >>> estimates["top1"].value, estimates["top1"].n, estimates["top1"].intervals[0].kind
    (0.5, 2, 'images')
    """
    if not columns:
        return {}
    table = np.column_stack([np.asarray(values, np.float64) for values in columns.values()])
    by_kind = {
        kind: resampled_means(table, cluster, f"{stream}/{kind}", seed=seed, resamples=resamples)
        for kind, cluster in clusters.items()
    }
    reasons = {kind: draws.reason for kind, draws in by_kind.items()}
    return {
        name: from_draws(
            mean_or_nan(values), len(values), {kind: draws.means[:, k] for kind, draws in by_kind.items()}, reasons
        )
        for k, (name, values) in enumerate(columns.items())
    }
