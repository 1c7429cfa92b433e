"""The table of confusions of a cue-conflict experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.labels.decisions import Codes
from cuebench.metrics.confusion import count

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ("observer", "condition", "shape", "texture", "response")
CONFUSION = {**dict.fromkeys(_TEXTS, "string"), "count": "int64"}
"""Columns of the table, and their types."""


def confusion_table(
    observer: str, names: Sequence[str], codes: Mapping[str, Codes], shape: Codes, texture: Codes
) -> pa.Table:
    """Return how often each response was given to each pair of classes; ``none`` is an answer outside all classes.

    Parameters
    ----------
    observer : str
        Who answered.
    names : sequence of str
        The classes.
    codes : mapping of str to array
        Condition → the positions of the classes that were answered.
    shape, texture : arrays
        Positions of the true classes.
    """
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name in CONFUSION}
    answers = np.array([*names, "none"])
    for condition, answered in codes.items():
        counts = count(answered, shape, texture, len(names))
        where = np.nonzero(counts)
        columns["observer"] += [observer] * len(where[0])
        columns["condition"] += [condition] * len(where[0])
        for name, positions in zip(("shape", "texture", "response"), where):
            columns[name] += answers[positions].tolist()
        columns["count"] += counts[where].tolist()
    return pa.table({name: pa.array(columns[name], kind) for name, kind in CONFUSION.items()})
