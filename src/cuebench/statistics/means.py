"""Means over images, with intervals over images or over whole clusters of images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.statistics.estimates import jackknifed
from cuebench.types import Estimate, IntervalKind


def mean_or_nan(values: Array) -> float:
    """Return the mean; NaN where there is nothing to average."""
    return float(np.mean(values)) if len(values) else float("nan")


def mean_estimates(
    columns: Mapping[str, Array],
    clusters: Mapping[IntervalKind, Array],
    part: str,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> dict[str, Estimate]:
    """Return the mean of every column with one interval for each kind of cluster, by leaving each cluster out.

    Parameters
    ----------
    columns : mapping of name to array
        The values to average; all of the same images.
    clusters : mapping of interval kind to array
        The cluster of each image, for each kind of interval.
    part : str
        Name of these images. Numbers that are derived from means of one part share its clusters; other parts are
        independent.
    bounds : pair of float
        Smallest and largest possible value.

    Examples
    --------
    >>> estimates = mean_estimates({"top1": np.array([0.0, 1.0])}, {"images": np.arange(2)}, "x")
    >>> estimates["top1"].value, estimates["top1"].n, estimates["top1"].intervals[0].kind
    (0.5, 2, 'images')
    """
    if not columns:
        return {}
    table = np.column_stack([np.asarray(values, np.float64) for values in columns.values()])
    without: dict[IntervalKind, Floats] = {}
    reasons: dict[IntervalKind, str] = {}
    for kind, cluster in clusters.items():
        names, code = np.unique(cluster, return_inverse=True)
        if len(names) < 2:
            without[kind], reasons[kind] = table[:0], f"{len(names)} cluster: nothing to resample"
            continue
        sums = np.column_stack([np.bincount(code.ravel(), c, len(names)) for c in table.T])
        sizes = np.bincount(code.ravel(), minlength=len(names))
        without[kind] = (table.sum(axis=0) - sums) / (len(table) - sizes)[:, None]
    return {
        name: jackknifed(
            mean_or_nan(values),
            len(values),
            {kind: {part: means[:, k]} for kind, means in without.items()},
            reasons,
            bounds,
        )
        for k, (name, values) in enumerate(columns.items())
    }
