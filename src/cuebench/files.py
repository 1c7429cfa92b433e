"""Write files whole or not at all, even through a crash or with two processes at once; hash files."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import UserError

_FREE_SPACE = "free some space and run the same command again: finished work is kept"
_ELSEWHERE = "choose another folder"
_REASONS = {
    errno.ENOSPC: ("the disk is full", _FREE_SPACE),
    errno.EDQUOT: ("your disk quota is used up", _FREE_SPACE),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("permission denied", _ELSEWHERE),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", _ELSEWHERE),
    errno.EEXIST: ("a file of that name is in the way", _ELSEWHERE),
}


def write_error(path: Path, error: OSError) -> UserError:
    """Return the user error for an ``OSError`` of writing ``path``, with what to do."""
    why, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), _ELSEWHERE))
    return UserError(f"cannot write {path}: {why}", hint)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into a user error with what to do; nothing written before is lost."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REASONS:
            raise
        raise write_error(path, error) from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file through a temporary file in the same folder, fsync and rename; the folder is made if needed.

    A reader sees the old file or the new file, never half of it, even if the machine loses power.

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
        raise write_error(path, error) from error
    finally:
        with suppress(OSError):  # a folder that cannot be written to never got the temporary file
            temporary.unlink(missing_ok=True)


def json_text(data: Any) -> str:
    """Return strict JSON, indented, with a line feed at its end; NaN and infinity become null."""
    return json.dumps(_finite(data), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, data: Any) -> None:
    """Write strict JSON, whole or not at all."""
    write_atomic(path, json_text(data).encode())


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def make_folder(path: Path) -> Path:
    """Make a folder with its parents, and check now, not after hours of work, that it can be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    write_atomic(path / ".writable", b"")
    (path / ".writable").unlink(missing_ok=True)
    return path


class FileFacts(NamedTuple):
    """What identifies a file's content."""

    sha256: str
    size: int


def hash_file(path: Path) -> FileFacts:
    """Return the sha256 and the size in bytes of a file, read in pieces."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileFacts(digest, file.tell())
