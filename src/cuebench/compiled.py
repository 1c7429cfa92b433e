"""Functions that Numba compiles. The machine code is kept on disk, where there is a place to keep it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, **options: Any) -> F:
    """Return a function that is compiled when it is first called.

    Parameters
    ----------
    function : callable
        Of a file of cuebench.
    **options
        Of ``numba.njit``.
    """
    import numba

    if not numba.config.CACHE_DIR and (folder := kept_in(Path(function.__code__.co_filename).parent)):
        numba.config.CACHE_DIR = str(folder)  # pragma: no cover - read-only installs
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nothing can be written anywhere: every process compiles it anew
        return numba.njit(**options)(function)


def kept_in(package: Path) -> Path | None:
    """Return None if Numba can write beside the package's files, otherwise the user's cache folder, or a new one.

    A shared name under /tmp would let others plant machine code there, so the last resort is a new private folder.
    """
    beside = package / "__pycache__"
    if os.access(beside if beside.exists() else package, os.W_OK):
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuebench" / "numba"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _private()
    return cache if os.access(cache, os.W_OK) else _private()


def _private() -> Path | None:
    try:
        return Path(tempfile.mkdtemp(prefix="cuebench-numba-"))
    except OSError:
        return None
