"""Scores on disk: the same rows as Parquet and as JSON, the same bytes for the same answers.

The record of a run holds the SHA-256 of its manifests, scores and tables. What is read is compared with it, so that
neither a damaged file nor the scores of an earlier, other run are taken for its result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from cuebench import registry
from cuebench.errors import UserError, printable
from cuebench.files import (
    DamagedFile,
    disk_errors,
    hash_file,
    json_bytes,
    parquet_bytes,
    read_parquet,
    write_atomic,
)
from cuebench.labels import label_map, map_file
from cuebench.options import check_types
from cuebench.protocols.base import table_problem
from cuebench.runs.record import RunRecord
from cuebench.runs.record_form import is_plain_name
from cuebench.stimuli.manifest import read_manifest
from cuebench.types import Score, StimulusSet

_RUN_AGAIN = "run the same command again: the answers are kept"
_ORDER = tuple(Score.columns())
_COLUMNS = frozenset(_ORDER)
_ARROW = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


def scores_table(scores: Sequence[Score]) -> pa.Table:
    """Return the tidy table: one row for each score, columns in the order of ``Score``."""
    rows = [{k: _encodable(v) if isinstance(v, str) else v for k, v in _fields(s).items()} for s in scores]
    schema = pa.schema([(f.name, _ARROW[str(f.type)]) for f in fields(Score)])
    return pa.Table.from_pylist(rows, schema=schema)


def _fields(score: Score) -> dict[str, Any]:
    """Return a score by column; ``dataclasses.asdict`` copies deeply, which takes seconds for 20,000 rows."""
    return {name: getattr(score, name) for name in _ORDER}


def _encodable(text: str) -> str:
    """Return a text as JSON writes it where it is not Unicode, as in some file names."""
    return text.encode("utf-8", "backslashreplace").decode()


def write_scores(out: Path, scores: Sequence[Score], tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """Write ``scores.parquet``, ``scores.json`` (where NaN is null) and ``tables/``; return file → SHA-256."""
    contents = {"scores.parquet": parquet_bytes(scores_table(scores))}
    contents["scores.json"] = json_bytes([_fields(s) for s in scores])
    contents |= {f"tables/{name}.parquet": parquet_bytes(table) for name, table in tables.items()}
    for name, data in contents.items():
        write_atomic(out / name, data)
    return {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}


def remove_other_tables(out: Path, keep: Collection[str], protocols: Iterable[str]) -> None:
    """Delete the tables that an earlier scoring wrote and this one did not; files of other names are not ours."""
    for protocol in protocols:
        for path in (out / "tables").glob(f"{protocol}.*.parquet"):
            if path.stem not in keep:
                with disk_errors(path):
                    path.unlink(missing_ok=True)


def read_scores(out: Path) -> list[Score]:
    """Read the scores of a run folder, also of one that an earlier cuebench wrote.

    Raises
    ------
    UserError
        Where the run has none yet, or where the file is not what the scoring of this run wrote.
    """
    table = _read(out, "scores.parquet")
    try:
        rows = [Score.from_row(check_types(row, Score) if set(row) <= _COLUMNS else row) for row in table.to_pylist()]
    except (TypeError, ValueError, UserError) as error:
        why = error.message if isinstance(error, UserError) else str(error)
        hint = f"score it again: cuebench score {out}"
        raise UserError(f"{out / 'scores.parquet'} holds no scores: {printable(why)}", hint) from None
    return _with_way_conditions(out, rows)


def read_table(run: str | Path, protocol: str, name: str) -> pa.Table:
    """Read a table that the scoring of a run wrote beside its scores.

    The checks are those of ``read_scores``; columns that the protocol declares have their types, and no gaps.
    """
    out = Path(run).expanduser()
    file = f"tables/{protocol}.{name}.parquet"
    table = _read(out, file)
    known = protocol in registry.protocols  # not that of a package that is not installed here
    if known and (problem := table_problem(registry.protocols.get(protocol), name, table)):
        raise UserError(f"{out / file}: {printable(problem)}", f"score it again: cuebench score {out}")
    return table


class Row(dict[str, Any]):
    """A row of a table of a run, by column; asking for a column that its file does not have is a user error."""

    __slots__ = ("_table",)

    def __init__(self, values: Mapping[str, Any], table: Path) -> None:
        super().__init__(values)
        self._table = table

    def __missing__(self, column: str) -> Any:
        raise UserError(
            f"{self._table} has no column {column!r}: another version of cuebench wrote it, or it was changed",
            f"score it again: cuebench score {self._table.parent.parent}",
        )


def read_table_rows(run: str | Path, protocol: str, name: str) -> list[Row]:
    """Read a table as ``read_table`` does, as rows."""
    out = Path(run).expanduser()
    path = out / "tables" / f"{protocol}.{name}.parquet"
    return [Row(values, path) for values in read_table(out, protocol, name).to_pylist()]


def _read(out: Path, name: str) -> pa.Table:
    """Read a file of scores after comparing it with the record; a folder of scores without one has its checksums."""
    score_again = f"score it again: cuebench score {out}"
    record = RunRecord.read(out) if (out / "run.json").is_file() else RunRecord({}, status="complete")
    if record.status != "complete" and not record.scored:
        raise UserError(
            f"{unfinished(out, record) or f'the scoring of {out} was stopped'}; it has no scores that belong to its "
            "answers",
            f"run the same command again: it goes on where it stopped; or score what there is: cuebench score {out}",
        )
    path = out / name
    if not path.is_file():
        raise UserError(f"{out} has no {name.removesuffix('.parquet')}", score_again)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != record.files.get(name, _unknown(data, record)):
        raise UserError(f"{path} is not what this run wrote: it was changed, damaged or not finished", score_again)
    try:
        return read_parquet(data)
    except DamagedFile as error:
        raise UserError(f"{path} is damaged: {error}", score_again) from None


def unfinished(out: Path, record: RunRecord) -> str:
    """Say that a run did not come to its end, and why, as far as its record knows; empty where it did."""
    if record.status in ("complete", "collected"):
        return ""
    ended = {
        "running": "its process was killed or ended by itself, or still works",
        "shared": "not all of its processes (--shard i/n) have come to their end",
    }.get(record.status, "it was stopped")
    return f"the run in {out} was not finished: {ended} (status: {record.status})"


def _unknown(data: bytes, record: RunRecord) -> str:
    """Return the hash to expect of a file that the record does not name: that of any, where it names none at all."""
    return "" if record.files else hashlib.sha256(data).hexdigest()


def read_stimuli(out: Path, name: str, record: RunRecord | None = None) -> StimulusSet:
    """Read a manifest of a run; a user's label map lies beside it.

    Parameters
    ----------
    out : Path
        The run folder.
    name : str
        File name of the manifest, which ends in a hash of its stimuli.
    record : RunRecord, optional
        The record of the run; default: it is read.

    Raises
    ------
    UserError
        Where the manifest or the label map is not what the run wrote.
    """
    record = record or RunRecord.read(out)
    path = out / "stimuli" / name
    if not path.is_file():
        raise UserError(f"{path} is missing", "run the command that made it again: the answers are kept")
    digest = hash_file(path).sha256
    stimuli = _read_once(digest, path)
    expected = record.files.get(f"stimuli/{name}")
    hash_in_name = Path(name).stem.rpartition("-")[2]
    if (expected is not None and digest != expected) or stimuli.fingerprint[:12] != hash_in_name:
        raise UserError(f"{path} is not what this run wrote: it was changed or damaged", _RUN_AGAIN)
    file = map_file(stimuli.targets)
    if file is None:
        return stimuli
    targets = out / "stimuli" / file.path
    if not is_plain_name(str(file.path)):
        raise UserError(f"{path} names a label map outside of the run: {printable(stimuli.targets)}", _RUN_AGAIN)
    if not targets.is_file() or hash_file(targets).sha256[:12] != targets.stem.rpartition("-")[2]:
        raise UserError(f"{targets} is missing, or is not what this run wrote", _RUN_AGAIN)
    return replace(stimuli, targets=f"{targets}{file.subset}")


class _Once:
    """Two manifests with the same bytes are the same stimuli: many runs of one set are read side by side."""

    def __init__(self, most: int) -> None:
        self._sets: dict[str, StimulusSet] = {}
        self._most = most

    def __call__(self, digest: str, path: Path) -> StimulusSet:
        if digest not in self._sets:
            while len(self._sets) >= self._most:
                self._sets.pop(next(iter(self._sets)))
            self._sets[digest] = read_manifest(path)
        return self._sets[digest]


_read_once = _Once(4)


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
    from cuebench.protocols.cue_conflict import TARGETS
    from cuebench.tables.decide import FULL, way

    names: dict[str, tuple[str, str]] = {}
    classes: dict[str, int] = {}
    for job in RunRecord.read(out).jobs:
        if job.protocol == "cue_conflict":
            if job.stimuli not in classes:
                classes[job.stimuli] = len(label_map(read_stimuli(out, job.stimuli).targets or TARGETS).names)
            full = len(job.labels["names"]) if job.labels else FULL
            names[job.observer] = way(classes[job.stimuli]), way(full)
    return names
