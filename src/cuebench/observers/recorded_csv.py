"""CSV files of recorded answers: large ones quickly, and those of spreadsheets in other languages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from cuebench.errors import UserError, printable
from cuebench.reading import decoded, parse_csv, separator_of

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 64 << 20
"""Most bytes of a row of a CSV."""
SEPARATOR = b"cuebench separator"
"""In the metadata of a table: what separates its columns, where that is not a comma."""
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
        table = pyarrow.csv.read_csv(pa.BufferReader(data), read_options=read, convert_options=text)
    except (pa.ArrowException, ValueError) as error:
        reason = printable(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise UserError(
            f"{file} cannot be read: {reason}", "check that it is complete and separated by commas"
        ) from None
    return table.rename_columns(header)


def _with_point(cell: str) -> str:
    """Return a number with a decimal point: programs that separate columns by semicolons write 0,84."""
    return cell.replace(",", ".") if _COMMA_NUMBER.fullmatch(cell.strip()) else cell
