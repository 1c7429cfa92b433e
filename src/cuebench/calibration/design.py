"""What a design declares: how a protocol is simulated, and what its metrics should then be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.calibration.planted import BY_SHAPE, Planted
from cuebench.labels import LabelSpace
from cuebench.responses.table import Responses
from cuebench.types import ObserverKind, StimulusSet

Number = tuple[str, str]
"""Condition and metric: what names a number of an observer within a protocol."""
RESAMPLES = 400
"""Of a bootstrap interval, unless a design says otherwise; so few percentiles cost half a percent of coverage."""
OBSERVER = "planted"
"""Name of the observer whose numbers are calibrated; others of a study are there to be compared with."""


@dataclass(frozen=True)
class Design:
    """How one protocol is simulated.

    Parameters
    ----------
    protocol : str
        Its name.
    answers : callable
        ``answers(planted, rng) -> responses of all observers of one study``, as the protocol's ``measure`` sees them.
        The observer that is calibrated has the name `OBSERVER`.
    truths : callable
        ``truths(planted) -> {(condition, metric): expected value}`` over new images, shapes and textures. Written from
        the definitions, never with the functions of the metrics. NaN where the number is not defined.
    stimuli : str
        The simulated set in words.
    weight : str
        What the planted weight is in this protocol.
    sources : str
        What the effects of ``Planted.spread`` belong to.
    absent : mapping of str to str
        Metric → why it is not calibrated.
    values : mapping
        Options of the protocol.
    resamples : int
        Of every bootstrap interval.
    claims : callable, optional
        ``claims(planted) -> {(condition, metric): value}`` that intervals claim to hold, of numbers whose intervals are
        not about the truth but about other studies of the same size.
    claim : str
        What these intervals claim to hold, in words.
    of_others : callable, optional
        ``of_others(responses) -> what the protocol's measure keeps of an observer``, for the observers that are only
        compared with, where their own numbers would take long and are not wanted.
    """

    protocol: str
    answers: Callable[[Planted, np.random.Generator], Sequence[Responses]]
    truths: Callable[[Planted], Mapping[Number, float]]
    stimuli: str
    weight: str = BY_SHAPE
    sources: str = "shapes and textures"
    absent: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    resamples: int = RESAMPLES
    claims: Callable[[Planted], Mapping[Number, float]] | None = None
    claim: str = ""
    of_others: Callable[[Responses], Any] | None = None


def responses(
    stimuli: StimulusSet,
    columns: Mapping[str, Array],
    labels: LabelSpace | None = None,
    *,
    name: str = OBSERVER,
    kind: ObserverKind = "model",
    view: str = "native",
    baseline_of: str = "",
) -> Responses:
    """Return answers to all stimuli, one row each."""
    rows = np.arange(len(stimuli), dtype=np.intp)
    return Responses(name, kind, stimuli, rows, columns, labels, view, baseline_of=baseline_of)
