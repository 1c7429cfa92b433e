"""Which inputs each file of a folder was made from, by their hashes: times lie where an older file replaces a source.

The log lies in the folder, one line ``["name", "hash of the inputs"]`` for each finished file. A line is added when a
file is finished, so a killed run knows what it has; at the end the lines are sorted, so the same files give the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cuebench.errors import UserError
from cuebench.files import write_atomic, write_error
from cuebench.reading import file_kind_problem, read_text
from cuebench.stimuli.hashing import hash_files

LOG = ".inputs.jsonl"


class InputLog:
    """The log of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known = self._read()

    def is_current(self, results: Sequence[Path], inputs: Sequence[Path], digest: str) -> bool:
        """Tell whether all results are there and were made from these inputs.

        A result without a line, of an earlier version of cuebench, is current where it is newer than the last change of
        its inputs, which includes that they were put in their place.
        """
        if not digest or not all(path.is_file() for path in results):
            return False
        known = self._known.get(self._name(results[0]))
        if known is not None:
            return known == digest
        changed = (max(facts.st_mtime_ns, facts.st_ctime_ns) for facts in (path.stat() for path in inputs))
        return min(path.stat().st_mtime_ns for path in results) >= max(changed)

    def add(self, result: Path, digest: str) -> None:
        """Note that a file is finished."""
        name = self._name(result)
        if self._known.get(name) == digest:
            return
        self._known[name] = digest
        try:
            with (self.folder / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, digest]) + "\n")
        except OSError as error:
            raise write_error(self.folder / LOG, error) from error

    def finish(self) -> None:
        """Sort the lines."""
        if self._known:
            lines = "".join(json.dumps([name, digest]) + "\n" for name, digest in sorted(self._known.items()))
            write_atomic(self.folder / LOG, lines.encode())

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _read(self) -> dict[str, str]:
        known: dict[str, str] = {}
        if not (self.folder / LOG).is_file():
            return known
        try:
            lines = read_text(self.folder / LOG).splitlines()
        except UserError:
            return known
        for line in lines:
            try:
                name, digest = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue  # a line that was cut when the process was killed: its file is made again, or compared by time
            known[str(name)] = str(digest)
        return known


def digests(inputs: Mapping[Path, Sequence[Path]]) -> dict[Path, str]:
    """Return result → one hash of the contents of all its inputs; empty where one of them cannot be read."""
    files = sorted({path for paths in inputs.values() for path in paths})
    readable = [path for path in files if not file_kind_problem(path)]
    hashes = dict(zip(readable, (facts.sha256 for facts in hash_files(readable))))
    return {result: _joined(hashes.get(path, "") for path in paths) for result, paths in inputs.items()}


def _joined(hashes: Iterable[str]) -> str:
    listed = list(hashes)
    return hashlib.sha256("\n".join(listed).encode()).hexdigest() if all(listed) else ""
