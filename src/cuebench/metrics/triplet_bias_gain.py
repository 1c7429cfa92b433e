"""Triplet bias gain: what training added, the shape bias of a network minus that of its random initialisations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.metrics.triplet_shape_bias import Tally, compute
from cuebench.statistics.estimates import Estimate
from cuebench.statistics.intervals import (
    Bootstrap,
    Clusters,
    Floats,
    percentile,
    resampled_sums,
    too_few,
    undefined,
    weights,
)
from cuebench.types import IntervalKind


def gain(trained: Tally, baselines: Sequence[Tally]) -> float:
    """Return the difference; NaN where there is no baseline or no trial."""
    if not baselines:
        return float("nan")
    return compute(trained).value - float(np.mean([compute(b).value for b in baselines]))


def gain_estimates(
    trained: Tally,
    baselines: Sequence[Tally],
    clusters: Clusters,
    kinds: Sequence[IntervalKind],
    *,
    seed: int,
    resamples: int,
) -> list[Estimate]:
    """Return the gain with one interval of each kind; trained and untrained are resampled alike, with the seeds."""
    value, n = gain(trained, baselines), int(compute(trained).denominator)
    return [Estimate(value, n, _interval([trained, *baselines], clusters, kind, seed, resamples)) for kind in kinds]


def mean_of_seeds(baselines: Sequence[Tally], *, seed: int, resamples: int) -> Estimate:
    """Return the mean bias of the random initialisations, n = number of seeds, with an interval over seeds."""
    values = np.array([compute(b).value for b in baselines])
    if len(values) < 2:
        why = undefined("seeds", f"{len(values)} seed: nothing to resample")
        return Estimate(float(values.mean()) if len(values) else float("nan"), len(values), why)
    draws = weights("seeds", len(values), seed, resamples).astype(np.float64) @ values / len(values)
    return Estimate(float(values.mean()), len(values), percentile(draws, "seeds"))


def _interval(tallies: Sequence[Tally], clusters: Clusters, kind: IntervalKind, seed: int, resamples: int) -> Bootstrap:
    reason = too_few(clusters, kind)
    if reason:
        return undefined(kind, reason)
    columns = np.column_stack([c for t in tallies for c in (t.shape, t.trials)])
    sums = resampled_sums(columns, clusters, kind, seed=seed, resamples=resamples)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Floats = sums[:, 0::2] / sums[:, 1::2]
    seeds = weights("seeds", len(tallies) - 1, seed, resamples).astype(np.float64)
    return percentile(ratios[:, 0] - (seeds * ratios[:, 1:]).sum(axis=1) / (len(tallies) - 1), kind)


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
        "The interval resamples the seeds and the images (or their sources) together, on the same trials for both.",
    ),
    bounds=(-1.0, 1.0),
    chance="0",
    higher_is="training made shape count more",
    needs=("features",),
)
