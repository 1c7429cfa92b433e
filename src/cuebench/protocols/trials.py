"""Single answers: how those of a protocol become rows of the table of trials, and what each adds to the headline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics.cue_conflict import outcomes
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.tables.trials import BOTH, NO_ANSWER, OTHER, SHAPE, TEXTURE

if TYPE_CHECKING:
    import pyarrow as pa

    from cuebench.protocols.base import ScoreOptions

MEASURED = ("decision", "outcome", "correct", "rank", "value", "n")
"""Columns that a protocol can fill; all others are known of every trial."""


class TrialRows(NamedTuple):
    """Some rows of the table of trials.

    Parameters
    ----------
    condition : str or array of str
        As in the scores: of all rows, or of each.
    rows : int array
        Positions of the answers that the rows are about.
    columns : mapping of str to array
        Some of `MEASURED`, one value for each row: the class that was answered, the outcome, whether it is right, the
        rank of the right class, a number (`TrialTable.value` says which), and how many decisions the number rests on.
    """

    condition: str | Array
    rows: Array
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class TrialTable:
    """How the answers of an observer become rows of the table of trials.

    Parameters
    ----------
    rows : callable
        ``rows(responses, options) -> iterable of TrialRows``, from the stored answers to one shard of stimuli.
    value : str
        What the column ``value`` holds; empty: nothing.
    whole : bool
        The answers of an observer are needed all at once, because a row depends on several of them.
    """

    rows: Callable[[Responses, ScoreOptions], Iterable[TrialRows]]
    value: str = ""
    whole: bool = False


class Asked(NamedTuple):
    """What `Protocol.contributions` is told: the condition of the headline, the options, and the tables of the run."""

    condition: str
    options: ScoreOptions
    table: Callable[[str], pa.Table]


Contributions = Callable[[Responses, Asked], Sums | None]


# ------------------------------------------------------------------------------------------------- for protocols


def class_names(codes: Array, names: Sequence[str]) -> Array:
    """Return the names of classes by position; empty for −1, an answer outside all of them."""
    return np.array([*names, ""], dtype=object)[np.asarray(codes)]


def cue_outcomes(answer: Array, shape: Array, texture: Array, unknown: Any = -1) -> Array:
    """Say for each trial which cue the answer names.

    Parameters
    ----------
    answer, shape, texture : arrays of names or positions
        One value for each trial.
    unknown : str or int
        The answer that is no class.
    """
    outcome = outcomes(answer, shape, texture)
    both = ~outcome.conflict & (np.asarray(answer) == shape)
    choices = [np.asarray(answer) == unknown, outcome.shape, outcome.texture, both]
    return np.select(choices, [NO_ANSWER, SHAPE, TEXTURE, BOTH], OTHER)


def top_answers(responses: Responses) -> Array:
    """Return the name of the class with the largest logit, or the recorded decision; empty where there is neither."""
    columns, labels = responses.columns, responses.labels
    if "logits" in columns:
        best = columns["logits"].argmax(axis=1)
        return class_names(best, labels.names) if labels else best.astype(str).astype(object)
    if "decisions" in columns:
        return np.asarray(columns["decisions"], dtype=object)
    return np.full(len(responses), "", dtype=object)


def plain_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the rows of a protocol that does not say how: the first answer, and whether it is the label."""
    answer, label = top_answers(responses), responses.truth("label")
    columns: dict[str, Any] = {"decision": answer}
    if (label != "").any():
        space = responses.labels
        if space is None:
            columns["correct"] = answer == label
        else:
            position = {name: space.find(name) for name in {*answer.tolist(), *label.tolist()}}
            columns["correct"] = [position[a] == position[t] is not None for a, t in zip(answer, label.tolist())]
    return [TrialRows(responses.truth("condition"), np.arange(len(responses)), columns)]
