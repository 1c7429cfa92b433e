"""The folder of a site, with what an earlier build has found and written: the next one does only what is new."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cuebench._version import __version__
from cuebench.errors import UserError
from cuebench.files import disk_errors, json_bytes
from cuebench.reading import is_regular, path_problem
from cuebench.registry import protocols
from cuebench.reports.board.check import Checked

OWN = ".cuebench-board"
"""Folder inside the site for what need not be published: checked entries, compared pairs, the list of written files."""
FORMAT = 2


class SiteFolder:
    """A folder that a site is written to.

    Parameters
    ----------
    out : Path
        New, empty, or written by an earlier build.

    Raises
    ------
    UserError
        Where it holds something else.
    """

    def __init__(self, out: Path) -> None:
        self.out, self._own = out, out / OWN
        if out.exists() and not self._own.is_dir() and (not out.is_dir() or any(out.iterdir())):
            raise UserError(f"{out} exists and is no board", "choose a new or an empty folder: --out site")
        with disk_errors(out):
            self._own.mkdir(parents=True, exist_ok=True)
        self._written: set[str] = set()
        versions = {name: protocols.get(name).version for name in protocols if name in protocols}
        self._made_with = json.dumps([FORMAT, __version__, versions], sort_keys=True)

    def put(self, name: str, data: bytes) -> None:
        """Write a file of the site, unless it is there with the same content."""
        self._written.add(name)
        _replace(self.out / name, data)

    def finish(self) -> None:
        """Delete the pages that an earlier build wrote and this one did not; files of others are not touched."""
        listing = self._own / "written.json"
        for name in _names(listing) - self._written:
            if is_regular(self.out / name):
                with disk_errors(self.out):
                    (self.out / name).unlink(missing_ok=True)
        _replace(listing, json_bytes(sorted(self._written)))

    def checked(self, sha256: str) -> Checked | None:
        """Return the result of an earlier check of the same files by the same cuebench; None where there is none."""
        remembered = self.remembered("check", [sha256])
        try:
            return Checked.parse(remembered) if remembered is not None else None
        except (KeyError, TypeError, ValueError, AttributeError, UserError):  # damaged: it is checked again
            return None

    def remember_check(self, checked: Checked) -> None:
        """Keep a check for the next build."""
        self.remember("check", [checked.sha256], asdict(checked))

    def remembered(self, what: str, key: list[Any]) -> Any:
        """Return what was kept under a key; None where nothing was, or where it is damaged."""
        try:
            data = json.loads(self._place(what, key).read_bytes())
            return data["value"] if data["key"] == [self._made_with, *key] else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def remember(self, what: str, key: list[Any], value: Any) -> None:
        """Keep a value that follows from the key and from nothing else."""
        _replace(self._place(what, key), json_bytes({"key": [self._made_with, *key], "value": value}))

    def _place(self, what: str, key: list[Any]) -> Path:
        digest = hashlib.sha256(json.dumps([self._made_with, *key]).encode()).hexdigest()[:32]
        return self._own / what / f"{digest}.json"


def _names(listing: Path) -> set[str]:
    """Return the names in a list of files; one that leads out of the site is left out."""
    try:
        names = json.loads(listing.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return set()
    listed = names if isinstance(names, list) else []
    return {name for name in listed if isinstance(name, str) and not path_problem(name)}


def _replace(path: Path, data: bytes) -> None:
    """Write a file as a whole; not synced: a site has thousands of files and is built again in a minute."""
    with disk_errors(path):
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(data)
        os.replace(temporary, path)
