"""A stimulus set as a Parquet file: one row for each stimulus, set-level facts in the key-value metadata.

Columns are the fields of :class:`cuebench.types.Stimulus`; the metadata key ``cuebench.stimulus_set`` holds a JSON
object with ``name``, ``root``, ``expected``, ``partial``, ``targets``, ``notes`` and the version of this schema. The
same set gives the same bytes. The file carries its own checksum, which every reading compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.errors import UserError, all_problems, printable
from cuebench.files import OTHER_ROWS, DamagedFile, arrow_array, open_parquet, parquet_bytes, write_atomic
from cuebench.options import check_types
from cuebench.reading import decoded, parse_json, path_problem
from cuebench.types import Stimulus, StimulusSet

if TYPE_CHECKING:
    import pyarrow.parquet as pq

KEY = b"cuebench.stimulus_set"
SCHEMA_VERSION = 1
COLUMNS = tuple(f.name for f in fields(Stimulus))
_FACTS = ("name", "root", "expected", "partial", "targets", "notes")
_UNIQUE = frozenset({"id", "path", "sha256", "mask", "mask_sha256"})
"""Columns whose values hardly repeat."""
_PIECE = 4096
_INTEGERS = frozenset(f.name for f in fields(Stimulus) if isinstance(f.default, int))


def write_manifest(stimuli: StimulusSet, path: Path) -> None:
    """Write a set to ``path``, completely or not at all.

    Raises
    ------
    UserError
        When ids are duplicated, the disk is full or the folder cannot be written to.
    """
    repeated = duplicates([s.id for s in stimuli])
    if repeated:
        raise all_problems(f"stimulus set {stimuli.name!r}", [f"duplicated id {i!r}" for i in repeated])
    write_atomic(path, to_bytes(stimuli))


def to_bytes(stimuli: StimulusSet) -> bytes:
    """Return the Parquet bytes of a set; equal sets give equal bytes."""
    import pyarrow as pa

    facts = {f: getattr(stimuli, f) for f in _FACTS}
    metadata = {KEY: json.dumps({"version": SCHEMA_VERSION, **facts}, sort_keys=True).encode()}
    schema = pa.schema([(c, pa.int64() if c in _INTEGERS else pa.string()) for c in COLUMNS], metadata)
    columns = []
    for name in COLUMNS:
        values = list(map(attrgetter(name), stimuli))
        columns.append(arrow_array(np.array(values, np.int64) if name in _INTEGERS else values))
    return parquet_bytes(pa.table(columns, schema=schema))


def read_manifest(path: Path, root: Path | None = None) -> StimulusSet:
    """Read a set from a Parquet manifest.

    Parameters
    ----------
    path : Path
        The manifest.
    root : Path, optional
        Where the files lie now, if they have been moved since the manifest was written.

    Raises
    ------
    UserError
        Where it is damaged, was not written by cuebench, repeats an id, or names a file outside of the set.
    """
    file = _load(path)
    schema = file.schema_arrow
    hint = "write it again with this version of cuebench"
    facts = parse_json(decoded((schema.metadata or {}).get(KEY, b"{}"), f"manifest {path}"), f"manifest {path}")
    problems = [f"missing column {c!r}" for c in COLUMNS if c not in schema.names]
    problems += [] if facts else [f"no metadata {KEY.decode()!r}: not written by cuebench"]
    if isinstance(facts, dict) and isinstance(version := facts.get("version", 1), int) and version > SCHEMA_VERSION:
        problems.append(f"schema version {version} is newer than this cuebench reads ({SCHEMA_VERSION})")
    if problems:
        raise all_problems(f"manifest {path}", problems, hint)
    if not isinstance(facts, dict) or not set(_FACTS) - {"notes"} <= set(facts):
        raise UserError(f"manifest {path} does not say what it holds", hint)
    checked = check_types(facts, StimulusSet, f"manifest {path}")
    stimuli = StimulusSet(
        name=checked["name"],
        stimuli=_stimuli(file, path),
        root=checked["root"],
        expected=checked["expected"],
        partial=tuple(checked["partial"]),
        targets=checked["targets"],
        notes=tuple(checked.get("notes", ())),
    )
    return replace(stimuli, root=str(root)) if root is not None else stimuli


def _stimuli(file: pq.ParquetFile, path: Path) -> tuple[Stimulus, ...]:
    """Return the rows; their ids are unique, and no path leads out of the set."""
    import pyarrow as pa

    problems = []
    for name in COLUMNS:
        kind = file.schema_arrow.field(name).type
        if not (pa.types.is_integer(kind) if name in _INTEGERS else pa.types.is_string(kind)):
            problems.append(f"column {name!r} holds {kind}")
    if problems:
        raise all_problems(f"manifest {path}", problems, "it was not written by cuebench; write it again")
    try:
        stimuli = tuple(_rows(file))
        if len(stimuli) != file.metadata.num_rows:
            raise ValueError(OTHER_ROWS)
    except Exception as error:  # noqa: BLE001 - a damaged file can make Arrow raise anything
        raise UserError(f"manifest {path} cannot be read: {error}", "it may be damaged; write it again") from None
    problems = [f"duplicated id {printable(i)!r}" for i in duplicates([s.id for s in stimuli])]
    for stimulus in stimuli:
        for name in ("path", "mask"):
            value = getattr(stimulus, name)
            if (".." in value or ":" in value or value[:1] in ("/", "\\")) and (problem := path_problem(value)):
                problems.append(f"{name} {printable(value)!r} of {printable(stimulus.id)!r}: {problem}")
    if problems:
        raise all_problems(f"manifest {path}", problems, "paths are relative to the folder of the set, and stay in it")
    return stimuli


def _rows(file: pq.ParquetFile) -> Iterator[Stimulus]:
    """Yield the stimuli, some thousand rows at a time: a row of Arrow as Python's objects takes four times its room."""
    known: list[dict[Any, Any]] = [{} for _ in COLUMNS]  # classes, sizes and conditions repeat: each is kept once
    for batch in file.iter_batches(_PIECE, columns=list(COLUMNS), use_threads=False):
        columns = []
        for name, seen in zip(COLUMNS, known):
            column = batch.column(name)
            if column.null_count:
                raise ValueError(f"column {name!r} has gaps")
            values = column.to_pylist()
            if name not in _UNIQUE:
                values = [seen.setdefault(value, value) for value in values]
            columns.append(values)
        yield from map(Stimulus, *columns)


def duplicates(ids: list[str]) -> list[str]:
    """Return each id that occurs more than once, sorted."""
    seen: set[str] = set()
    return sorted({i for i in ids if i in seen or seen.add(i)})  # type: ignore[func-returns-value]


def _load(path: Path) -> pq.ParquetFile:
    try:
        return open_parquet(path.read_bytes()).file
    except FileNotFoundError:
        raise UserError(f"manifest {path} does not exist") from None
    except (DamagedFile, OSError) as error:
        raise UserError(f"manifest {path} cannot be read: {error}", "it may be damaged; write it again") from error
