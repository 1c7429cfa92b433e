"""The table of confusions of a cue-conflict experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.metrics.confusion import count
from cuebench.tables.trials import Trials

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ("observer", "condition", "shape", "texture", "response")
CONFUSION = {**dict.fromkeys(_TEXTS, "string"), "count": "int64"}
"""Columns of the table, and their types."""


def confusion_table(trials: Trials) -> pa.Table:
    """Return how often each response was given to each pair of classes; ``none`` is an answer outside all classes."""
    import pyarrow as pa

    names = trials.answer.words[:-1]
    place = {name: i for i, name in enumerate(names)}
    positions = np.array([place.get(word, -1) for word in trials.shape.words], np.intp)
    columns: dict[str, list[Any]] = {name: [] for name in CONFUSION}
    answers = np.array([*names, "none"])
    for code, space in enumerate(trials.space.words):
        here = trials.only(trials.space.codes == code)
        answered = np.where(here.answer.codes == len(names), -1, here.answer.codes)
        counts = count(answered, positions[here.shape.codes], positions[here.texture.codes], len(names))
        where = np.nonzero(counts)
        columns["observer"] += [trials.asked.observer] * len(where[0])
        columns["condition"] += [space] * len(where[0])
        for name, found in zip(("shape", "texture", "response"), where):
            columns[name] += answers[found].tolist()
        columns["count"] += counts[where].tolist()
    return pa.table({name: pa.array(columns[name], kind) for name, kind in CONFUSION.items()})
