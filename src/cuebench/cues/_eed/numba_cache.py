"""Where compiled kernels are kept when the package's own folder cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def fallback(package: Path) -> Path | None:
    """Return None if Numba can write beside the package's files, otherwise a folder of the user's, or a fresh one.

    A shared name under /tmp would let others plant machine code there, so the last resort is a new private folder.
    """
    beside = package / "__pycache__"
    if os.access(beside if beside.exists() else package, os.W_OK):
        return None
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuebench" / "numba"
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="cuebench-numba-"))
    return own if os.access(own, os.W_OK) else Path(tempfile.mkdtemp(prefix="cuebench-numba-"))
