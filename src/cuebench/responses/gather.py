"""The shards of a run as whole columns, without holding two copies, or even one, in memory.

The number of rows is read from the files' footers first; then each shard is copied to its place and forgotten. All
columns that are scored together share ``IN_MEMORY``; what does not fit goes to a temporary memory-mapped file: a
million answers with a thousand logits are 4 GB on disk, and as much memory as whoever walks them holds at once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.responses.store import Shards, batches
from cuebench.types import Stimulus

IN_MEMORY = 512 * 2**20
"""Bytes of columns that are kept in memory at once."""


class Memory:
    """What is left of the memory for the columns of all observers that are scored together."""

    def __init__(self, size: int | None = None) -> None:
        self._left = IN_MEMORY if size is None else size

    def room(self, like: Array, rows: int) -> Array:
        """Return an empty column of so many rows, in memory while there is some left, else in a temporary file."""
        shape = (rows, *like.shape[1:])
        size = like.dtype.itemsize * int(np.prod(shape))
        if size <= self._left:
            self._left -= size
            return np.empty(shape, like.dtype)
        with tempfile.TemporaryFile() as file:  # the mapping keeps it until nobody needs it any more
            return np.memmap(file, dtype=like.dtype, mode="w+", shape=shape)


def gather(
    shards: Shards, stimuli: Sequence[Stimulus], batch_size: int, memory: Memory | None = None
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the columns of all batches, ``stimulus`` counted over the whole set, and what was excluded and why.

    Raises
    ------
    UserError
        Where a shard is missing or damaged, where shards do not have the same columns, or where nothing was shown.
    """
    plan = list(batches(stimuli, batch_size))
    total = sum(_rows(shards, batch) for _, batch in plan)
    memory = memory or Memory()
    columns: dict[str, Array] = {}
    excluded: dict[str, str] = {}
    filled = 0
    for part, errors, batch in _parts(shards, plan):
        excluded.update({batch[i].id: why for i, why in errors.items()})
        rows = len(part["stimulus"])
        # A shard without rows may lack columns: nothing of it was shown.
        if rows or (not total and len(part) > len(columns)):
            columns = columns if filled else {name: memory.room(values, total) for name, values in part.items()}
            _check_same(columns, part, shards)
            for name, values in part.items():
                columns[name] = _wide_enough(columns[name], values)
                columns[name][filled : filled + rows] = values
            filled += rows
    _check_shown(columns, excluded, len(stimuli))
    return columns, excluded


def _check_same(columns: Mapping[str, Array], part: Mapping[str, Array], shards: Shards) -> None:
    """Refuse a shard that does not have the columns of the others: its rows would be left undefined."""
    have, found = _form(columns), _form(part)
    if have != found:
        name = next(iter(sorted(have.items() ^ found.items())))[0]
        raise UserError(
            f"the answers in {shards.folder.name} are not of one form: column {name!r} is "
            f"{found.get(name, 'missing')} in one batch, {have.get(name, 'missing')} in those before",
            "an observer must answer every batch with the same columns; mend it and run again with --fresh",
        )


def _form(columns: Mapping[str, Array]) -> dict[str, str]:
    """Describe columns; texts may differ in length, everything else must agree."""
    kinds = {name: "text" if v.dtype.kind == "U" else str(v.dtype) for name, v in columns.items()}
    return {name: f"{kinds[name]} {'×'.join(map(str, v.shape[1:]))}".strip() for name, v in columns.items()}


def _check_shown(columns: Mapping[str, Array], excluded: Mapping[str, str], size: int) -> None:
    if size and len(excluded) == size:
        why = next(iter(excluded.values()))
        raise UserError(
            f"none of the {size:,} stimuli could be shown; the first: {why}", "mend the files and run again"
        )
    if not columns:
        raise UserError("the run has no answers to score", "run the same command again")


def _parts(
    shards: Shards, plan: Sequence[tuple[int, Sequence[Stimulus]]]
) -> Iterator[tuple[dict[str, Array], dict[int, str], Sequence[Stimulus]]]:
    for start, batch in plan:
        columns, errors = shards.read(batch)
        columns["stimulus"] = columns["stimulus"].astype(np.intp) + start
        yield columns, errors, batch


def _rows(shards: Shards, batch: Sequence[Stimulus]) -> int:
    try:
        return int(pq.read_metadata(shards.path(batch)).num_rows)
    except (OSError, ValueError, pa.ArrowException):
        return len(shards.read(batch)[0]["stimulus"])  # missing or damaged: the error says what to do


def _wide_enough(column: Array, values: Array) -> Array:
    """Text has a width: a later shard may hold a longer word than the first."""
    if values.dtype.kind == "U" and values.dtype.itemsize > column.dtype.itemsize:
        return column.astype(values.dtype)
    return column
