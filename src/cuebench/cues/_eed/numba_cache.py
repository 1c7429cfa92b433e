"""Folder of compiled kernels, where the folder of the package cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def fallback(package: Path) -> Path | None:
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
        return Path(tempfile.mkdtemp(prefix="cuebench-numba-"))
    return cache if os.access(cache, os.W_OK) else Path(tempfile.mkdtemp(prefix="cuebench-numba-"))
