"""Hashes of many files on a thread pool (hashlib releases the GIL)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from cuebench.errors import all_problems
from cuebench.files import FileFacts, hash_file

T = TypeVar("T")


def hash_files(paths: Sequence[Path], workers: int = 0) -> list[FileFacts]:
    """Return sha256 and size of many files, in the order of the paths.

    Raises
    ------
    UserError
        Naming every file that cannot be read, not only the first.
    """
    return for_each_file(hash_file, paths, workers)


def for_each_file(do: Callable[[Path], T], paths: Iterable[Path], workers: int = 0) -> list[T]:
    """Apply a function to files on a thread pool; keep the order and report all unreadable files at once."""

    def guarded(path: Path) -> tuple[T | None, str]:
        try:
            return do(path), ""
        except OSError as error:
            return None, f"{path}: {error.strerror or error}"

    with ThreadPoolExecutor(workers or min(16, (os.cpu_count() or 1) + 2)) as pool:
        done = list(pool.map(guarded, paths))
    problems = [why for _, why in done if why]
    if problems:
        raise all_problems("files that cannot be read", problems, "check the paths and your permissions")
    return [value for value, _ in done]  # type: ignore[misc]
