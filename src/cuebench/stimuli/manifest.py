"""A stimulus set as a Parquet file: one row for each stimulus, set-level facts in the key-value metadata.

Columns are the fields of :class:`cuebench.types.Stimulus`; the metadata key ``cuebench.stimulus_set`` holds a JSON
object with ``name``, ``root``, ``expected``, ``partial``, ``targets``, ``notes`` and the version of this schema. The
same set gives the same bytes. The file carries its own checksum, which every reading compares.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems
from cuebench.files import DamagedFile, parquet_bytes, read_parquet, write_atomic
from cuebench.types import Stimulus, StimulusSet

KEY = b"cuebench.stimulus_set"
SCHEMA_VERSION = 1
COLUMNS = tuple(f.name for f in fields(Stimulus))
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

    facts = {f: getattr(stimuli, f) for f in ("name", "root", "expected", "partial", "targets", "notes")}
    metadata = {KEY: json.dumps({"version": SCHEMA_VERSION, **facts}, sort_keys=True).encode()}
    columns = {c: [getattr(s, c) for s in stimuli] for c in COLUMNS}
    schema = pa.schema([(c, pa.int64() if c in _INTEGERS else pa.string()) for c in COLUMNS], metadata)
    return parquet_bytes(pa.table(columns, schema=schema))


def read_manifest(path: Path, root: Path | None = None) -> StimulusSet:
    """Read a set from a Parquet manifest.

    Parameters
    ----------
    path : Path
        The manifest.
    root : Path, optional
        Where the files lie now, if they have been moved since the manifest was written.
    """
    table = _load(path)
    facts = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    problems = [f"missing column {c!r}" for c in COLUMNS if c not in table.column_names]
    problems += [] if facts else [f"no metadata {KEY.decode()!r}: not written by cuebench"]
    if facts.get("version", SCHEMA_VERSION) > SCHEMA_VERSION:
        problems.append(f"schema version {facts['version']} is newer than this cuebench reads ({SCHEMA_VERSION})")
    if problems:
        raise all_problems(f"manifest {path}", problems, "write it again with this version of cuebench")
    rows = table.select(list(COLUMNS)).to_pylist()
    stimuli = StimulusSet(
        name=facts["name"],
        stimuli=tuple(Stimulus(**row) for row in rows),
        root=facts["root"],
        expected=facts["expected"],
        partial=tuple(facts["partial"]),
        targets=facts["targets"],
        notes=tuple(facts.get("notes", ())),
    )
    return replace(stimuli, root=str(root)) if root is not None else stimuli


def duplicates(ids: list[str]) -> list[str]:
    """Return each id that occurs more than once, sorted."""
    seen: set[str] = set()
    return sorted({i for i in ids if i in seen or seen.add(i)})  # type: ignore[func-returns-value]


def _load(path: Path) -> Any:
    try:
        return read_parquet(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"manifest {path} does not exist") from None
    except (DamagedFile, OSError) as error:
        raise UserError(f"manifest {path} cannot be read: {error}", "it may be damaged; write it again") from error
