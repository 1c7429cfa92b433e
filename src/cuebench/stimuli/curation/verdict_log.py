"""The log of a judge's verdicts: one CSV for each judge, to which lines are only ever added.

``time,judge,cue,verdict,reason``; the last line about a cue counts, and ``undo`` takes the verdict back. A line is
written in one piece and synced to the disk before it is acknowledged, so that killing the process loses nothing that a
judge has seen confirmed. A line that was cut short (a full disk, a power failure) has no end and is left out.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cuebench.csv_text import csv_text, read_cell
from cuebench.errors import UserError
from cuebench.files import disk_errors, make_folder
from cuebench.reading import read_bytes

COLUMNS = ("time", "judge", "cue", "verdict", "reason")
KEEP, REJECT, UNDO = "keep", "reject", "undo"
FOLDER = "verdicts"
"""Folder of the logs below the folder of a set."""
_JUDGE = re.compile(r"[^\W_][\w-]{0,39}")
LONGEST = 200
"""Most characters of a reason."""


class Verdict(NamedTuple):
    """What a judge has decided about a cue, and why."""

    verdict: str
    reason: str = ""


def checked_judge(name: str) -> str:
    """Return the name of a judge; refuse one that is no file name.

    >>> checked_judge(" Müller-2 ")
    'Müller-2'
    """
    plain = name.strip()
    if not _JUDGE.fullmatch(plain):
        raise UserError(f"judge {name!r}: use up to 40 letters, digits, - and _", "for example a first name")
    return plain


class VerdictLog:
    """The verdicts of one judge, in the order in which they were given."""

    def __init__(self, folder: Path, judge: str) -> None:
        self.judge = checked_judge(judge)
        self.path = folder / f"{self.judge}.csv"

    def read(self) -> dict[str, Verdict]:
        """Return cue → the verdict that counts, the most recent one last."""
        verdicts: dict[str, Verdict] = {}
        for row in self._rows():
            verdicts.pop(row["cue"], None)
            if row["verdict"] != UNDO:
                verdicts[row["cue"]] = Verdict(row["verdict"], row["reason"])
        return verdicts

    def add(self, cue: str, verdict: str, reason: str = "") -> None:
        """Add a verdict; it is on the disk when this returns."""
        if verdict not in (KEEP, REJECT):
            raise UserError(f"verdict {verdict!r}; accepted: {KEEP} or {REJECT}")
        self._append(cue, verdict, " ".join(reason.split())[:LONGEST])

    def undo(self) -> str:
        """Take the most recent verdict back and return its cue; empty where there is none."""
        cue = next(reversed(self.read()), "")
        if cue:
            self._append(cue, UNDO, "")
        return cue

    def _rows(self) -> Iterator[dict[str, str]]:
        if not self.path.is_file():
            return
        whole = read_bytes(self.path, "log of verdicts")
        # Line by line: an open quote of a line that was cut short must not swallow the lines after it.
        for line in whole[: whole.rfind(b"\n") + 1].decode(errors="replace").split("\n")[1:]:
            try:
                cells = next(csv.reader([line], strict=True), [])
            except csv.Error:
                continue
            if len(cells) == len(COLUMNS) and cells[3] in (KEEP, REJECT, UNDO):
                yield dict(zip(COLUMNS, map(read_cell, cells)))

    def _append(self, *cells: str) -> None:
        make_folder(self.path.parent)
        with disk_errors(self.path), self.path.open("a+b") as file:
            file.seek(0, os.SEEK_END)
            start = "" if file.tell() else ",".join(COLUMNS) + "\n"
            if file.tell():
                file.seek(-1, os.SEEK_END)
                # A line that was cut short ends here, as a line of its own that no reader takes for a verdict.
                start = "" if file.read(1) == b"\n" else "\n"
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = csv_text(COLUMNS, [[now, self.judge, *cells]]).partition("\n")[2]
            file.write((start + line).encode())
            file.flush()
            os.fsync(file.fileno())


def read_logs(folder: Path) -> dict[str, dict[str, Verdict]]:
    """Return judge → cue → verdict from all logs of a folder.

    Raises
    ------
    UserError
        For a file that is no log.
    """
    logs = {}
    for path in sorted(folder.glob("*.csv")):
        header = read_bytes(path, "log of verdicts").partition(b"\n")[0].decode(errors="replace").strip()
        if header != ",".join(COLUMNS):
            raise UserError(
                f"{path} is no log of verdicts: its columns are {header!r}", f"expected {','.join(COLUMNS)}"
            )
        logs[path.stem] = VerdictLog(folder, path.stem).read()
    return logs
