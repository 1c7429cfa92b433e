"""CSV files of recorded answers: large ones quickly, and those of spreadsheets in other languages."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cuebench.csv_text import read_cell
from cuebench.errors import UserError, printable
from cuebench.files import arrow_source
from cuebench.reading import decoded, parse_csv, separator_of

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 64 << 20
"""Most bytes of a row of a CSV."""
SEPARATOR = b"cuebench separator"
"""In the metadata of a table: what separates its columns, where that is not a comma."""
_BEGINNING = 1 << 16
"""Characters in which the first lines are looked for."""
_LINE_END = re.compile(r"[\r\n]")
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


def read_csv_bytes(file: Path, data: bytes, *, hint: str) -> pa.Table:
    """Return the cells of a CSV as texts, in columns; separated by commas, semicolons (with 0,84 for 0.84) or tabs."""
    import pyarrow as pa
    import pyarrow.csv

    if not data.strip():
        raise UserError(f"{file} is empty", hint)
    content = decoded(data, str(file))
    separator = separator_of(content)
    _check_row_names(file, content, separator)
    if b'"' in data or separator != ",":
        # Arrow reads on where a quote does not close; the strict reader is slower, and refuses.
        header, rows, _ = parse_csv(content, str(file), hint=hint, separator=separator)
        cell = _with_point if separator == ";" else str
        cells = {column: pa.array([cell(row[column]) for row in rows], pa.string()) for column in header}
        return pa.table(cells, metadata={SEPARATOR: separator})
    header = parse_csv(_LINE_END.split(content, maxsplit=1)[0], str(file), hint=hint).columns
    if not header:
        raise UserError(f"{file}: its first line is empty, not a header", hint)
    # Everything as text first: only then can an error name the line of a bad number. The types are given by position,
    # as column names may repeat, which is reported later.
    names = [f"{position}" for position in range(len(header))]
    text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    read = pyarrow.csv.ReadOptions(column_names=names, skip_rows=1, block_size=BLOCK)
    try:
        table = pyarrow.csv.read_csv(arrow_source(data), read_options=read, convert_options=text)
    except (pa.ArrowException, ValueError) as error:
        reason = printable(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise UserError(
            f"{file} cannot be read: {reason}", "check that it is complete and separated by commas"
        ) from None
    if b"'" in data:
        texts = [pa.array(map(read_cell, column.to_pylist()), pa.string()) for column in table.columns]
        return pa.table(texts, names=header)
    return table.rename_columns(header)


def _check_row_names(file: Path, content: str, separator: str) -> None:
    """Raise where the rows begin with their numbers, and the header has no name for these, as R's write.table does."""
    lines = _LINE_END.split(content[:_BEGINNING])
    lines = [line for line in (lines if len(content) <= _BEGINNING else lines[:-1]) if line][:4]
    header, *rows = list(csv.reader(lines, delimiter=separator)) or [[]]
    counted = [row[0] for row in rows if len(row) == len(header) + 1]
    if rows and counted == [str(number) for number in range(1, len(rows) + 1)]:
        raise UserError(
            f"{file}: its rows have one cell more than the header: their numbers, as R's write.table writes them",
            "write.table(…, row.names=FALSE), or put a name for the first column before the header",
        )


def _with_point(cell: str) -> str:
    """Return a number with a decimal point: programs that separate columns by semicolons write 0,84."""
    return cell.replace(",", ".") if _COMMA_NUMBER.fullmatch(cell.strip()) else cell
