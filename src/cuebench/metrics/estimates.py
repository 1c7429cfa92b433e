"""Values with their intervals, for several ratios of the same trials at once. A helper, not a metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.metrics.intervals import Bootstrap, Clusters, percentile, ratio_intervals, undefined, weights
from cuebench.metrics.ratios import Ratio, Terms, total
from cuebench.types import IntervalKind


class Estimate(NamedTuple):
    """A value, the count that it was divided by, and one interval."""

    value: float
    n: int
    bootstrap: Bootstrap


def ratio_estimates(
    terms: Sequence[Terms], clusters: Clusters, kinds: Sequence[IntervalKind], *, seed: int = 0, resamples: int = 10_000
) -> list[list[Estimate]]:
    """Return for each ratio one estimate of each kind.

    Parameters
    ----------
    terms : sequence of Terms
        What each trial adds to numerator and denominator, one for each metric.
    clusters : Clusters
        Of the same trials.
    kinds : sequence of str
        Kinds of interval.
    seed, resamples : int
        Of the bootstrap.

    Returns
    -------
    list (metrics) of lists (kinds) of Estimate
    """
    boots = [ratio_intervals(terms, clusters, kind, seed=seed, resamples=resamples) for kind in kinds]
    sums = [total(t) for t in terms]
    return [[_estimate(s, boot[m]) for boot in boots] for m, s in enumerate(sums)]


def mean_of_subjects(
    terms: Terms, subjects: np.ndarray[Any, Any], *, seed: int = 0, resamples: int = 10_000
) -> tuple[Estimate, int]:
    """Return the mean over subjects of each one's own ratio, with n = number of subjects and an interval over subjects.

    Every subject weighs the same, whereas pooled trials weigh subjects by how often they decided. The second value is
    the number of subjects without a ratio (they have no trial in the denominator), who are left out.
    """
    names, code = np.unique(subjects, return_inverse=True)
    top, bottom = (np.bincount(code.ravel(), t, len(names)) for t in terms)
    own = top[bottom > 0] / bottom[bottom > 0]
    lost = len(names) - len(own)
    if len(own) < 2:
        value = float(own[0]) if len(own) else float("nan")
        return Estimate(value, len(own), undefined("subjects", f"{len(own)} subject: nothing to resample")), lost
    draws = weights("subjects", len(own), seed, resamples).astype(np.float64) @ own / len(own)
    return Estimate(float(own.mean()), len(own), percentile(draws, "subjects")), lost


def _estimate(ratio: Ratio, bootstrap: Bootstrap) -> Estimate:
    if not ratio.denominator:
        kind, level = bootstrap.interval.kind, bootstrap.interval.level
        bootstrap = undefined(kind, "no trial in the denominator", level)
    return Estimate(ratio.value, int(ratio.denominator), bootstrap)
