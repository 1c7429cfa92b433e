"""How alike two observers are on the same trials: accuracy, agreement of right and wrong answers, and its bound.

`agreement` computes all of them from counts, element by element, which is how protocols call it for many pairs of
observers and many bootstrap draws at once; the metrics are the same function for one pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools, Floats
from cuebench.errors import UserError
from cuebench.labels.checks import refuse_nan
from cuebench.metrics.base import Metric
from cuebench.metrics.error_consistency import kappa

REFERENCE = (
    "Geirhos, Narayanappa, Mitzkus, Thieringer, Bethge, Wichmann & Brendel 2021, Partial success in closing the gap "
    "between human and machine vision, NeurIPS; arXiv:2106.07411"
)


class Agreement(NamedTuple):
    """Of pairs of observers: squared difference of accuracies, observed and error consistency, bound of the latter."""

    accuracy_difference: Floats
    observed_consistency: Floats
    error_consistency: Floats
    error_consistency_bound: Floats


def agreement(n: Floats, first: Floats, second: Floats, both: Floats) -> Agreement:
    """Compare pairs of observers by counts, element by element; NaN where they share no trial.

    Parameters
    ----------
    n, first, second, both : arrays
        Trials that both observers saw; those in which the first, the second and both of them are right.
    """
    n, first, second, both = np.broadcast_arrays(n, first, second, both)
    trials = np.where(n > 0, n, np.nan)
    apart = np.abs(first - second)
    # Right and wrong agree most where the trials that the weaker observer has right are right for both.
    most = np.minimum(first, second)
    return Agreement(
        (apart / trials) ** 2,
        (trials - first - second + 2 * both) / trials,
        _published(kappa(n, first, second, both), n),
        _published(kappa(n, first, second, most), n),
    )


def _published(values: Floats, n: Floats) -> Floats:
    """Return κ as the authors do: 1 where both observers are right, or wrong, in all trials."""
    return np.where(np.isnan(values) & (n > 0), 1.0, values)


def over_people(values: Array, weights: Array | None = None) -> Floats:
    """Return the mean over the last axis, the people that an observer is compared with; missing values are left out.

    Parameters
    ----------
    values : float array … × people
        NaN where an observer and a person share no trial.
    weights : float array … × people, optional
        How often each person counts.
    """
    defined = ~np.isnan(values)
    if weights is None and values.shape[-1] and defined.all():
        return np.asarray(values.mean(axis=-1))
    counted = defined * (1.0 if weights is None else weights)
    total, number = np.where(defined, values, 0.0) * counted, counted.sum(axis=-1)
    return np.divide(total.sum(axis=-1), number, out=np.full(number.shape, np.nan), where=number > 0)


def _counts(first: Sequence[bool] | Bools, second: Sequence[bool] | Bools) -> Agreement:
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise UserError(f"{a.shape} and {b.shape} trials cannot be compared: both observers need the same trials")
    for values in (a, b):
        refuse_nan(values, "correctness")  # as a bool, NaN would be correct
    a, b = a.astype(bool), b.astype(bool)
    return agreement(*(np.array([k], np.float64) for k in (len(a), a.sum(), b.sum(), (a & b).sum())))


def accuracy_difference(first: Sequence[bool] | Bools, second: Sequence[bool] | Bools) -> float:
    """Return the squared difference of two observers' accuracies.

    Parameters
    ----------
    first, second : arrays of bool, one value for each trial that both saw
        Was the answer correct?

    Examples
    --------
    >>> accuracy_difference([True, True, False, False], [True, False, False, False])
    0.0625
    """
    return float(_counts(first, second).accuracy_difference[0])


def observed_consistency(first: Sequence[bool] | Bools, second: Sequence[bool] | Bools) -> float:
    """Return the share of trials in which both observers are right or both are wrong.

    Parameters
    ----------
    first, second : arrays of bool, one value for each trial that both saw
        Was the answer correct?

    Examples
    --------
    >>> observed_consistency([True, True, False, False], [True, False, False, False])
    0.75
    """
    return float(_counts(first, second).observed_consistency[0])


def error_consistency_bound(p: float, q: float) -> float:
    """Return the largest error consistency that two observers of given accuracies can reach.

    They agree most often where the weaker one is right only in trials in which the stronger one is, so that
    c_obs = 1 − |p − q|.

    Parameters
    ----------
    p, q : float
        Accuracies on the same trials.

    Examples
    --------
    >>> error_consistency_bound(0.5, 0.5)
    1.0
    >>> round(error_consistency_bound(0.9, 0.5), 3)
    0.2
    """
    if not (0 <= p <= 1 and 0 <= q <= 1):
        raise UserError(f"accuracies lie between 0 and 1; got {p} and {q}")
    trials = np.ones(1)
    return float(agreement(trials, trials * p, trials * q, trials * min(p, q)).error_consistency_bound[0])


def mean_rank(
    accuracy_difference: Sequence[float] | Floats,
    observed_consistency: Sequence[float] | Floats,
    error_consistency: Sequence[float] | Floats,
) -> Floats:
    """Return the mean of the three ranks of each observer; 1 is the most like people.

    Parameters
    ----------
    accuracy_difference, observed_consistency, error_consistency : arrays, last axis: observers
        The smallest difference and the largest consistencies have rank 1; equal values share the mean of their ranks.

    Examples
    --------
    >>> mean_rank([0.1, 0.2, 0.3], [0.8, 0.7, 0.9], [0.2, 0.1, 0.2]).round(3).tolist()
    [1.5, 2.667, 1.833]
    """
    lower = np.asarray(accuracy_difference, np.float64)
    higher = (np.asarray(v, np.float64) for v in (observed_consistency, error_consistency))
    return np.asarray(np.mean([_ranks(v) for v in (lower, *(-v for v in higher))], axis=0))


def _ranks(values: Floats) -> Floats:
    """Rank along the last axis; ties share the mean of their ranks. Importing scipy.stats takes longer than this."""
    below = sum((values > values[..., k, None]).astype(np.float64) for k in range(values.shape[-1]))
    equal = sum((values == values[..., k, None]).astype(np.float64) for k in range(values.shape[-1]))
    return np.asarray(below + (equal + 1) / 2)


_AVERAGED = (
    "In human_alignment: of one observer, one person and one condition; then the mean over conditions, over people and "
    "over data sets, in this order."
)
_CORRECT = "trials that both observers saw; correct = answered with the category (in cue conflict: the shape)"

METRICS = (
    Metric(
        name="accuracy_difference",
        title="Squared difference of accuracy from people",
        formula="(p_observer − p_person)²",
        denominator=_CORRECT,
        reference=REFERENCE,
        compute=accuracy_difference,
        caveats=(
            _AVERAGED,
            "Squared: to be above people counts like to be below them.",
            "Two observers of the same true accuracy never get 0: the interval is corrected for it, the value is not. "
            "Over images of three data sets with four people it held the truth in 92.9 % of simulated studies.",
        ),
        chance="(1/16 − p_person)² in 16 classes",
        higher_is="is less like people: its accuracy differs more from theirs",
        needs=("decisions",),
    ),
    Metric(
        name="observed_consistency",
        title="Observed consistency with people",
        formula="c_obs = share of trials in which both are right or both are wrong",
        denominator=_CORRECT,
        reference=REFERENCE,
        compute=observed_consistency,
        caveats=(
            _AVERAGED,
            "Two observers of high accuracy agree often by chance; error_consistency takes chance into account.",
        ),
        chance="p1·p2 + (1 − p1)(1 − p2)",
        higher_is="is right and wrong on the same images as people",
        needs=("decisions",),
    ),
    Metric(
        name="error_consistency_bound",
        title="Largest error consistency that the two accuracies allow",
        formula="(1 − |p1 − p2| − c_exp) / (1 − c_exp), c_exp = p1·p2 + (1 − p1)(1 − p2)",
        denominator=_CORRECT,
        reference="the upper bound of Cohen's κ for given margins: Cohen 1960, Educ. Psychol. Meas. 20; for error "
        "consistency: Geirhos, Meding & Wichmann 2020, arXiv:2006.16736",
        compute=error_consistency_bound,
        caveats=(
            _AVERAGED,
            "1 only where both accuracies are equal. Observers of different accuracy can be compared by how near "
            "error_consistency comes to it.",
            "A mean of bounds: the error consistency of a mean cannot exceed it.",
        ),
        chance="none: it depends on the accuracies only",
        higher_is="has an accuracy nearer to that of people",
        needs=("decisions",),
    ),
    Metric(
        name="mean_rank",
        title="Mean rank of a model among the models of a run",
        formula="mean of the ranks in accuracy_difference, observed_consistency and error_consistency; 1 is the most "
        "like people",
        denominator="the models of the run, on the data sets that all of them answered",
        reference=REFERENCE,
        compute=mean_rank,
        caveats=(
            "Depends on which models are in the run: compare it within one run only.",
            "People are not ranked. Models with equal values share the mean of their ranks.",
        ),
        bounds=(1.0, float("inf")),
        chance="(number of models + 1) / 2",
        higher_is="is less like people than the other models",
        needs=("decisions",),
    ),
)
