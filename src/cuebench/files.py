"""Writing files so that a crash, a full disk or a second process never leaves half of one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuebench.errors import UserError

_FREE_SPACE = "free some space and run the same command again: finished work is kept"
_ELSEWHERE = "choose another folder with --out"
_ADVICE = {
    errno.ENOSPC: ("the disk is full", "free some space and run the same command again: finished work is kept"),
    errno.EDQUOT: (
        "your disk quota is used up",
        "free some space and run the same command again: finished work is kept",
    ),
    errno.EROFS: ("the file system is read-only", "choose another folder with --out"),
    errno.EACCES: ("you may not write there", "choose another folder with --out"),
    errno.EPERM: ("you may not write there", "choose another folder with --out"),
    errno.ENOTDIR: ("a part of the path is a file", "choose another folder with --out"),
    errno.EEXIST: ("a file of that name is in the way", "choose another folder with --out"),
}


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the machine loses power."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into an error that says what to do; nothing written before is lost."""
    try:
        yield
    except OSError as error:
        if error.errno not in _ADVICE:
            raise
        what, hint = _ADVICE[error.errno]
        raise UserError(f"cannot write to {path}: {what}", hint) from None


def make_folder(path: Path) -> Path:
    """Make a folder with its parents, and show now, not after hours of work, that it can be written to."""
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable.{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    return path
