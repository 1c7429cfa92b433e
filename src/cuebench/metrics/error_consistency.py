"""Error consistency: do two observers get the same trials right and wrong, beyond what their accuracies explain?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuebench.arrays import Bools, Floats
from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.statistics.intervals import Clusters, percentile, resampled_sums, too_few, undefined
from cuebench.types import Estimate, Interval


@dataclass(frozen=True)
class Agreement:
    """How often both, the first, the second were right in n trials. Counts of shards add up."""

    n: float
    first: float
    second: float
    both: float

    def __add__(self, other: Agreement) -> Agreement:
        mine, theirs = (self.n, self.first, self.second, self.both), (other.n, other.first, other.second, other.both)
        return Agreement(*(a + b for a, b in zip(mine, theirs)))


def validate(first: Sequence[bool] | Bools, second: Sequence[bool] | Bools) -> tuple[Bools, Bools]:
    """Return both as arrays of booleans of one length, or say what was received."""
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise UserError(f"error consistency of {a.shape} and {b.shape} trials: both observers need the same trials")
    return a.astype(bool), b.astype(bool)


def count(first: Bools, second: Bools) -> Agreement:
    """Count the trials that each, and both, answered correctly."""
    return Agreement(len(first), float(first.sum()), float(second.sum()), float((first & second).sum()))


def compute(counts: Agreement) -> float:
    """Return κ of the counts; NaN where it is undefined (``reason`` says why)."""
    return float(_kappa(*(np.array([v]) for v in (counts.n, counts.first, counts.second, counts.both)))[0])


def reason(counts: Agreement) -> str:
    """Say why κ is undefined; empty where it is defined."""
    if not counts.n:
        return "no trial that both saw"
    if counts.first == counts.second and counts.first in (0, counts.n):
        return f"expected agreement is 1: both are {'right' if counts.first else 'wrong'} in all trials"
    return ""


def error_consistency(first: Sequence[bool] | Bools, second: Sequence[bool] | Bools) -> float:
    """Return Cohen's κ of two observers' correctness.

    κ = (c_obs − c_exp)/(1 − c_exp), with c_obs the share of trials in which both are right or both wrong, and
    c_exp = p1·p2 + (1 − p1)(1 − p2) what independent observers of these accuracies would have.

    Parameters
    ----------
    first, second : arrays of bool, one value for each trial that both saw
        Was the answer correct?

    Returns
    -------
    float
        Between −1 and 1; NaN where c_exp = 1.

    References
    ----------
    Geirhos, Meding & Wichmann 2020, https://arxiv.org/abs/2006.16736

    Examples
    --------
    >>> error_consistency([True, True, False, False], [True, False, True, False])
    0.0
    """
    return compute(count(*validate(first, second)))


def mean_over_pairs(
    correct: Bools, seen: Bools, pairs: Sequence[tuple[int, int]], *, seed: int = 0, resamples: int = 10_000
) -> Estimate:
    """Return the mean κ over pairs of observers, each on the trials that both saw, with an interval over images.

    Pairs whose κ is undefined leave the mean, and a note counts them. The interval draws images anew, the same ones for
    all observers; n is the number of images that at least one pair saw.

    Parameters
    ----------
    correct, seen : bool arrays observers × stimuli
        Row i is observer i.
    pairs : sequence of (i, j)
        Which observers are compared.
    seed, resamples : int
        Of the bootstrap.
    """
    columns = _pair_columns(correct, seen, pairs)
    kappa = _kappas(columns.sum(axis=0, keepdims=True))[0]
    lost = int(np.isnan(kappa).sum())
    value = float(np.nanmean(kappa)) if lost < len(kappa) else float("nan")
    n = int(columns[:, ::4].any(axis=1).sum())
    why = "expected agreement is 1" if n else "no image was seen by both"
    note = f"κ is undefined for {lost} of {len(kappa)} pairs: {why}" if lost else ""
    interval = _mean_interval(columns, correct.shape[1], len(pairs), seed, resamples)
    return Estimate(value, n, (interval,)).noting(note)


def _mean_interval(columns: Floats, stimuli: int, pairs: int, seed: int, resamples: int) -> Interval:
    nothing = np.zeros(stimuli)
    clusters = Clusters(np.arange(stimuli), nothing, nothing)
    why = too_few(clusters, "images") or ("" if pairs else "no pair of observers")
    if why:
        return undefined("images", why)
    kappa = _kappas(resampled_sums(columns, clusters, "images", seed=seed, resamples=resamples))
    defined = ~np.isnan(kappa)
    means = np.full(len(kappa), np.nan)
    np.divide(np.where(defined, kappa, 0).sum(axis=1), defined.sum(axis=1), out=means, where=defined.any(axis=1))
    return percentile(means, "images")


def _pair_columns(correct: Bools, seen: Bools, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Return trials × 4·pairs: seen by both; then correct for the first, the second and both among these."""
    columns = []
    for i, j in pairs:
        shared = seen[i] & seen[j]
        columns += [shared, shared & correct[i], shared & correct[j], shared & correct[i] & correct[j]]
    return np.array(columns, np.float64).reshape(4 * len(pairs), -1).T


def _kappas(sums: Floats) -> Floats:
    quads = sums.reshape(len(sums), -1, 4)
    return _kappa(quads[..., 0], quads[..., 1], quads[..., 2], quads[..., 3])


def _kappa(n: Floats, first: Floats, second: Floats, both: Floats) -> Floats:
    """Return κ from whole counts, so that c_exp = 1 is recognised exactly and not up to rounding."""
    observed = n * (n - first - second + 2 * both)
    expected = first * second + (n - first) * (n - second)
    out = np.full(np.shape(n), np.nan)
    np.divide(observed - expected, n * n - expected, out=out, where=(n * n != expected) & (n > 0))
    return out


METRIC = Metric(
    name="error_consistency",
    title="Error consistency with people",
    formula="κ = (c_obs − c_exp) / (1 − c_exp), c_exp = p1·p2 + (1 − p1)(1 − p2); mean of κ over the people",
    denominator="conflict trials that both observers saw; correct = answered with the shape class",
    reference="Geirhos, Meding & Wichmann 2020, Beyond accuracy, NeurIPS; arXiv:2006.16736. κ: Cohen 1960",
    compute=error_consistency,
    caveats=(
        "The sign is kept: κ < 0 means that they err on different trials more than chance would have it.",
        "Undefined (NaN with a reason) where c_exp = 1: both are right in all trials, or both are wrong in all; "
        "chance then explains everything.",
        "Its largest and smallest possible values depend on the two accuracies.",
        "A person is compared with the other people; pooled people are the mean over all pairs. "
        "Without people in the run there is no row.",
    ),
    bounds=(-1.0, 1.0),
    chance="0",
    higher_is="errs on the same images as people",
    needs=("decisions",),
)
