"""Sensitivity to one cue: the mean reciprocal rank of the right class in the whole label space. A helper, not a metric.

Sens = (1/N) Σ 1/rank_i, with rank_i the best rank of any member of the right class (see ``ranks``). Shape and texture
cues are different images, drawn separately: each set is resampled on its own, and a preference (a function of both
means) is computed from the two independent draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.labels.ranks import best_ranks
from cuebench.statistics.estimates import Estimate
from cuebench.statistics.intervals import percentile, undefined, weights
from cuebench.types import IntervalKind, MetricInfo

REFERENCE = "Kim et al. 2026, On the Reliability of Cue Conflict and Beyond (REFINED-BIAS), eq. 1–3; arXiv:2603.10834"
TIES = "Equal logits are ordered by class index (the rule of arg max); the authors rank float32 softmax values."
MEMBERS = "A class of several ImageNet classes has the rank of its best member; siblings above it are not removed."
CLUSTERS = "Ten classes make up each cue: the interval over classes is the one for a statement about other classes."
_CHUNK = 4_000_000


def sensitivity_info(cue: str) -> MetricInfo:
    """Describe the sensitivity to shape or texture cues."""
    return MetricInfo(
        name=f"{cue}_sensitivity",
        title=f"{cue.capitalize()} sensitivity ({cue.capitalize()}-Sens)",
        formula=f"(1/N) Σ 1/rank_i, rank = best rank of any member of the {cue} class among all logits",
        denominator=f"all answered {cue} cues",
        reference=REFERENCE,
        caveats=(TIES, MEMBERS, CLUSTERS),
        bounds=(0.0, 1.0),
        chance="H_K/K for a random order of K classes: .0075 for K = 1,000",
        higher_is=f"recognises more {cue} cues",
        needs=("logits",),
    )


def top_k_info(cue: str, k: int) -> MetricInfo:
    """Describe the top-k accuracy on shape or texture cues."""
    return MetricInfo(
        name=f"{cue}_top{k}",
        title=f"{cue.capitalize()}-cue accuracy, top {k}",
        formula=f"(1/N) Σ [rank_i ≤ {k}], rank = best rank of any member of the {cue} class among all logits",
        denominator=f"all answered {cue} cues",
        reference=REFERENCE,
        caveats=(MEMBERS, CLUSTERS, "People answer among the given classes: their chance is 1/10, a model's 1/1,000."),
        bounds=(0.0, 1.0),
        chance=f"about {k} · members / classes",
        higher_is=f"recognises more {cue} cues",
        needs=("logits",),
    )


def preference_info(cue: str, other: str) -> MetricInfo:
    """Describe the preference for shape or texture."""
    return MetricInfo(
        name=f"{cue}_preference",
        title=f"{cue.capitalize()} preference",
        formula=f"{cue.capitalize()}-Sens / (Shape-Sens + Texture-Sens)",
        denominator="sum of both sensitivities; n counts the images of both cues",
        reference=REFERENCE,
        caveats=(
            "Read it with both sensitivities: two models that see next to nothing and two that see all share a .5.",
            "Shape and texture cues are different images of different classes, never in conflict.",
            CLUSTERS,
        ),
        bounds=(0.0, 1.0),
        chance="0.5 (equal ranks of both)",
        higher_is=f"ranks {cue} cues better than {other} cues",
        needs=("logits",),
    )


def reciprocal(ranks: Array) -> Floats:
    """Return 1/rank for each image; ranks start at 1."""
    found = np.asarray(ranks, np.float64)
    if found.size and found.min() < 1:
        raise UserError(f"ranks start at 1; got {found.min():g}")
    return 1.0 / found


def sensitivity(logits: Array, target: Array, members: Sequence[Array]) -> float:
    """Return the mean reciprocal rank of each row's class; NaN where there is no row.

    Parameters
    ----------
    logits : float array n × classes
        Answers.
    target : int array n
        Position in ``members`` of each row's class.
    members : sequence of int arrays
        Positions of each class' members among the logits.
    """
    return mean(reciprocal(best_ranks(logits, target, members)))


def top_k(logits: Array, target: Array, members: Sequence[Array], k: int) -> float:
    """Return the share of rows with a member of their class among the k largest logits; NaN where there is no row.

    Parameters
    ----------
    logits, target, members
        As in ``sensitivity``.
    k : int
        How many of the first count.
    """
    return mean(best_ranks(logits, target, members) <= k)


def mean(values: Array) -> float:
    """Return the mean; NaN where there is nothing to average."""
    return float(np.mean(values)) if len(values) else float("nan")


def preference(one: float, other: float) -> float:
    """Return one / (one + other); NaN where both are 0 or one is missing.

    >>> preference(0.5630, 0.5684) == 0.5630 / (0.5630 + 0.5684)
    True
    """
    return one / (one + other) if one + other > 0 else float("nan")


class Draws(NamedTuple):
    """Resampled means, resamples × columns; ``reason`` where there is nothing to resample."""

    means: Floats
    reason: str = ""


def resampled_means(columns: Array, clusters: Array, stream: str, *, seed: int = 0, resamples: int = 10_000) -> Draws:
    """Draw clusters of images with replacement and return the mean of every column over the images drawn.

    Parameters
    ----------
    columns : float array n × k
        What is averaged, one row for each image.
    clusters : array n
        What is drawn together: the image itself, or its class.
    stream : str
        Name of the random stream; the same stream and seed give the same draws, another stream independent ones.
    seed, resamples : int
        Of the bootstrap.
    """
    names, code = np.unique(clusters, return_inverse=True)
    if len(names) < 2:
        return Draws(np.empty((0, columns.shape[1])), f"{len(names)} cluster: nothing to resample")
    ones = np.ones(len(columns))
    totals = np.column_stack([np.bincount(code.ravel(), c, len(names)) for c in (*columns.T, ones)])
    drawn = weights(stream, len(names), seed, resamples)
    step = max(1, _CHUNK // len(names))
    parts = [drawn[i : i + step].astype(np.float64) @ totals for i in range(0, resamples, step)]
    sums = np.concatenate(parts)
    return Draws(sums[:, :-1] / sums[:, -1:])


def mean_estimates(
    columns: Mapping[str, Array], draws: Draws, kind: IntervalKind, total: int | None = None
) -> dict[str, Estimate]:
    """Return name → mean with its percentile interval, from draws made of the same columns in the same order."""
    found = {}
    for k, (name, values) in enumerate(columns.items()):
        boot = undefined(kind, draws.reason) if draws.reason else percentile(draws.means[:, k], kind)
        found[name] = Estimate(mean(values), len(values) if total is None else total, boot)
    return found


def preference_estimate(
    one: Array, other: Array, one_draws: Floats, other_draws: Floats, kind: IntervalKind, reason: str = ""
) -> Estimate:
    """Return the preference of one sensitivity over the other with its interval from independent draws of both."""
    value, n = preference(mean(one), mean(other)), len(one) + len(other)
    if reason:
        return Estimate(value, n, undefined(kind, reason))
    both = one_draws + other_draws
    drawn = np.divide(one_draws, both, out=np.full(len(both), np.nan), where=both > 0)
    return Estimate(value, n, percentile(drawn, kind))
