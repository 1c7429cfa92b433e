"""Ratio-of-sums statistics: the common ground of all cue-conflict metrics. A helper, not a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cuebench.errors import UserError

Array = np.ndarray[Any, np.dtype[Any]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Ratio:
    """A numerator and a denominator. Counts of shards add up: ``a + b`` is the count of both."""

    numerator: float
    denominator: float

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.numerator + other.numerator, self.denominator + other.denominator)

    @property
    def value(self) -> float:
        """The quotient; NaN where the denominator is 0, because nothing was measured."""
        return self.numerator / self.denominator if self.denominator else float("nan")


class Terms(NamedTuple):
    """What each trial adds to the numerator and to the denominator."""

    numerator: Bools
    denominator: Bools


class Outcomes(NamedTuple):
    """What happened in each trial of a cue-conflict experiment.

    ``conflict``: shape class and texture class differ. ``shape`` and ``texture``: the answer is that class (never both,
    and never in an aligned trial). A conflict trial that is neither is undecided.
    """

    conflict: Bools
    shape: Bools
    texture: Bools

    @property
    def decided(self) -> Bools:
        """Trials answered by one of the two cues."""
        return self.shape | self.texture


def outcomes(
    decisions: Sequence[Any] | Array, shape: Sequence[Any] | Array, texture: Sequence[Any] | Array
) -> Outcomes:
    """Compare answers with the two truths of each trial.

    Parameters
    ----------
    decisions, shape, texture : arrays of str or int, one value for each trial
        Class names, or positions of classes (−1: an answer outside all classes).

    Raises
    ------
    UserError
        Where the lengths differ, an array is not one-dimensional, or names are compared with positions.

    Examples
    --------
    >>> outcomes(["cat", "dog", "na"], ["cat", "cat", "cat"], ["dog", "dog", "dog"]).decided.tolist()
    [True, True, False]
    """
    answer, is_shape, is_texture = (validate(n, v) for n, v in _named(decisions, shape, texture))
    if not len(answer) == len(is_shape) == len(is_texture):
        raise UserError(f"{len(answer)} decisions, {len(is_shape)} shape classes, {len(is_texture)} texture classes")
    kinds = {a.dtype.kind in "US" for a in (answer, is_shape, is_texture) if len(a)}
    if len(kinds) > 1:
        raise UserError("decisions and classes must be all names or all positions", f"got {answer.dtype}")
    conflict = is_shape != is_texture
    return Outcomes(conflict, conflict & (answer == is_shape), conflict & (answer == is_texture))


def validate(name: str, values: Sequence[Any] | Array) -> Array:
    """Return a one-dimensional array of names or positions, or say what was received."""
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = array.astype(np.str_)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "USiu"):
        raise UserError(f"{name} must be a list of class names or positions; got {array.dtype} of shape {array.shape}")
    return array


def total(terms: Terms) -> Ratio:
    """Sum the terms of all trials."""
    return Ratio(float(terms.numerator.sum()), float(terms.denominator.sum()))


def _named(*values: Any) -> list[tuple[str, Any]]:
    return list(zip(("decisions", "shape", "texture"), values))
