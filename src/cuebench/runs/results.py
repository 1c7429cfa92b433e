"""Scores on disk: the same rows as Parquet and as JSON, the same bytes for the same answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cuebench.errors import UserError
from cuebench.files import disk_errors, json_text, write_atomic
from cuebench.types import Score

_ARROW = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


def scores_table(scores: Sequence[Score]) -> pa.Table:
    """Return the tidy table: one row for each score, columns in the order of ``Score``."""
    rows = [asdict(s) for s in scores]
    schema = pa.schema([(f.name, _ARROW[str(f.type)]) for f in fields(Score)])
    return pa.Table.from_pylist(rows, schema=schema)


def write_scores(out: Path, scores: Sequence[Score], tables: Mapping[str, pa.Table]) -> None:
    """Write ``scores.parquet``, ``scores.json`` and ``tables/``."""
    write_atomic(out / "scores.parquet", parquet_bytes(scores_table(scores)))
    write_atomic(out / "scores.json", scores_json(scores).encode())
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
    """Read the scores of a run folder."""
    path = out / "scores.parquet"
    if not path.is_file():
        raise UserError(f"{out} has no scores", f"cuebench score {out}")
    return [Score.from_row(row) for row in pq.read_table(path).to_pylist()]


def scores_json(scores: Sequence[Score]) -> str:
    """Return the rows as JSON; NaN, which JSON does not have, becomes null."""
    return json_text([asdict(s) for s in scores])


def parquet_bytes(table: pa.Table) -> bytes:
    """Serialise a table deterministically."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())
