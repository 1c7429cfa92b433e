"""Write a file completely or not at all, and explain a full disk in words."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from cuebench.errors import UserError

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space, or choose another folder; nothing that was there is lost"),
    errno.EDQUOT: ("your disk quota is used up", "free some space, or choose another folder"),
    errno.EROFS: ("the file system is read-only", "choose a folder that you may write to"),
    errno.EACCES: ("permission denied", "choose a folder that you may write to"),
    errno.EPERM: ("permission denied", "choose a folder that you may write to"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "choose another folder"),
}


def write_error(path: Path, error: OSError) -> UserError:
    """Turn an ``OSError`` of writing ``path`` into an error that says what to do."""
    why, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
    return UserError(f"cannot write {path}: {why}", hint)


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file in the same folder, fsync and rename.

    Parameters
    ----------
    path : Path
        Target; its folder is created. A reader sees the old file or the new one, never half of it.
    data : bytes
        The whole content.

    Raises
    ------
    UserError
        On a full disk or a read-only folder; the temporary file is removed and the old file is untouched.
    """
    # Process and thread in the name: two writers of the same file cannot tear each other's temporary file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        _remove(temporary)
        raise write_error(path, error) from error


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # the folder cannot be written to: then the temporary file was never made
