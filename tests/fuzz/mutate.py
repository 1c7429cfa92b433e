"""Change files at random, by a seed: their bytes, or their structure; then repair the checksums that would hide it.

Bytes: bits, cuts, repeats, insertions, words that readers know. Structure: values, keys, columns and rows of a file
that stays valid JSON, CSV or Parquet. A reader that compares a checksum first would refuse nearly all of it at its
door, so ``checksums.py`` computes them anew for three of four inputs.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
import tomllib
import warnings
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cuebench.files import parquet_bytes

WORDS = {
    "csv": (b",", b'"', b"\n", b"\r", b";", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3\xa9", b"nan", b"inf",
            b"1e999", b"id,", b"logit_0", b"logit_00", b"prob_1", b"cat", b"Cat", b"1_0", b"-1", b"../", b"/etc/passwd",
            b"\x1b[2J", b" ", b"''", b'""', b"\xe2\x80\xae", b"file:", b"x" * 70_000, b"9" * 5_000),
    "json": (b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"9" * 5_000,
             b"[" * 3_000, b'{"a":' * 2_000, b"[" * 970 + b"]" * 970, b'"targets"', b'"cat"', b'"ids"', b"-1",
             b"0.5", b"\\ud800", b"\xff", b"\0", b"{}", b"[]", b'""', b"\x1b[2J", b'"format": 1', b'"format": 99'),
    "text": (b"?", b"&", b"=", b";", b":", b"/", b"..", b"%00", b"%ff", b"\xff", b"\0", b"nan", b"inf", b"1e999",
             b"~no",
             b"python:", b"file:", b"black:", b"@", b"{class}", b"[" * 3_000, b"x" * 9_000, b"\xe2\x80\xae", b"-",
             b" "),
    "bytes": (b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"IHDR", b"IDAT", b"PK\x03\x04", b"PAR1",
              b"%!PS", b"\x01", b"\0\0\0\x01", b"GIF89a", b"../", b"\xff\xd8\xff\xe0"),
}  # fmt: skip
"""Kind of reader → words that are inserted."""
WORDS["parquet"] = WORDS["zip"] = WORDS["bytes"]
WORDS["lines"] = WORDS["json"]
WORDS["toml"] = (b"=", b"[", b"]", b"[[", b"]]", b"{", b"}", b'"', b"'", b'"""', b"#", b".", b"\n", b"true", b"nan",
                 b"-inf", b"1979-05-27", b"07:32:00", b"0x1f", b"1_0", b"9" * 5_000, b"[" * 3_000, b"a." * 3_000,
                 b"\0", b"\xff", b"\\u0000", b"-1", b"1e999", b"../", b"\x1b[2J", b"python:x.py:A")  # fmt: skip
WORDS["http"] = (*WORDS["json"], b"\r\n", b"POST ", b"GET ", b"Content-Length: ", b"Authorization: Bearer ",
                 b"%00", b"%2e%2e/", b"?", b"/", b"Content-Type: text/plain\n", b"p0001", b"admin")  # fmt: skip
TEXTS = ("", "cat", "Cat", "dog", "a", "nan", "inf", "-1", "0", "1e999", "../x", "/x", "C:\\x", "\x1b[2J", "na", "1_0",
         "\ud800", "\0", "é" * 300)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 0.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**63, 2**64, -(2**63), 10**400)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 _-./:?&=;,\"'\\\n\t\u202e\u2028é漢🐱\x7f"


def changed(data: bytes, reader: Any, generator: random.Random) -> bytes:
    """Return a changed input for a reader: by bytes or by structure, mostly with checksums that fit."""
    change = restructured if generator.random() < 0.4 else mutated
    result = change(data, reader.kind, generator)
    return reader.seal(result) if reader.seal is not None and generator.random() < 0.75 else result


# ----------------------------------------------------------------------------------------------------------- by bytes


def mutated(data: bytes, kind: str, generator: random.Random) -> bytes:
    """Return changed bytes; one to eight changes, each small."""
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        at = generator.randrange(len(changed) + 1)
        choice = generator.randrange(8)
        if choice == 0 and changed:
            changed[at % len(changed)] ^= 1 << generator.randrange(8)
        elif choice == 1 and changed:
            changed[at % len(changed)] = generator.randrange(256)
        elif choice == 2:
            del changed[at:]
        elif choice == 3:
            del changed[at : at + generator.randrange(1, 20)]
        elif choice == 4:
            start = generator.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + generator.randrange(1, 60)]
        elif choice == 5 and len(changed) >= 4:
            at = generator.randrange(len(changed) - 3)
            order = generator.choice(("big", "little"))
            changed[at : at + 4] = generator.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 65536, 20_000)).to_bytes(4, order)
        else:
            word = generator.choice(WORDS[kind])
            end = at + (len(word) if generator.random() < 0.5 else 0)
            changed[at:end] = word
    return bytes(changed)


# ------------------------------------------------------------------------------------------------------- by structure


def restructured(data: bytes, kind: str, generator: random.Random) -> bytes:
    """Return a file of the same format with another content; changed bytes where the format is lost or has no form."""
    try:
        return _STRUCTURES[kind](data, generator)
    except (
        KeyError,
        ValueError,
        RecursionError,
        csv.Error,
        pa.ArrowException,
        OSError,
        OverflowError,
        MemoryError,
        IndexError,
        zipfile.BadZipFile,
        NotImplementedError,
    ):
        return mutated(data, kind, generator)


def any_text(generator: random.Random) -> str:
    """Return a text that a reader may not expect."""
    if generator.random() < 0.7:
        return generator.choice(TEXTS)
    return "".join(generator.choice(_LETTERS) for _ in range(generator.randrange(9)))


def any_value(generator: random.Random, depth: int = 2) -> Any:
    """Return a value of JSON that a reader may not expect."""
    choice = generator.randrange(8 if depth else 5)
    if choice < 2:
        return generator.choice((None, True, False, {}, []))
    if choice < 4:
        return any_text(generator)
    if choice == 4:
        return generator.choice(NUMBERS)
    count = generator.randrange(1, 4)
    if choice == 5:
        return {any_text(generator): any_value(generator, depth - 1) for _ in range(count)}
    return [any_value(generator, depth - 1) for _ in range(count)]


def other_value(value: Any, others: list[Any], generator: random.Random) -> Any:
    """Return another value of the same type: one of others, or one that a reader may not expect."""
    if isinstance(value, list) and value:
        at = generator.randrange(len(value))
        changed = other_value(value[at], value, generator)
        return generator.choice(([*value[:at], changed, *value[at + 1 :]], value[:at], value + value, value[::-1]))
    if others and generator.random() < 0.3:
        return generator.choice(others)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return generator.choice((0, 1, -1, 2, value + 1, -value, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63)))
    if isinstance(value, float):
        return generator.choice((0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -value, 5e-324, 1e308, math.inf, -math.inf, math.nan))
    if isinstance(value, str):
        return generator.choice((any_text(generator), value + value, value[1:], value.swapcase(), f"{value} "))
    return None


def _paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(deeper for key, value in inner for deeper in _paths(value, (*path, key)))]


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def _changed_document(data: Any, generator: random.Random) -> Any:
    """Replace, remove, rename, exchange or repeat values of a document, one to three times."""
    for _ in range(generator.choice((1, 1, 2, 3))):
        paths = _paths(data)
        path = generator.choice(paths)
        if not path:
            data = any_value(generator) if generator.random() < 0.3 else data
            continue
        parent, key = _at(data, path[:-1]), path[-1]
        choice = generator.randrange(8)
        if choice == 0:
            del parent[key]
        elif choice > 5 and not isinstance(parent[key], (dict, list, type(None))):
            parent[key] = other_value(parent[key], [], generator)
        elif choice == 1 and isinstance(parent, dict):
            parent[any_text(generator)] = parent.pop(key) if generator.random() < 0.5 else any_value(generator)
        elif choice == 2:  # a copy: what is shared could contain itself
            parent[key] = json.loads(json.dumps(_at(data, generator.choice(paths))))
        elif choice == 3 and isinstance(parent, list):
            parent.insert(key, json.loads(json.dumps(parent[key])))
        else:
            parent[key] = any_value(generator)
    return data


def _document(data: bytes, generator: random.Random) -> bytes:
    text = json.dumps(_changed_document(json.loads(data), generator))
    if generator.random() < 0.1 and text.startswith("{") and len(text) > 2:
        text = text[:-1] + "," + text[1:]  # every key twice
    return text.encode("utf-8", "replace")


def _other_cell(cell: str, rows: list[list[str]], generator: random.Random) -> str:
    """Return another text for a cell of a CSV: any, one of another cell, or another number for a number."""
    if generator.random() < 0.4:
        return any_text(generator)
    numeric = re.fullmatch(r"-?\d+(\.\d+)?", cell)
    value: Any = cell if numeric is None else float(cell) if numeric[1] else int(cell)
    return str(other_value(value, [text for row in rows for text in row], generator))


def _table(data: bytes, generator: random.Random) -> bytes:
    """Drop, repeat, rename and add columns and rows, and change cells; sometimes another separator or encoding."""
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    for _ in range(generator.choice((1, 1, 2, 3))):
        choice, row = generator.randrange(8), generator.randrange(len(rows))
        column = generator.randrange(len(rows[row]) or 1)
        if choice == 0:
            rows.insert(row, list(rows[generator.randrange(len(rows))]))
        elif choice == 1 and len(rows) > 1:
            del rows[row]
        elif choice == 2:  # a column, in all rows
            rows = [cells[:column] + cells[column + 1 :] for cells in rows]
        elif choice == 3:
            rows = [cells[: column + 1] + cells[column:] for cells in rows]
        elif choice == 4:
            name = generator.choice(("extra", "logit_00", "Cat", "id", "recipe", "path", "seed", any_text(generator)))
            rows = [[*cells, any_text(generator) if i else name] for i, cells in enumerate(rows)]
        elif rows[row]:
            rows[row][column] = _other_cell(rows[row][column], rows, generator)
    text = io.StringIO()
    ends = generator.choice(("\n", "\r\n"))
    csv.writer(text, delimiter=generator.choice(",,,,,,,;\t"), lineterminator=ends).writerows(rows)
    return text.getvalue().encode(generator.choice(("utf-8",) * 6 + ("utf-8-sig", "latin-1", "utf-16")), "replace")


def _words(data: bytes, generator: random.Random) -> bytes:
    """Mix the parts of a text of the command line with others."""
    text = data.decode()
    for sign in "?=&;:":
        text = text.replace(sign, f"\0{sign}\0")
    parts = text.split("\0")
    for _ in range(generator.choice((1, 1, 2, 3))):
        at = generator.randrange(len(parts) + 1)
        choice = generator.randrange(3)
        if choice == 0:
            parts.insert(at, generator.choice(parts))
        elif choice == 1 and len(parts) > 1:
            del parts[at % len(parts)]
        else:
            parts.insert(at, generator.choice((*"?&=;:@", any_text(generator))))
    return "".join(parts).encode("utf-8", "replace")


_TYPES = (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.float64()), pa.binary(), pa.null(),
          pa.large_string(), pa.int8(), pa.timestamp("us"), pa.dictionary(pa.int32(), pa.string()),
          pa.struct([("a", pa.int64())]), pa.float32(), pa.uint64(), pa.list_(pa.float32(), 3))  # fmt: skip


def _column(length: int, generator: random.Random) -> pa.Array:
    """Return a column of a type that nobody expects: empty values, or zeros."""
    kind = generator.choice(_TYPES)
    empty = pa.nulls(length, kind)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        number = generator.choice((0, 1, 100, None) if pa.types.is_integer(kind) else (0.0, float("nan"), 1e30, None))
        return pa.array([number] * length, kind)
    if pa.types.is_string(kind):
        return pa.array([any_text(generator).encode("utf-8", "replace").decode() for _ in range(length)])
    return empty


def _with_other_cells(column: pa.ChunkedArray, generator: random.Random) -> pa.ChunkedArray:
    """Return the column with some cells changed, its type as it is; unchanged where they do not fit into it."""
    values = column.to_pylist()
    for _ in range(generator.choice((1, 1, 2, len(values)))):
        at = generator.randrange(len(values))
        other = other_value(values[at], values, generator)
        values[at] = other.encode("utf-8", "replace").decode() if isinstance(other, str) else other
    try:
        return pa.chunked_array([pa.array(values, column.type)])
    except (pa.ArrowInvalid, OverflowError):  # of 2**63 - 1, which is no int32
        return column


def _parquet(data: bytes, generator: random.Random) -> bytes:
    """Drop, rename, repeat, retype and reorder columns, rows, cells and metadata of a Parquet file."""
    table = pq.read_table(pa.BufferReader(data), use_threads=False)
    for _ in range(generator.choice((1, 1, 2, 3))):
        choice = generator.randrange(12)
        names = table.column_names
        at = generator.randrange(len(names) or 1)
        metadata = dict(table.schema.metadata or {})
        keys = [key for key, value in metadata.items() if value[:1] in (b"{", b"[")]
        if choice == 0 and keys:
            key = generator.choice(keys)
            metadata[key] = mutated(metadata[key], "json", generator)
            table = table.replace_schema_metadata(metadata)
        elif choice in (1, 2) and keys:
            key = generator.choice(keys)
            metadata[key] = _document(metadata[key], generator)
            table = table.replace_schema_metadata(metadata)
        elif choice == 3 and names:
            table = table.remove_column(at)
        elif choice == 4 and names:
            new = any_text(generator).encode("utf-8", "replace").decode()
            table = table.rename_columns([new if i == at else name for i, name in enumerate(names)])
        elif choice == 5:
            table = table.slice(0, generator.randrange(table.num_rows + 1))
        elif choice > 7 and names and table.num_rows:
            table = table.set_column(at, table.schema.field(at), _with_other_cells(table.column(at), generator))
        elif choice == 6 and table.num_rows:
            table = pa.concat_tables([table, table.slice(generator.randrange(table.num_rows))])
        elif names:
            table = table.set_column(at, names[at], _column(table.num_rows, generator))
    return parquet_bytes(table, use_dictionary=generator.random() < 0.5)


def _settings(data: bytes, generator: random.Random) -> bytes:
    """Change the values of a TOML file; it is written with inline tables."""
    changed = _changed_document(tomllib.loads(data.decode()), generator)
    if not isinstance(changed, dict):
        changed = {any_text(generator): changed}
    lines = [f"{_quoted(str(key))} = {_toml(value)}" for key, value in changed.items() if value is not None]
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(str(k))} = {_toml(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value if item is not None) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return (
        _quoted(value) if isinstance(value, str) else str(value) if not isinstance(value, bool) else str(value).lower()
    )


def _lines(data: bytes, generator: random.Random) -> bytes:
    """Change, drop, repeat and exchange lines that hold a checksum, a space and a JSON document each."""
    lines = data.split(b"\n")
    at = generator.randrange(len(lines))
    choice = generator.randrange(6)
    if choice == 0:
        del lines[at]
    elif choice == 1:
        lines.insert(at, generator.choice(lines))
    else:
        mark, _, body = lines[at].partition(b" ")
        lines[at] = mark + b" " + _document(body, generator)
    return b"\n".join(lines)


def _request(data: bytes, generator: random.Random) -> bytes:
    """Change the document of a request, or the words of its head."""
    head, _, body = data.partition(b"\n\n")
    if body and generator.random() < 0.8:
        return head + b"\n\n" + _document(body, generator)
    return _words(head, generator) + b"\n\n" + body


_NAMES = ("../x", "/x", "a/../../x", "run.json", "entry.json", "a\0b", "é", "x/" * 300, "C:/x", "CON", "a\\b", ".", "")


def _zip(data: bytes, generator: random.Random) -> bytes:
    """Drop, rename, repeat, link and change the members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        members = [(info.filename, packed.read(info), 0) for info in packed.infolist()]
    for _ in range(generator.choice((1, 1, 2))):
        at = generator.randrange(len(members))
        name, content, mode = members[at]
        choice = generator.randrange(6)
        if choice == 0:
            del members[at]
        elif choice == 1:
            members[at] = generator.choice((*_NAMES, any_text(generator))), content, mode
        elif choice == 2:
            members.append(members[at])
        elif choice == 3:
            members[at] = name, generator.choice((b"/etc/passwd", b"../x", b"run.json")), 0o120777 << 16
        elif name.endswith(".json"):
            members[at] = name, _document(content, generator), mode
        else:
            members[at] = name, mutated(content, "bytes", generator), mode
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as packed:
        warnings.simplefilter("ignore")  # a name that occurs twice is what is wanted
        for name, content, mode in members:
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            info.external_attr = mode
            packed.writestr(info, content)
    return buffer.getvalue()


_STRUCTURES = {"json": _document, "csv": _table, "text": _words, "parquet": _parquet, "toml": _settings,
               "lines": _lines, "http": _request, "zip": _zip}  # fmt: skip
STRUCTURED = frozenset(_STRUCTURES)
"""Kinds of reader whose files have a structure that can be changed."""
