"""Checks of a file's structure, where its hash is not known: each returns a problem, or "" where there is none."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

Check = Callable[[Path], str]
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(width: int = 0, height: int = 0) -> Check:
    """Return a check for a complete PNG of this size (0: any): signature, chunk checksums, IEND as the last chunk."""

    def check(path: Path) -> str:
        data = path.read_bytes()
        problem = _png_problem(data)
        size = (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
        fits = size == (width, height) or not (width or height)
        return problem or ("" if fits else f"{size[0]}×{size[1]} pixels, expected {width}×{height}")

    return check


def _png_problem(data: bytes) -> str:
    if not data.startswith(_SIGNATURE):
        return "not a PNG file"
    at, last = len(_SIGNATURE), b""
    while at + 12 <= len(data):
        length, last = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + length
        if zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            return f"a PNG with a damaged or cut chunk {last.decode('latin-1')!r}"
        at = end
    return "" if last == b"IEND" and at == len(data) else "a PNG without its end"


def table(columns: Sequence[str], rows: int) -> Check:
    """Return a check for a CSV with exactly these columns and this number of rows."""

    def check(path: Path) -> str:
        try:
            with path.open(newline="", encoding="utf-8") as file:
                lines = list(csv.reader(file))
        except (UnicodeDecodeError, csv.Error) as error:
            return f"not a CSV in UTF-8: {error}"
        if not lines or lines[0] != list(columns):
            return f"columns {lines[0] if lines else []}, expected {list(columns)}"
        ragged = sum(len(row) != len(columns) for row in lines)
        if ragged:
            return f"{ragged} rows have another number of columns than the header"
        return "" if len(lines) == rows + 1 else f"{len(lines) - 1} rows, expected {rows}"

    return check


def archive(least: int, classes: int) -> Check:
    """Return a check for a zip or tar with at least so many pictures in exactly so many folders of classes."""

    def check(path: Path) -> str:
        from cuebench.errors import UserError
        from cuebench.stimuli.archive import picture_folders

        try:
            folders = picture_folders(path)
        except UserError as error:
            return error.message
        number = sum(folders.values())
        if number < least or len(folders) != classes:
            return f"{number:,} pictures in {len(folders)} folders, expected {least:,} or more in {classes}"
        return ""

    return check


def looks_like_html(start: bytes) -> bool:
    """Tell whether the first bytes of a file are those of a web page."""
    head = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype", b"<html", b"<head", b"<?xml"))
