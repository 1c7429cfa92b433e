"""The table of trials: one row for each answer of each observer in each condition, from the stored answers of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cuebench.arrays import Array
from cuebench.csv_text import written_cell
from cuebench.errors import UserError
from cuebench.files import ending_of, replacing
from cuebench.protocols.base import Protocol
from cuebench.protocols.trials import MEASURED, TrialRows
from cuebench.registry import protocols
from cuebench.responses.job import JobRecord
from cuebench.responses.table import Responses
from cuebench.runs.answers import StoredAnswers
from cuebench.runs.optional import import_optional

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("protocol", "observer", "kind", "person", "session", "condition")),
        *((name, pa.string()) for name in ("stimulus", "image", "label", "shape", "texture")),
        *((name, pa.string()) for name in ("shape_source", "texture_source", "decision", "outcome")),
        ("correct", pa.bool_()),
        ("rank", pa.int32()),
        ("value", pa.float64()),
        ("n", pa.float64()),
        ("rt", pa.float64()),
        ("read_by", pa.string()),
        ("text", pa.string()),
    ]
)
"""Columns of the table; null where a protocol or a recording does not have one."""
TRUTH = {"stimulus": "id", "label": "label", "shape": "shape", "texture": "texture"}
TRUTH |= {"image": "image", "shape_source": "shape_source", "texture_source": "texture_source"}
"""Column → the field of the stimulus that it holds."""
ENDINGS = (".parquet", ".csv")


class Written(NamedTuple):
    """What was written: the file, the number of rows, and stimuli without a row, by reason."""

    file: Path
    rows: int
    without: Mapping[str, int]


@dataclass(frozen=True)
class Trials:
    """The trials of a run, read when they are asked for.

    Parameters
    ----------
    run : path
        The run folder.
    protocols, observers : sequences of str
        Only these; empty: all.

    Examples
    --------
    >>> trials = cuebench.load("runs/first").trials("cue_conflict")          # doctest: +SKIP
    >>> trials.to_pandas().groupby(["observer", "outcome"]).size()           # doctest: +SKIP
    """

    run: Path
    protocols: tuple[str, ...] = ()
    observers: tuple[str, ...] = ()
    without: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    """Stimuli without a row that the last reading met, by reason."""

    def parts(self) -> Iterator[pa.Table]:
        """Yield the table a part at a time: one stored file of answers, or one observer where a row needs them all."""
        self.without.clear()
        answers = StoredAnswers(self.run)
        for job in answers.jobs(self.protocols, self.observers):
            protocol: Protocol = protocols.get(job.protocol)
            options = answers.options(job.protocol)
            whole = protocol.trials.whole
            for responses in [answers.whole(job, condensed=False)] if whole else answers.by_shard(job):
                self.without["unreadable"] += len(responses.excluded)
                for rows in protocol.trials.rows(responses, options) if len(responses) else ():
                    if len(rows.rows):
                        yield _table(job, responses, rows)

    def table(self) -> pa.Table:
        """Return the whole table as a ``pyarrow.Table``."""
        return pa.concat_tables([SCHEMA.empty_table(), *self.parts()])

    def to_pandas(self) -> Any:
        """Return the whole table as a ``pandas.DataFrame``."""
        import_optional("pandas", "Trials.to_pandas", "take the pyarrow table: trials.table()")
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """Return the whole table as a ``polars.DataFrame``."""
        polars = import_optional("polars", "Trials.to_polars", "take the pyarrow table: trials.table()")
        return polars.from_arrow(self.table())

    def count(self) -> list[dict[str, Any]]:
        """Return a row for each protocol, observer and condition: rows, share of correct answers, outcomes."""
        rows: Counter[tuple[str, ...]] = Counter()
        judged: Counter[tuple[str, ...]] = Counter()
        right: Counter[tuple[str, ...]] = Counter()
        outcomes: dict[tuple[str, ...], Counter[str]] = {}
        keys = ("protocol", "observer", "condition")
        for part in self.parts():
            wanted = part.select([*keys, "correct", "outcome"])
            # Few rows of the counted table stand for many trials. No threads: see files.arrow_source.
            counted = wanted.group_by(wanted.column_names, use_threads=False).aggregate([([], "count_all")])
            for row in counted.to_pylist():
                key, number = tuple(str(row[k]) for k in keys), row["count_all"]
                rows[key] += number
                judged[key] += number * (row["correct"] is not None)
                right[key] += number * bool(row["correct"])
                if row["outcome"]:
                    outcomes.setdefault(key, Counter())[row["outcome"]] += number
        return [
            {
                **dict(zip(keys, key)),
                "rows": number,
                "correct": right[key] / judged[key] if judged[key] else None,
                "outcomes": dict(outcomes.get(key, {})),
            }
            for key, number in rows.items()
        ]

    def write(self, path: str | Path) -> Written:
        """Write the table to a Parquet or CSV file, a part at a time; a reader sees the whole file or the old one.

        Raises
        ------
        UserError
            For another ending, and where the disk is full.
        """
        target = Path(path).expanduser()
        ending = ending_of(target, ".csv")
        if ending not in ENDINGS:
            raise UserError(f"the format of {target} is not known", f"end it in {' or '.join(ENDINGS)}")
        count = 0
        with replacing(target) as temporary, _writer(temporary, ending) as writer:
            for part in self.parts():
                writer.write_table(_without_formulas(part) if ending == ".csv" else part)
                count += len(part)
        return Written(target, count, {why: number for why, number in self.without.items() if number})

    def __repr__(self) -> str:
        chosen = ", ".join((*self.protocols, *self.observers)) or "all protocols and observers"
        return f"<Trials of {chosen} in {self.run}: .table(), .to_pandas(), .to_polars(), .write(FILE)>"


def _without_formulas(table: pa.Table) -> pa.Table:
    """Return a table whose texts are no formulas to a spreadsheet."""
    for number, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            texts = table.column(number).combine_chunks().dictionary_encode()
            plain = pa.array([written_cell(text) or None for text in texts.dictionary.to_pylist()], column.type)
            table = table.set_column(number, column, plain.take(texts.indices))
    return table


def _writer(path: Path, ending: str) -> Any:
    if ending == ".csv":
        from pyarrow import csv

        return csv.CSVWriter(path, SCHEMA)
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, SCHEMA, compression="zstd")


def _table(job: JobRecord, responses: Responses, rows: TrialRows) -> pa.Table:
    """Return some rows as a table: what the protocol measured beside what is known of every answer."""
    unknown = sorted(set(rows.columns) - set(MEASURED))
    if unknown:
        hint = f"possible: {', '.join(MEASURED)}"
        raise UserError(f"protocol {job.protocol!r} gives trials the columns {', '.join(unknown)}", hint)
    number = len(rows.rows)
    stimuli = responses.stimuli.stimuli
    shown = [stimuli[i] for i in responses.stimulus[rows.rows]]
    condition = [rows.condition] * number if isinstance(rows.condition, str) else rows.condition
    columns: dict[str, Any] = {
        "protocol": [job.protocol] * number,
        "observer": [job.observer] * number,
        "kind": [job.kind] * number,
        "person": _recorded(responses, "subject", rows.rows),
        "session": _recorded(responses, "session", rows.rows),
        "condition": condition,
        "rt": _recorded(responses, "rt", rows.rows),
        "read_by": _recorded(responses, "read_by", rows.rows),
        "text": _recorded(responses, "text", rows.rows),
        **{column: [getattr(s, name) for s in shown] for column, name in TRUTH.items()},
        "n": np.ones(number),
        **rows.columns,
    }
    if columns["person"] is None and responses.kind == "person":
        columns["person"] = [job.observer] * number
    arrays = [_array(columns.get(name), kind, number) for name, kind in zip(SCHEMA.names, SCHEMA.types)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _recorded(responses: Responses, name: str, rows: Array) -> Array | None:
    column = responses.columns.get(name)
    return None if column is None else column[rows]


def _array(values: Array | Sequence[Any] | None, kind: pa.DataType, number: int) -> pa.Array:
    """Return a column; empty texts and NaN are null."""
    if values is None:
        return pa.nulls(number, kind)
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if pa.types.is_string(kind):
        plain = [str(v).encode("utf-8", "backslashreplace").decode() if v != "" else None for v in plain]
    elif pa.types.is_floating(kind):
        plain = [None if v != v else float(v) for v in plain]
    return pa.array(plain, kind)
