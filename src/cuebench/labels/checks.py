"""Answers that are not numbers are refused before they are ranked: NaN is neither larger nor smaller than anything.

Compared with NaN, every class would stand first, and an observer without an answer would be perfect.
"""

from __future__ import annotations

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError


def refuse_nan(values: Array, what: str = "logits") -> None:
    """Raise where an answer (a row) holds NaN, with the number of such answers.

    Parameters
    ----------
    values : array, answers in rows
        Logits, probabilities or features; infinite values are accepted.
    what : str
        What they are, for the message.
    """
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "fc" or not numbers.size:
        return
    with np.errstate(invalid="ignore", over="ignore"):
        suspect = bool(np.isnan(numbers.sum()))  # one fast pass; ∞ − ∞ is NaN too, so look closer only here
    if not suspect:
        return
    bad = np.flatnonzero(np.isnan(numbers.reshape(len(numbers), -1)).any(axis=1))
    if len(bad):
        raise UserError(
            f"{len(bad)} of {len(numbers)} answers have NaN {what} (the first is answer {bad[0]})",
            "leave them out and count them, or run the observer with --precision float32 and check its weights",
        )


def refuse_shares(values: Array, whose: str) -> None:
    """Raise where every row of logits seems to hold shares of the classes, rounded or in percent.

    As logits they would hardly differ. Probabilities whose sums are 1 are to be turned into logits before.

    >>> refuse_shares(np.array([[60, 39.5]]), "net")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cuebench.errors.UserError: the answers of net look like probabilities in percent, or rounded ones...
    """
    if not values.size or values.shape[-1] < 2 or not (values >= 0).all():
        return
    sums = values.sum(axis=-1, dtype=np.float64)
    rounded = (values <= 1).all() and (np.abs(sums - 1) <= 0.1).all()
    if rounded or (np.abs(sums - 100) <= 1).all():
        raise UserError(
            f"the answers of {whose} look like probabilities in percent, or rounded ones: their sums are not 1",
            "let it answer with its logits, or with probabilities in all their digits",
        )
