"""Scores on disk: the same rows as Parquet and as JSON, the same bytes for the same answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cuebench.errors import UserError
from cuebench.files import disk_errors, json_text, write_atomic
from cuebench.labels import label_map
from cuebench.runs.record import RunRecord
from cuebench.stimuli.manifest import read_manifest
from cuebench.types import Score, StimulusSet

_ARROW = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


def scores_table(scores: Sequence[Score]) -> pa.Table:
    """Return the tidy table: one row for each score, columns in the order of ``Score``."""
    rows = [asdict(s) for s in scores]
    schema = pa.schema([(f.name, _ARROW[str(f.type)]) for f in fields(Score)])
    return pa.Table.from_pylist(rows, schema=schema)


def write_scores(out: Path, scores: Sequence[Score], tables: Mapping[str, pa.Table]) -> None:
    """Write ``scores.parquet``, ``scores.json`` (where NaN is null) and ``tables/``."""
    write_atomic(out / "scores.parquet", parquet_bytes(scores_table(scores)))
    write_atomic(out / "scores.json", json_text([asdict(s) for s in scores]).encode())
    for name, table in tables.items():
        write_atomic(out / "tables" / f"{name}.parquet", parquet_bytes(table))


def remove_other_tables(out: Path, keep: Collection[str], protocols: Iterable[str]) -> None:
    """Delete the tables that an earlier scoring wrote and this one did not; files of other names are not ours."""
    for protocol in protocols:
        for path in (out / "tables").glob(f"{protocol}.*.parquet"):
            if path.stem not in keep:
                with disk_errors(path):
                    path.unlink(missing_ok=True)


def read_scores(out: Path) -> list[Score]:
    """Read the scores of a run folder, also of one that an earlier cuebench wrote."""
    path = out / "scores.parquet"
    if not path.is_file():
        raise UserError(f"{out} has no scores", f"cuebench score {out}")
    rows = [Score.from_row(row) for row in pq.read_table(path).to_pylist()]
    return _with_way_conditions(out, rows)


def read_stimuli(out: Path, name: str) -> StimulusSet:
    """Read a manifest of a run; a user's label map lies beside it."""
    stimuli = read_manifest(out / "stimuli" / name)
    targets = stimuli.targets
    return replace(stimuli, targets=str(out / "stimuli" / targets)) if Path(targets).suffix else stimuli


def parquet_bytes(table: pa.Table) -> bytes:
    """Serialise a table deterministically."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


# ------------------------------------------------------------------------------------------ earlier run folders


def _with_way_conditions(out: Path, rows: list[Score]) -> list[Score]:
    """Rename the conditions of cue conflict that were called ``partial`` and ``full``: ``16-way`` and ``1000-way``.

    Where the observer's label space has as many classes as the stimuli, both were the same number; one is kept.
    """
    if not any(_is_earlier(row) for row in rows):
        return rows
    names = _way_conditions(out)
    renamed = []
    for row in rows:
        if _is_earlier(row):
            space, slash, rest = row.condition.partition("/")
            partial, full = names.get(row.observer, ("16-way", "1000-way"))
            if space == "full" and partial == full:
                continue
            row = replace(row, condition=(partial if space == "partial" else full) + slash + rest)
        renamed.append(row)
    return renamed


def _is_earlier(row: Score) -> bool:
    return row.protocol == "cue_conflict" and row.condition.partition("/")[0] in ("partial", "full")


def _way_conditions(out: Path) -> dict[str, tuple[str, str]]:
    """Return observer → the names of its two conditions, from the label maps and label spaces of the run."""
    from cuebench.protocols.cue_conflict import FULL, TARGETS, way

    names: dict[str, tuple[str, str]] = {}
    classes: dict[str, int] = {}
    for job in RunRecord.read(out).jobs:
        if job.protocol == "cue_conflict":
            if job.stimuli not in classes:
                classes[job.stimuli] = len(label_map(read_stimuli(out, job.stimuli).targets or TARGETS).names)
            full = len(job.labels["names"]) if job.labels else FULL
            names[job.observer] = way(classes[job.stimuli]), way(full)
    return names
