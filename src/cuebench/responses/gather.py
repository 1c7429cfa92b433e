"""The shards of a run as whole columns, without holding two copies, or even one, in memory.

The number of rows is read from the files' footers first; then each shard is copied to its place and forgotten. A column
larger than ``IN_MEMORY`` goes to a temporary memory-mapped file: a million answers with a thousand logits are 4 GB on
disk, and as much memory as whoever walks them holds at once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from cuebench.errors import UserError
from cuebench.responses.store import Shards, batches
from cuebench.types import Stimulus

IN_MEMORY = 512 * 2**20
"""Bytes up to which a column is kept in memory."""

Array = np.ndarray[Any, np.dtype[Any]]


def gather(shards: Shards, stimuli: Sequence[Stimulus], batch_size: int) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the columns of all batches, ``stimulus`` counted over the whole set, and what was excluded and why."""
    plan = list(batches(stimuli, batch_size))
    total = sum(_rows(shards, batch) for _, batch in plan)
    columns: dict[str, Array] = {}
    excluded: dict[str, str] = {}
    filled = 0
    for part, errors, batch in _parts(shards, plan):
        excluded.update({batch[i].id: why for i, why in errors.items()})
        rows = len(part["stimulus"])
        if rows or not total:
            columns = columns or {name: _room(values, total) for name, values in part.items()}
            for name, values in part.items():
                columns[name] = _wide_enough(columns[name], values)
                columns[name][filled : filled + rows] = values
            filled += rows
    if not columns:
        raise UserError("the run has no answers to score", "run the same command again")
    return columns, excluded


def _parts(
    shards: Shards, plan: Sequence[tuple[int, Sequence[Stimulus]]]
) -> Iterator[tuple[dict[str, Array], dict[int, str], Sequence[Stimulus]]]:
    for start, batch in plan:
        columns, errors = shards.read(batch)
        columns["stimulus"] = columns["stimulus"].astype(np.intp) + start
        yield columns, errors, batch


def _rows(shards: Shards, batch: Sequence[Stimulus]) -> int:
    path = shards.path(batch)
    if not path.is_file():
        shards.read(batch)  # raises the error that says what to do
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, ValueError):
        return len(shards.read(batch)[0]["stimulus"])  # a damaged file: the error names it


def _room(like: Array, rows: int) -> Array:
    shape = (rows, *like.shape[1:])
    if like.dtype.itemsize * int(np.prod(shape)) <= IN_MEMORY:
        return np.empty(shape, like.dtype)
    with tempfile.TemporaryFile() as file:  # the mapping keeps it until nobody needs it any more
        return np.memmap(file, dtype=like.dtype, mode="w+", shape=shape)


def _wide_enough(column: Array, values: Array) -> Array:
    """Text has a width: a later shard may hold a longer word than the first."""
    if values.dtype.kind == "U" and values.dtype.itemsize > column.dtype.itemsize:
        return column.astype(values.dtype)
    return column
