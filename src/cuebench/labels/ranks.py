"""Best rank of a class in a long list of logits, by counting instead of sorting.

The rank of a class made of several members (a superclass) is the **best rank of any member in the unmerged order** of
all logits; other members that stand above or below are neither merged nor removed, as in REFINED-BIAS (Kim et al.
2026, https://arxiv.org/abs/2603.10834; docs/refined_bias.md).

rank = 1 + #{logits > m} + #{logits = m of a lower index than the best member}, m = max of the members' logits, best
member = the first of those that reach m. This is the rule of arg max and of ``accuracy.rank``: among equals the lower
class index stands first. The authors rank float32 softmax values, in which very unlikely classes can tie where the
logits do not; such ties lie far down the list and are not reproduced.

Sorting 1,000 logits finds a thousand ranks where one is needed. Counting is one pass over the memory, as fast as
reading the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.compiled import compiled
from cuebench.errors import MissingExtra, UserError
from cuebench.files import OTHER_ROWS, rows_agree
from cuebench.labels.checks import refuse_nan

Ranks = np.ndarray[Any, np.dtype[np.int32]]
CHUNK = 16 << 20
"""Bytes of logits that are processed at once: small enough for the processor's cache, or nearly."""


def best_ranks(logits: Array, target: Array, members: Sequence[Array], *, chunk: int = CHUNK) -> Ranks:
    """Return the best rank of any member of each row's class, 1 = largest.

    Parameters
    ----------
    logits : float array n × classes
        Or probabilities: only the order counts. May be a memory map: it is read in pieces, once.
    target : int array n
        Position in ``members`` of each row's class.
    members : sequence of int arrays
        For each class the positions of its members among the logits, at least one.
    chunk : int
        Bytes of logits in a piece; the memory needed above the input is about a third of it.

    Returns
    -------
    int32 array n

    Raises
    ------
    UserError
        Some logits are NaN, or the arrays do not fit each other.

    Examples
    --------
    >>> best_ranks(np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]]), np.array([0, 0]), [np.array([0, 2])]).tolist()
    [2, 1]
    """
    width, table = _checked(logits, target, members)
    count = _counter()
    out = np.empty(len(target), np.int32)
    rows = max(1, chunk // (width * logits.dtype.itemsize))
    for start in range(0, len(target), rows):
        part = slice(start, start + rows)
        piece = np.asarray(logits[part])
        refuse_nan(piece)
        out[part] = count(piece, table[target[part]])
    return out


def best_ranks_in_parquet(
    path: str | Path,
    target: Array,
    members: Sequence[Array],
    *,
    column: str = "logits",
    rows: int = 4096,
    mapped: bool = False,
) -> Ranks:
    """Return the best ranks of a stored column of logits, in constant memory whatever its length.

    Parameters
    ----------
    path : path
        A Parquet file whose ``column`` is a list of numbers of one width, as the response store writes it. It is
        read ``rows`` rows at a time.
    target, members
        As in ``best_ranks``; row i of the file has ``target[i]``.
    column : str
        Name of the column of logits.
    rows : int
        Rows in memory at once.
    mapped : bool
        Map the file into memory instead of reading it through a small buffer: faster. The mapped pages belong to the
        system, which drops them when it needs the room, but they are shown as memory of the process.

    Raises
    ------
    UserError
        The file has no such column, another length, or rows of different width.
    """
    out = np.empty(len(target), np.int32)
    start = 0
    for logits in logit_batches(path, column=column, rows=rows, mapped=mapped):
        part = slice(start, start + len(logits))
        if part.stop > len(target):
            break
        out[part] = best_ranks(logits, target[part], members)
        start = part.stop
    else:
        if start == len(target):
            return out
    raise UserError(f"{path} has another number of rows than there are targets ({len(target):,})")


def logit_batches(
    path: str | Path, *, column: str = "logits", rows: int = 4096, mapped: bool = False
) -> Iterator[Array]:
    """Yield a column of lists of a Parquet file as arrays rows × width, a few rows at a time."""
    import pyarrow as pa

    try:
        yield from _batches(path, column, rows, mapped)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path} cannot be read: {reason}") from None


def _batches(path: str | Path, column: str, rows: int, mapped: bool) -> Iterator[Array]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=mapped, buffer_size=1 << 20, pre_buffer=False) as file:
        if column not in file.schema_arrow.names:
            raise UserError(f"{path} has no column {column!r}", f"it has: {', '.join(file.schema_arrow.names)}")
        kind = file.schema_arrow.field(column).type
        lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        if not lists or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
            raise UserError(f"{path}: column {column!r} holds no lists of numbers but {kind}")
        if not rows_agree(file):
            raise UserError(f"{path} is damaged: {OTHER_ROWS}", "write it again")
        width = 0
        for batch in file.iter_batches(batch_size=rows, columns=[column]):
            flat = batch.column(0).flatten().to_numpy(zero_copy_only=False)
            width = width or len(flat) // max(len(batch), 1)
            if len(flat) != width * len(batch):
                raise UserError(f"{path}: the rows of column {column!r} have different widths")
            yield flat.reshape(len(batch), width)


def _checked(logits: Array, target: Array, members: Sequence[Array]) -> tuple[int, Array]:
    """Return the width, and the members as a table in which short rows repeat their first member."""
    if logits.ndim != 2 or len(logits) != len(target):
        raise UserError(f"logits of shape {logits.shape} do not fit {len(target)} targets")
    if len(target) and not (target.min() >= 0 and target.max() < len(members)):
        raise UserError(f"targets must lie in 0 … {len(members) - 1}; got {target.min()} … {target.max()}")
    used = np.unique(target) if len(target) else np.arange(len(members))
    empty = [int(i) for i in used if not len(members[i])]
    if empty:
        raise UserError(f"classes {empty} have no member among the {logits.shape[1]} logits: they have no rank")
    longest = max((len(m) for m in members), default=1) or 1
    padded = [np.resize(m, longest) if len(m) else np.zeros(longest, np.intp) for m in members]
    table = np.array(padded, dtype=np.intp).reshape(len(members), longest)
    if len(target) and not (table[used].min() >= 0 and table[used].max() < logits.shape[1]):
        raise UserError(f"members must lie in 0 … {logits.shape[1] - 1}")
    return logits.shape[1], table


@cache
def _counter() -> Callable[[Array, Array], Ranks]:
    """Return the compiled counter where numba is installed, else the one of numpy: the same numbers."""
    try:
        return compiled_counter()
    except MissingExtra:
        return count_with_numpy


def count_with_numpy(logits: Array, members: Array) -> Ranks:
    """Count in numpy: one comparison of the whole piece, and a look at ties where there are any."""
    of_members = np.take_along_axis(logits, members, axis=1)
    top = of_members.max(axis=1, keepdims=True)
    first = np.where(of_members == top, members, logits.shape[1]).min(axis=1)
    ranks = 1 + np.count_nonzero(logits > top, axis=1)
    tied = np.flatnonzero(np.count_nonzero(logits == top, axis=1) > 1)
    for row in tied:
        ranks[row] += np.count_nonzero(logits[row, : first[row]] == top[row])
    return ranks.astype(np.int32)


@cache
def compiled_counter() -> Callable[[Array, Array], Ranks]:
    """Compile the counter: one pass that touches every logit once."""
    if find_spec("numba") is None:
        raise MissingExtra("counting ranks with numba", "image", "numba")

    def count(logits, members):  # type: ignore[no-untyped-def] # noqa: ANN001
        out = np.empty(len(logits), np.int32)
        for row in range(len(logits)):
            values = logits[row]
            best = members[row, 0]
            for k in range(1, members.shape[1]):
                m = members[row, k]
                if values[m] > values[best] or (values[m] == values[best] and m < best):
                    best = m
            top = values[best]
            larger = 1
            # Two loops without branches, which the compiler turns into vector instructions.
            for j in range(best):
                larger += values[j] >= top
            for j in range(best + 1, len(values)):
                larger += values[j] > top
            out[row] = larger
        return out

    return compiled(count, nogil=True)
