"""The form of stored answers: a file that somebody else wrote is data, and its checksum says nothing of its meaning."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cuebench.arrays import Array

_KINDS = "biufUS"
"""Kinds of column that answers have: truth values, numbers and texts."""


def check_columns(columns: Mapping[str, Array], count: int) -> None:
    """Refuse columns that are no answers to so many stimuli.

    Raises
    ------
    ValueError
        Says which column is wrong.
    """
    if "stimulus" not in columns:
        raise ValueError("the column 'stimulus' is missing")
    stimulus = columns["stimulus"]
    if stimulus.dtype.kind not in "iu" or stimulus.ndim != 1:
        raise ValueError(f"the column 'stimulus' holds {stimulus.dtype}, not the positions of stimuli")
    if len(stimulus) and (int(stimulus.min()) < 0 or int(stimulus.max()) >= count):
        raise ValueError(f"the column 'stimulus' names positions beyond the {count} stimuli")
    for name, values in columns.items():
        if values.dtype.kind not in _KINDS or (name == "logits" and values.dtype.kind not in "iuf"):
            raise ValueError(f"the column {name!r} holds {values.dtype}, not answers")
        if len(values) != len(stimulus):
            raise ValueError(f"the column {name!r} has {len(values)} rows, not {len(stimulus)}")
        if name == "logits" and (values.ndim != 2 or np.isnan(values).any()):
            raise ValueError("the column 'logits' holds no logits")
