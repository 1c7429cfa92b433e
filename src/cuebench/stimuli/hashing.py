"""sha256 and size of many files, streaming, on a thread pool (hashlib releases the GIL)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

from cuebench.errors import all_problems

CHUNK = 1 << 20
T = TypeVar("T")


class FileFacts(NamedTuple):
    """What identifies a file's content."""

    sha256: str
    size: int


def hash_file(path: Path) -> FileFacts:
    """Return sha256 and size in bytes of one file, read in chunks of 1 MiB."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return FileFacts(digest.hexdigest(), size)


def hash_files(paths: Sequence[Path], workers: int = 0) -> list[FileFacts]:
    """Return the facts of many files, in the order given.

    Raises
    ------
    UserError
        Naming every file that cannot be read, not only the first.
    """
    return for_each_file(hash_file, paths, workers)


def for_each_file(do: Callable[[Path], T], paths: Iterable[Path], workers: int = 0) -> list[T]:
    """Apply ``do`` to files on a thread pool, keep the order, report all unreadable files at once."""

    def guarded(path: Path) -> tuple[T | None, str]:
        try:
            return do(path), ""
        except OSError as error:
            return None, f"{path}: {error.strerror or error}"

    with ThreadPoolExecutor(workers or min(8, (os.cpu_count() or 1) + 2)) as pool:
        done = list(pool.map(guarded, paths))
    problems = [why for _, why in done if why]
    if problems:
        raise all_problems("files that cannot be read", problems, "check the paths and your permissions")
    return [value for value, _ in done]  # type: ignore[misc]
