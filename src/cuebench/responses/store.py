"""Where answers are kept: content-addressed, append-only, safe to kill at any instruction.

    responses/<observer>--<key>/key.json              every part of the key, for people to read
    responses/<observer>--<key>/<shard>.parquet       the answers to one batch

*key* hashes what makes an observer answer as it does: weights, preprocessing, label space, adapter version, precision,
kinds of answer. *shard* hashes the stimuli of one batch, in order: the pixels for an observer that looks at them, all
that is known of the stimuli for one that does not (an ideal observer reads the truth, a recording the names). So a
shard that exists is right, a shard that is missing or damaged is to be made, and there is no index that could
disagree with the files. Shards are written to a temporary file and renamed, or put whole into an object store.

A shard carries its own checksum (``files.parquet_bytes``), which every reading compares. Shards of earlier versions
have none; they are read and counted (``Shards.unchecked``). It also names the key and the stimuli that it answers: a
file that was moved to another observer or exchanged with a neighbour is no answer there.

`gather_condensed` reads one shard at a time and keeps what a function makes of it: the decision instead of a thousand
logits. `gather` reads the shards of an observer as whole columns, without two copies of them in memory: the number of
rows is read from the files first, then each shard is copied to its place. All columns that are scored together share
``IN_MEMORY`` bytes; what does not fit goes to a temporary memory-mapped file: a million answers with a thousand logits
are 4 GB on disk, and take as much memory as is read of them at once.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.files import arrow_array, open_parquet, parquet_bytes, read_rows, write_atomic, write_json
from cuebench.labels import are_probabilities, logits_of
from cuebench.labels.checks import refuse_shares
from cuebench.places import RemotePath
from cuebench.responses.shard_form import check_columns
from cuebench.responses.table import Reduce
from cuebench.types import Stimulus

Columns = dict[str, Array]
"""The answers to a batch: column → one row for each answer."""
IN_MEMORY = 512 * 2**20
"""Bytes of columns that are kept in memory at once."""
SHARD = 256
"""Stimuli in a stored file, unless a run says otherwise. It does not depend on the machine, so that every machine finds
what another one has answered; a process that is killed loses a few of them."""
LAYOUT = 1
"""Version of the shard schema; part of every key."""
LAYOUT_BY_TRUTH = 2
"""The same for observers without pixels, whose shards were named by the files alone in layout 1."""
SAY_WHAT_THEY_ARE = ("recorded/", "ideal/")
"""Adapters of observers that say themselves what their numbers are: logits, whatever these look like."""
_ERRORS = b"cuebench.errors"
_ANSWERS = b"cuebench.answers"
"""What a shard says that it is: the beginning of the key's digest, and the name of its file."""
KEPT = "kept:"
"""Beginning of the names of columns that are kept for people to look at (predicted masks): no score reads them."""


@dataclass(frozen=True)
class Key:
    """Everything that changes an answer."""

    weights: str
    preprocess: Mapping[str, Any] | None
    labels: str
    adapter: str
    precision: str
    needs: tuple[str, ...]

    def parts(self) -> dict[str, Any]:
        """Return the parts as a JSON-ready record."""
        return {
            "layout": LAYOUT_BY_TRUTH if self.preprocess is None else LAYOUT,
            "weights": self.weights,
            "preprocess": None if self.preprocess is None else dict(self.preprocess),
            "labels": self.labels,
            "adapter": self.adapter,
            "precision": self.precision,
            "needs": list(self.needs),
        }

    @property
    def digest(self) -> str:
        """Hash of the parts."""
        return key_digest(self.parts())


def key_digest(parts: Mapping[str, Any]) -> str:
    """Return the hash of the parts of a key, also of a recorded one."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Shards:
    """The shards of one folder.

    Parameters
    ----------
    folder : Path or RemotePath
        Where they lie: on a disk, or on an object store.
    by_truth : bool
        Whether they are named by all that is known of the stimuli, not by their pixels alone.
    digest : str
        Of the key whose answers they are; empty: whatever lies there is read.
    adapter : str
        Part of that key; empty: unknown.
    """

    def __init__(
        self, folder: Path | RemotePath, *, by_truth: bool = False, digest: str = "", adapter: str = ""
    ) -> None:
        self.folder = folder
        self.by_truth = by_truth
        self._are_logits = adapter.startswith(SAY_WHAT_THEY_ARE)
        self._digest = digest[:16]
        self.damaged: dict[Path | RemotePath, str] = {}
        """Damaged shards that ``stored`` met, and what is wrong with them."""
        self.unchecked: set[Path | RemotePath] = set()
        """Shards that were met without a checksum, or that do not say whose they are: an earlier version wrote them."""
        self._without_checksum: set[Path | RemotePath] = set()
        self.probabilities: bool | None = None
        """Whether a model answered with probabilities instead of logits; None: ``read_logits`` has seen none."""

    @classmethod
    def of_key(cls, folder: Path | RemotePath, parts: Mapping[str, Any]) -> Shards:
        """Return the shards that a recorded key (``Key.parts``) belongs to, of this or an earlier layout."""
        by_truth, adapter = parts.get("layout") == LAYOUT_BY_TRUTH, str(parts.get("adapter", ""))
        return cls(folder, by_truth=by_truth, digest=key_digest(parts), adapter=adapter)

    def path(self, batch: Sequence[Stimulus]) -> Path | RemotePath:
        """Return the file that holds the answers to exactly these stimuli in this order."""
        names = [s.everything for s in batch] if self.by_truth else [s.key for s in batch]
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:24]
        return self.folder / f"{digest}.parquet"

    def stored(self, batch: Sequence[Stimulus]) -> dict[int, str] | None:
        """Return the errors of a stored batch; None where it is missing or damaged, and is to be asked again."""
        path = self.path(batch)
        if not path.is_file():
            return None
        try:
            with self._open(path) as file:
                self._decode_unchecked(path, file)
                return _errors(file.schema_arrow, len(batch))
        except UserError:  # an object store that cannot be reached: nothing is known of the file
            raise
        except Exception as error:  # noqa: BLE001 - a damaged file can make Arrow raise anything
            self.damaged[path] = str(error)
            return None

    def write(self, batch: Sequence[Stimulus], columns: Mapping[str, Array], errors: Mapping[int, str]) -> None:
        """Store the answers to a batch; ``errors`` names the positions that could not be shown, and why."""
        table = pa.table({name: _to_arrow(values) for name, values in columns.items()})
        errors_json = json.dumps({str(k): v for k, v in sorted(errors.items())})
        path = self.path(batch)
        table = table.replace_schema_metadata({_ERRORS: errors_json.encode(), _ANSWERS: self._answers(path)})
        # Logits hardly ever repeat: a dictionary of them costs most of the time and makes the file larger.
        write_atomic(path, parquet_bytes(table, use_dictionary=False))

    def read(self, batch: Sequence[Stimulus]) -> tuple[Columns, dict[int, str]]:
        """Return (columns, errors) of a batch, as written.

        Raises
        ------
        UserError
            Where the shard is missing, or where its content is not what was written.
        """
        path = self._existing(batch)
        with _damage(path), self._open(path) as file:
            self._decode_unchecked(path, file)
            scored = [name for name in file.schema_arrow.names if not name.startswith(KEPT)]
            table = read_rows(file, scored)
            columns = {name: _from_arrow(table.column(name).combine_chunks()) for name in table.column_names}
            check_columns(columns, len(batch))
            return columns, _errors(file.schema_arrow, len(batch))

    def read_logits(self, batch: Sequence[Stimulus]) -> tuple[Columns, dict[int, str]]:
        """Return the same as ``read``, with logarithms where a model has answered with probabilities.

        Whether it has is decided by the first file that is read, and must hold for all: every row is a distribution.
        Recordings and ideal observers say themselves what their numbers are.
        """
        columns, errors = self.read(batch)
        logits = columns.get("logits")
        if logits is None or not len(logits) or self._are_logits:
            return columns, errors
        here = are_probabilities(logits)
        if not here:
            refuse_shares(logits, self.folder.name)
        self.probabilities = here if self.probabilities is None else self.probabilities
        if self.probabilities and not here:
            raise UserError(
                f"the answers in {self.folder.name} are probabilities in one file and logits in another",
                "an observer must answer every batch alike; correct it and run again with --fresh",
            )
        return ({**columns, "logits": logits_of(logits)} if self.probabilities else columns), errors

    def kept(self, batch: Sequence[Stimulus], name: str) -> dict[int, bytes]:
        """Return what was kept of a batch under a name: position → bytes; positions without anything are left out."""
        path = self._existing(batch)
        with _damage(path), self._open(path) as file:
            if KEPT + name not in file.schema_arrow.names:
                return {}
            table = read_rows(file, ["stimulus", KEPT + name])
            positions, contents = (column.to_pylist() for column in table.columns)
            if any(not isinstance(content, bytes) for content in contents):
                raise ValueError(f"the column {KEPT + name!r} holds no bytes")
            return {position: content for position, content in zip(positions, contents) if content}

    def count_rows(self, batch: Sequence[Stimulus]) -> int:
        """Return the number of answers to a batch, as written."""
        path = self._existing(batch)
        with _damage(path), self._open(path) as file:
            return int(file.metadata.num_rows)

    def _existing(self, batch: Sequence[Stimulus]) -> Path | RemotePath:
        path = self.path(batch)
        if not path.is_file():
            raise UserError(
                f"no stored answers in {path.parent.name} for a batch of this run", "run the same command again"
            )
        return path

    def _answers(self, path: Path | RemotePath) -> bytes:
        return f"{self._digest}/{path.name}".encode()

    def _decode_unchecked(self, path: Path | RemotePath, file: pq.ParquetFile) -> None:
        """Decode all of a shard without a checksum: nothing else can find damage there."""
        if path in self._without_checksum:
            read_rows(file)

    def _open(self, path: Path | RemotePath) -> pq.ParquetFile:
        """Open a shard whose checksum is right, and that is the answer it is taken for."""
        file, has_checksum = open_parquet(path.read_bytes())
        answers = (file.schema_arrow.metadata or {}).get(_ANSWERS)
        if not has_checksum:
            self._without_checksum.add(path)
        if not has_checksum or answers is None:
            self.unchecked.add(path)
        elif self._digest and answers != self._answers(path):
            file.close()
            raise ValueError("it holds the answers of another observer or to other stimuli; it was moved or renamed")
        return file


@contextmanager
def _damage(path: Path | RemotePath) -> Iterator[None]:
    """Turn whatever a damaged file makes Arrow raise into a user error."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        hint = "run the same command again: only these answers are asked for again"
        raise UserError(f"{path} is damaged: {error}", hint) from None


class ShardFolder(Shards):
    """The shards of one observer under one key."""

    def __init__(self, root: Path | RemotePath, observer: str, key: Key) -> None:
        digest = key.digest[:16]
        folder, by_truth = root / f"{slug(observer)}--{digest}", key.preprocess is None
        super().__init__(folder, by_truth=by_truth, digest=digest, adapter=key.adapter)
        self.key = key

    def open(self) -> None:
        """Make the folder and write its key for people to read."""
        write_json(self.folder / "key.json", self.key.parts())


_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""Names that Windows gives to devices: no file can have them, with or without an ending."""


def slug(observer: str) -> str:
    """Return the beginning of a folder's name for an observer; ``observer`` for a name without a Latin letter."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", observer).strip("_")[:60] or "observer"
    return f"_{name}" if _DEVICE.match(name) else name


def batches(stimuli: Sequence[Stimulus], size: int) -> Iterator[tuple[int, Sequence[Stimulus]]]:
    """Cut stimuli into shards: (position of the first, stimuli).

    Neighbours that are made from the same file stay in one shard, which may then be larger than ``size``: a file is
    decoded once, however many pictures are made from it.
    """
    start = 0
    for end in range(1, len(stimuli) + 1):
        last = end == len(stimuli)
        if last or (end - start >= size and (not stimuli[end].path or stimuli[end].path != stimuli[end - 1].path)):
            yield start, stimuli[start:end]
            start = end


def _to_arrow(values: Array) -> pa.Array:
    if values.ndim == 1:
        if values.dtype.kind == "O":
            return pa.array(values.tolist())
        return arrow_array(values.tolist() if values.dtype.kind == "U" else values)
    flat = arrow_array(np.ascontiguousarray(values).reshape(-1))
    # The width is kept for an empty batch too, so that shards always concatenate.
    return pa.FixedSizeListArray.from_arrays(flat, int(np.prod(values.shape[1:])))


def _errors(schema: pa.Schema, size: int) -> dict[int, str]:
    """Return why some of ``size`` stimuli were not shown: position → reason."""
    errors = json.loads((schema.metadata or {}).get(_ERRORS, b"{}"))
    positions = {str(place): place for place in range(size)}
    if not isinstance(errors, dict) or not all(k in positions and isinstance(v, str) for k, v in errors.items()):
        raise ValueError("its list of unreadable stimuli does not fit")
    return {positions[k]: v for k, v in errors.items()}


def _from_arrow(column: pa.Array) -> Array:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_fixed_size_list(column.type):
        width = column.type.list_size
        return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    return column.to_numpy(zero_copy_only=False)


# ------------------------------------------------------------------------------------------ reading all shards


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
        with tempfile.TemporaryFile() as file:  # the mapping keeps it as long as it is needed
            _reserve(file.fileno(), size)
            return np.memmap(file, dtype=like.dtype, mode="r+", shape=shape)


def _reserve(descriptor: int, size: int) -> None:
    """Take the space of a temporary file now: writing to a mapping for which there is none kills the process."""
    folder = tempfile.gettempdir()
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        elif shutil.disk_usage(folder).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        else:
            os.truncate(descriptor, size)
    except OSError as error:
        raise UserError(
            f"the temporary folder {folder} has no room for {size / 2**20:,.0f} MiB of answers: {error.strerror}",
            "free some space there, or name another folder: TMPDIR=FOLDER cuebench …",
        ) from None


def gather(
    shards: Shards,
    stimuli: Sequence[Stimulus],
    shard_size: int,
    memory: Memory | None = None,
    missing: Container[int] = (),
) -> tuple[Columns, dict[str, str]]:
    """Return the columns of all batches, ``stimulus`` counted over the whole set, and what was excluded and why.

    ``missing``: where batches begin that are left out, because they are not answered yet.

    Raises
    ------
    UserError
        Where a shard is missing or damaged, where shards do not have the same columns, or where nothing was shown.
    """
    all_batches = [(start, batch) for start, batch in batches(stimuli, shard_size) if start not in missing]
    total = sum(shards.count_rows(batch) for _, batch in all_batches)
    memory = memory or Memory()
    columns: Columns = {}
    excluded: dict[str, str] = {}
    filled = 0
    for start, batch in all_batches:
        part, errors = shards.read_logits(batch)
        part["stimulus"] = part["stimulus"].astype(np.intp) + start
        excluded.update({batch[i].id: why for i, why in errors.items()})
        rows = len(part["stimulus"])
        # A shard without rows may lack columns: nothing of it was shown.
        if rows or (not total and len(part) > len(columns)):
            columns = columns if filled else {name: memory.room(values, total) for name, values in part.items()}
            _check_same_columns(columns, part, shards)
            for name, values in part.items():
                if values.dtype.kind == "U" and values.dtype.itemsize > columns[name].dtype.itemsize:
                    columns[name] = columns[name].astype(values.dtype)  # a longer word than those before
                columns[name][filled : filled + rows] = values
            filled += rows
    _check_answered(columns, excluded, stimuli)
    return columns, excluded


def gather_condensed(
    shards: Shards, stimuli: Sequence[Stimulus], shard_size: int, condense: Reduce, missing: Container[int] = ()
) -> tuple[Columns, dict[str, str]]:
    """Return the same as ``gather``, with the columns that ``condense`` keeps of every shard.

    One shard is in memory at a time, and what is kept of all.
    """
    parts: list[Columns] = []
    nothing: Columns | None = None  # a batch of which nothing could be shown
    stored: Columns = {}
    excluded: dict[str, str] = {}
    for start, batch in batches(stimuli, shard_size):
        if start in missing:
            continue
        part, errors = shards.read_logits(batch)
        excluded.update({batch[i].id: why for i, why in errors.items()})
        rows = part.pop("stimulus").astype(np.intp)
        if not len(rows):
            nothing = part if nothing is None or len(part) > len(nothing) else nothing
            continue
        stored = stored or {name: values[:0] for name, values in part.items()}
        _check_same_columns(stored, part, shards)
        parts.append({**condense(part, [batch[i] for i in rows]), "stimulus": rows + start})
    if not parts and nothing is not None:
        parts = [{**(condense(nothing, []) if nothing else {}), "stimulus": np.zeros(0, np.intp)}]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    _check_answered(columns, excluded, stimuli)
    return columns, excluded


def _check_answered(columns: Columns, excluded: Mapping[str, str], stimuli: Sequence[Stimulus]) -> None:
    """Refuse to score nothing."""
    if stimuli and len(excluded) == len(stimuli):
        reason = next(iter(excluded.values()))
        raise UserError(
            f"none of the {len(stimuli):,} stimuli could be shown; the first: {reason}",
            "repair or replace the files and run again",
        )
    if not columns:
        raise UserError("the run has no answers to score", "run the same command again")


def _check_same_columns(columns: Columns, part: Columns, shards: Shards) -> None:
    """Refuse a shard that does not have the columns of the others: its rows would be left undefined."""
    before, here = _described(columns), _described(part)
    if before != here:
        name = next(iter(sorted(before.items() ^ here.items())))[0]
        raise UserError(
            f"the answers in {shards.folder.name} are not of one form: column {name!r} is "
            f"{here.get(name, 'missing')} in one batch, {before.get(name, 'missing')} in those before",
            "an observer must answer every batch with the same columns; correct it and run again with --fresh",
        )


def _described(columns: Columns) -> dict[str, str]:
    """Describe columns; texts may differ in length, everything else must agree."""
    kinds = {name: "text" if v.dtype.kind == "U" else str(v.dtype) for name, v in columns.items()}
    return {name: f"{kinds[name]} {'×'.join(map(str, v.shape[1:]))}".strip() for name, v in columns.items()}
