"""Error consistency: do two observers get the same trials right and wrong, beyond what their accuracies explain?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cuebench.arrays import Bools, Floats
from cuebench.errors import UserError
from cuebench.labels.checks import refuse_nan
from cuebench.metrics.base import Metric
from cuebench.statistics.intervals import undefined
from cuebench.statistics.sums import estimates_of_sums
from cuebench.types import Estimate


def kappa(n: Floats, first: Floats, second: Floats, both: Floats) -> Floats:
    """Return Cohen's κ of two observers' correctness from counts, element by element.

    Whole counts are compared, so that c_exp = 1 is recognised exactly and not up to rounding; κ is then NaN.

    Parameters
    ----------
    n, first, second, both : arrays
        Trials that both observers saw; those in which the first, the second and both of them are right.
    """
    observed = n * (n - first - second + 2 * both)
    expected = first * second + (n - first) * (n - second)
    defined = (n * n != expected) & (n > 0)
    return np.divide(observed - expected, n * n - expected, out=np.full(np.shape(n), np.nan), where=defined)


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
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise UserError(f"error consistency of {a.shape} and {b.shape} trials: both observers need the same trials")
    for values in (a, b):
        refuse_nan(values, "correctness")  # as a bool, NaN would be correct
    a, b = a.astype(bool), b.astype(bool)
    return float(kappa(*(np.array([number], np.float64) for number in (len(a), a.sum(), b.sum(), (a & b).sum())))[0])


def mean_over_pairs(correct: Bools, seen: Bools, pairs: Sequence[tuple[int, int]]) -> Estimate:
    """Return the mean error consistency of pairs of observers, each on the trials that both saw.

    Pairs whose κ is undefined are outside the mean, and a note counts them. The interval is over images, the
    same ones for all observers; n is the number of images that at least one pair saw.

    Parameters
    ----------
    correct, seen : bool arrays observers × stimuli
        Row i is observer i.
    pairs : sequence of (i, j)
        Which observers are compared.
    """
    columns = _pair_columns(correct, seen, pairs)
    kappas = _pair_kappas(columns.sum(axis=0, keepdims=True))
    value, n = float(_mean_of_defined(kappas)[0]), int(columns[:, ::4].any(axis=1).sum())
    undefined_pairs = int(np.isnan(kappas).sum())
    why = "expected agreement is 1" if n else "no image was seen by both"
    note = f"κ is undefined for {undefined_pairs} of {len(pairs)} pairs: {why}" if undefined_pairs else ""
    images = correct.shape[1]
    reason = "" if pairs else "no pair of observers"
    if reason or images < 2:
        reason = f"{images} image{'s' * (images != 1)}: nothing to resample" if images < 2 else reason
        return Estimate(value, n, (undefined("images", reason),)).noting(note)
    (estimate,) = estimates_of_sums(
        columns, lambda sums: _mean_of_defined(_pair_kappas(sums))[:, None], [n], bounds=(-1.0, 1.0)
    )
    return replace(estimate, left_out={}).noting(note)


def _pair_columns(correct: Bools, seen: Bools, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Return trials × 4·pairs: seen by both; then correct for the first, the second and both among these."""
    columns = []
    for i, j in pairs:
        shared = seen[i] & seen[j]
        columns += [shared, shared & correct[i], shared & correct[j], shared & correct[i] & correct[j]]
    return np.array(columns, np.float64).reshape(4 * len(pairs), correct.shape[1]).T


def _pair_kappas(sums: Floats) -> Floats:
    """Return samples × pairs of κ from samples × 4·pairs of sums."""
    counts = sums.reshape(len(sums), sums.shape[1] // 4, 4)
    return kappa(counts[..., 0], counts[..., 1], counts[..., 2], counts[..., 3])


def _mean_of_defined(kappas: Floats) -> Floats:
    """Return the mean of each row without its NaN; NaN where nothing is left."""
    defined = ~np.isnan(kappas)
    number = defined.sum(axis=1)
    total = np.where(defined, kappas, 0).sum(axis=1)
    return np.divide(total, number, out=np.full(len(kappas), np.nan), where=number > 0)


METRIC = Metric(
    name="error_consistency",
    title="Error consistency with people",
    formula="κ = (c_obs − c_exp) / (1 − c_exp), c_exp = p1·p2 + (1 − p1)(1 − p2); mean of κ over the people",
    denominator="trials that both observers saw; correct = answered with the shape class. In cue_conflict: the images "
    "in conflict; in …/with_aligned also those with shape and texture of one class",
    reference="Geirhos, Meding & Wichmann 2020, Beyond accuracy, NeurIPS; arXiv:2006.16736. κ: Cohen 1960",
    compute=error_consistency,
    caveats=(
        "The sign is kept: κ < 0 means that they err on different trials more than chance would have it.",
        "Undefined (NaN with a reason) where c_exp = 1: both are right in all trials, or both are wrong in all; "
        "chance then explains everything. In human_alignment κ is 1 there, as Geirhos et al. 2021 compute it.",
        "Its largest and smallest possible values depend on the two accuracies: error_consistency_bound.",
        "A person is compared with the other people; pooled people are the mean over all pairs. "
        "Without people in the run there is no row.",
    ),
    bounds=(-1.0, 1.0),
    chance="0",
    higher_is="errs on the same images as people",
    needs=("decisions",),
)
