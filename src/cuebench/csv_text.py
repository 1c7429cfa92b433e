"""CSV that cuebench writes: no cell is a formula to a spreadsheet, and reading it gives the same texts again.

A name of a file, an answer or a remark may begin with ``=``: a spreadsheet would calculate it, or open what it names.
Such a text gets an apostrophe before it, as one would type it there; `read_cell` takes the apostrophe off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r\n].", re.DOTALL)
_ESCAPED = re.compile(r"'+[=+\-@\t\r\n].", re.DOTALL)


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV with a header; None and NaN are empty cells.

    >>> csv_text(["file", "n"], [["=1+1.png", -2], ["a.png", None]])
    "file,n\\n'=1+1.png,-2\\na.png,\\n"
    """
    lines = (",".join(_quoted(str(written_cell(value))) for value in row) or '""' for row in (columns, *rows))
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    # csv.writer leaves a carriage return without quotes, which readers take for the end of the line.
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if any(sign in text for sign in ',"\r\n') else text


def written_cell(value: Any) -> Any:
    """Return a value as it is written: a text that a spreadsheet would take for a formula after an apostrophe."""
    if value is None or value != value:
        return ""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) and not is_number(value) else value


def read_cell(text: str) -> str:
    """Return what `written_cell` was given."""
    return text[1:] if _ESCAPED.match(text) else text


def is_number(text: str) -> bool:
    """Tell whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
