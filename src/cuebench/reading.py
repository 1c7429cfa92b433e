"""Read files that somebody else wrote: everything unclear in them is a user error, nothing is decided silently.

A key, a column or an id that occurs twice is refused, never "the last one counts"; a FIFO or a device is refused before
it can block; a file is never larger in memory than a stated limit.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, NamedTuple

from cuebench.csv_text import read_cell
from cuebench.errors import UserError, all_problems, printable
from cuebench.files import OTHER_ROWS, arrow_source, read_rows, rows_agree

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = 1 << 30
"""Most bytes of a file that is read into memory as a whole."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON writes characters in two halves."""
_QUOTED = re.compile(r'"[^"]*"')
_HEADER = re.compile(r'(?:[^"\r\n]+|"[^"]*")*')
"""The first line of a CSV: within quotes it may hold line ends."""
DEEPEST = 100
"""Most objects and arrays of JSON and TOML that lie in each other."""
MOST_ROWS = 1 << 27
"""Most rows of a Parquet file: a few bytes can claim any number."""
MOST_UNPACKED = 16 << 30
"""Most bytes that a Parquet file may unpack to."""


def file_kind_problem(path: str | Path, *, filled: bool = False) -> str:
    """Return why a path is no file that can be read: missing, a broken link, a folder, a pipe or a device; else "".

    ``filled``: a file without any bytes is a problem, too.
    """
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return "a broken link" if os.path.islink(path) else "no such file"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    if stat.S_ISREG(facts.st_mode):
        return "the file is empty (0 bytes)" if filled and not facts.st_size else ""
    return "a folder, not a file" if stat.S_ISDIR(facts.st_mode) else "a pipe or a device, not a file"


def is_regular(path: Path) -> bool:
    """Tell whether a path is a file that can be read; for any text, however long."""
    return not file_kind_problem(path)


def path_problem(path: str) -> str:
    """Return why a path of a stimulus is refused: it must lie below the root of its set; empty where it does."""
    # On Windows "C:x.png" is no absolute path, and yet not below the set; nor is "\\x.png".
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).drive or PureWindowsPath(path).root:
        return "an absolute path; paths are relative to the set"
    if ".." in PurePosixPath(path).parts or ".." in PureWindowsPath(path).parts:
        return "a path that leads out of the set"
    if "\0" in path:
        return "a path with a null character"
    return "" if PurePosixPath(path).name else "no name of a file"


def user_path(text: str | os.PathLike[str]) -> Path:
    """Return a path with ``~`` expanded; where there is no such home folder, the path as it is written.

    Raises
    ------
    UserError
        For what is no path: a number, None, a list, an empty text.
    """
    if not isinstance(text, str | os.PathLike):
        raise UserError(f"expected a path; got {text!r:.60} ({type(text).__name__})", "a text or a pathlib.Path")
    if text == "":
        raise UserError("a path is empty", "write . for the current folder")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def user_paths(given: Any, *others: type[Any]) -> list[Any]:
    """Return one path, or several, as a list; of ``others``, objects that may stand for a path, as they are."""
    single = isinstance(given, (str, os.PathLike, *others)) or not isinstance(given, Iterable)
    return [item if isinstance(item, others) else user_path(item) for item in ([given] if single else given)]


def read_bytes(path: Path, what: str = "", *, most: int = LARGEST, hint: str = "") -> bytes:
    """Return the bytes of a regular file.

    Parameters
    ----------
    path : Path
        Where it lies.
    what : str
        What it is, as messages say it: ``stimulus CSV``.
    most : int
        A larger file is refused.
    hint : str
        What to do where it cannot be read.
    """
    name = f"{what} {path}".strip()
    try:
        # Without blocking: a pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise UserError(f"{name} does not exist", hint) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}", hint) from None
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise UserError(f"{name} is no regular file", hint)
    with os.fdopen(descriptor, "rb") as file:
        if facts.st_size > most:
            raise UserError(f"{name} has {facts.st_size:,} bytes; at most {most:,} are read", hint)
        try:
            # Not most + 1 at once: Python takes that much memory first, whatever the file holds.
            data = file.read(facts.st_size + 1)
            while len(data) <= most and (more := file.read(1 << 20)):  # it grew meanwhile
                data += more
        except OSError as error:
            raise UserError(f"{name} cannot be read: {error.strerror or error}", hint) from None
    if len(data) > most:
        raise UserError(f"{name} has more than {most:,} bytes", hint)
    return data


def read_text(path: Path, what: str = "", *, hint: str = "") -> str:
    """Return the text of a UTF-8 file, with or without the mark that Excel puts before it."""
    return decoded(read_bytes(path, what, hint=hint), f"{what} {path}".strip())


def decoded(data: bytes, name: str) -> str:
    """Return UTF-8 bytes as text; the error says where they are not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{name} is not UTF-8 text (byte {error.start:,}, line {line:,})", "save it as UTF-8") from None


# ---- JSON ------------------------------------------------------------------------------------------------------------


def read_json(path: Path, what: str = "", *, hint: str = "") -> Any:
    """Return what a JSON file holds; keys that occur twice, too deep nesting and anything but JSON are refused."""
    return parse_json(read_text(path, what, hint=hint), f"{what} {path}".strip(), hint=hint)


def parse_json(text: str, name: str, *, hint: str = "") -> Any:
    """Return what a JSON text holds; see ``read_json``."""

    def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        known = dict(pairs)
        if len(known) < len(pairs):
            key, count = Counter(key for key, _ in pairs).most_common(1)[0]
            message = f"{name}: the key {printable(key)!r} occurs {count} times in one object"
            raise UserError(message, "keep one of them; which one counts is not for us to guess")
        return known

    try:
        parsed = json.loads(text, object_pairs_hook=without_repeats)
        if _HALF.search(text):  # Python reads half of a character, and nothing can write it again
            json.dumps(parsed, ensure_ascii=False).encode()
        _check_depth(parsed)
        return parsed
    except UnicodeEncodeError:
        raise UserError(f"{name} holds half of a character (a lone surrogate)", hint) from None
    except RecursionError:
        raise UserError(f"{name} is nested too deeply to be read", hint) from None
    except ValueError as error:
        raise UserError(f"{name} is not valid JSON: {error}", hint) from None


def _check_depth(data: Any) -> None:
    """Raise ``RecursionError`` where so much lies in each other that a message about it could not be written."""
    depth, level = 0, [data]
    while level:
        depth += 1
        if depth > DEEPEST:
            raise RecursionError
        inner = (d.values() if isinstance(d, dict) else d for d in level if isinstance(d, (dict, list)))
        level = [value for values in inner for value in values if isinstance(value, (dict, list))]


# ---- TOML ------------------------------------------------------------------------------------------------------------


def read_toml(path: Path, what: str = "", *, hint: str = "") -> dict[str, Any]:
    """Return what a TOML file holds; anything but TOML is refused."""
    return parse_toml(read_text(path, what, hint=hint), f"{what} {path}".strip(), hint=hint)


def parse_toml(text: str, name: str, *, hint: str = "") -> dict[str, Any]:
    """Return what a TOML text holds; too deep nesting is refused, also by keys such as ``a.a.a``."""
    try:
        parsed = tomllib.loads(text)
        _check_depth(parsed)
        return parsed
    except RecursionError:
        raise UserError(f"{name} is nested too deeply to be read", hint) from None
    except ValueError as error:  # also numbers with thousands of digits, which are no TOMLDecodeError
        raise UserError(f"{name} is not valid TOML: {error}", hint) from None


# ---- Parquet ---------------------------------------------------------------------------------------------------------


def parse_parquet(data: bytes, name: str, *, hint: str = "") -> pa.Table:
    """Return the table in the bytes of a Parquet file; page checksums are verified where the file has them.

    Raises
    ------
    UserError
        It is damaged, has more than ``MOST_ROWS`` rows, unpacks to more than ``MOST_UNPACKED`` bytes, or names two
        columns alike.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(arrow_source(data), page_checksum_verification=True) as file:
            facts = file.metadata
            if not rows_agree(file):
                raise UserError(f"{name} is damaged: {OTHER_ROWS}", hint)
            if facts.num_rows > MOST_ROWS:
                raise UserError(f"{name} has {facts.num_rows:,} rows; {MOST_ROWS:,} are accepted", hint)
            unpacked = sum(max(facts.row_group(i).total_byte_size, 0) for i in range(facts.num_row_groups))
            if unpacked > MOST_UNPACKED:
                raise UserError(f"{name} unpacks to {unpacked:,} bytes; {MOST_UNPACKED:,} are accepted", hint)
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                repeated = Counter(names).most_common(1)[0][0]
                raise UserError(f"{name}: column {printable(repeated)!r} occurs twice", "rename or remove one of them")
            table = read_rows(file, threads=True)
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{name} cannot be read: {printable(reason)}", hint) from None
    return table


# ---- CSV -------------------------------------------------------------------------------------------------------------


class CsvTable(NamedTuple):
    """A CSV: its columns, its rows as texts, and the line of the file that each row ends on."""

    columns: list[str]
    rows: list[dict[str, str]]
    lines: list[int]


def read_csv(path: Path, what: str = "", *, needed: Iterable[str] = (), hint: str = "") -> CsvTable:
    """Return the rows of a CSV with a header, separated by commas, in UTF-8.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it is, as messages say it.
    needed : iterable of str
        Columns that must be there.
    hint : str
        What to do where the file does not fit.

    Raises
    ------
    UserError
        For a column that occurs twice, rows with more or fewer cells than the header, quotes that do not close, cells
        that are too long, other separators and other encodings.
    """
    return parse_csv(read_text(path, what, hint=hint), f"{what} {path}".strip(), needed=needed, hint=hint)


def separator_of(text: str) -> str:
    """Return what separates the columns of a CSV, by its header: a comma, a semicolon or a tab outside of quotes.

    >>> separator_of('"image, cropped";answer'), separator_of('image,"a;b"')
    (';', ',')
    """
    header = _HEADER.match(text.lstrip("\r\n"))
    marks = _QUOTED.sub("", header.group() if header else "")
    return next((mark for mark in ";\t" if mark in marks and "," not in marks), ",")


def parse_csv(text: str, name: str, *, needed: Iterable[str] = (), hint: str = "", separator: str = ",") -> CsvTable:
    """Return the rows of a CSV text; see ``read_csv``."""
    if "\0" in text:
        raise UserError(f"{name} holds null bytes: it is no text", hint)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    cells, lines = [], []
    try:
        for row in reader:
            if row:
                cells.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise UserError(f"{name} line {reader.line_num}: {error}", hint or "check quotes and commas") from None
    columns = [cell.strip() for cell in cells[0]] if cells else []
    missing = [column for column in needed if column not in columns]
    if len(columns) == 1 and (";" in columns[0] or "\t" in columns[0]):
        other = "semicolons" if ";" in columns[0] else "tabs"
        raise UserError(f"{name} is separated by {other}", "separate its columns by commas")
    repeated = sorted(column for column, count in Counter(columns).items() if count > 1)
    problems = [f"column {column!r} occurs twice" for column in repeated]
    problems += [f"line {line}: wrong number of columns: {len(row)} cells, the header has {len(columns)}"
                 for row, line in zip(cells[1:], lines[1:]) if len(row) != len(columns)]  # fmt: skip
    if missing:
        header_text = ", ".join(columns[:12]) + (" …" if len(columns) > 12 else "")
        problems.append(f"missing column{'s' * (len(missing) > 1)} {', '.join(missing)}; found {header_text or 'none'}")
    if problems:
        raise all_problems(name, problems, hint or "one header, then as many cells in each line, separated by commas")
    return CsvTable(columns, [dict(zip(columns, map(read_cell, row))) for row in cells[1:]], lines[1:])
