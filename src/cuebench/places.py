"""Folders that are not on a disk: object stores and other file systems, through fsspec.

A `RemotePath` has the few methods of ``pathlib.Path`` that the store of answers uses, and writes a file whole or not at
all. An object store does that by itself: an object is there when all of it has arrived. It has no folders, and nothing
is renamed there. On any other file system of fsspec (SFTP, SMB, HDFS …) a file is written under another name and moved.
"""

from __future__ import annotations

import os
import posixpath
import re
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cuebench.errors import MissingExtra, UserError

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_ON_DISK = ("file", "local")
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "obs", "memory"}
"""File systems of fsspec whose files appear whole."""


def place(text: str | Path) -> Path | RemotePath:
    """Return the folder of a path or an address: ``runs/first``, ``file:///data/x``, ``s3://bucket/x``.

    Raises
    ------
    UserError
        For an address of a kind that fsspec does not know, or whose package is not installed.
    """
    if not isinstance(text, str | os.PathLike):
        raise UserError(f"expected a path or an address; got {text!r:.60} ({type(text).__name__})")
    text = os.fspath(text)
    if not _URL.match(text):
        return Path(text).expanduser().absolute()
    protocol, _, rest = text.partition("://")
    if protocol.lower() in _ON_DISK:
        return Path(rest).absolute()
    folder = RemotePath(protocol.lower(), rest.strip("/"))
    if not folder.path:
        raise UserError(f"{text!r} names no folder", f"{protocol}://BUCKET/FOLDER")
    folder.check()
    return folder


class RemotePath:
    """A file or a folder of a file system that fsspec reaches. Credentials come from where fsspec looks for them.

    Parameters
    ----------
    protocol : str
        ``s3``, ``gs``, ``memory`` …
    path : str
        Behind the ``://``.
    """

    def __init__(self, protocol: str, path: str) -> None:
        self.protocol, self.path = protocol, path

    @property
    def name(self) -> str:
        """The last part."""
        return posixpath.basename(self.path)

    @property
    def parent(self) -> RemotePath:
        """The folder that it lies in."""
        return RemotePath(self.protocol, posixpath.dirname(self.path))

    def with_name(self, name: str) -> RemotePath:
        """Return another file of the same folder."""
        return self.parent / name

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(self.protocol, f"{self.path}/{name}")

    def __str__(self) -> str:
        return f"{self.protocol}://{self.path}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: RemotePath) -> bool:
        return str(self) < str(other)

    def is_file(self) -> bool:
        """Tell whether there is such a file."""
        return bool(self._files.isfile(self.path))

    def is_dir(self) -> bool:
        """Tell whether there is such a folder, or anything below it."""
        return bool(self._files.isdir(self.path))

    def is_symlink(self) -> bool:
        """Tell that it is none."""
        return False

    def exists(self) -> bool:
        """Tell whether there is such a file or folder."""
        return bool(self._files.exists(self.path))

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield what lies in this folder."""
        for path in self._files.ls(self.path, detail=False):
            yield self / posixpath.basename(path.rstrip("/"))

    def read_bytes(self) -> bytes:
        """Return the content of the file."""
        try:
            return bytes(self._files.cat_file(self.path))
        except FileNotFoundError:
            raise
        except Exception as error:
            raise _unreachable(self, "read", error) from error

    def write_bytes(self, data: bytes) -> None:
        """Write the file whole or not at all."""
        files = self._files
        try:
            if self.protocol in _OBJECT_STORES:
                files.pipe_file(self.path, data)
                return
            aside = f"{self.parent.path}/.{self.name}.{os.getpid()}.{threading.get_ident()}.tmp"
            files.makedirs(self.parent.path, exist_ok=True)
            files.pipe_file(aside, data)
            files.mv(aside, self.path)
        except Exception as error:
            raise _unreachable(self, "write", error) from error

    def rename(self, target: RemotePath) -> None:
        """Move a folder, file by file: one that is interrupted has lost nothing."""
        for path in list(self.iterdir()):
            self._files.copy(path.path, (target / path.name).path)
        for path in list(self.iterdir()):
            path.unlink()

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the file."""
        try:
            self._files.rm_file(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmdir(self) -> None:
        """Delete the folder, where the file system has folders."""
        if self.protocol not in _OBJECT_STORES:
            self._files.rmdir(self.path)

    def check(self) -> None:
        """Raise a user error where this file system cannot be used from here."""
        self._files.invalidate_cache()
        try:
            self._files.exists(self.path)
        except Exception as error:
            raise _unreachable(self, "reach", error) from error

    @property
    def _files(self) -> Any:
        return _file_system(self.protocol, os.getpid())


@cache
def _file_system(protocol: str, process: int) -> Any:
    """Return the file system, made once in each process: connections do not survive a fork."""
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"a folder at {protocol}://", "store", "fsspec") from None
    try:
        # Others write there too: a listing that was kept would hide what they wrote.
        return fsspec.filesystem(protocol, use_listings_cache=False, skip_instance_cache=protocol != "memory")
    except ImportError as error:
        raise UserError(
            f"{protocol}:// needs another package: {error}", "install it where the run is started"
        ) from None
    except ValueError as error:
        raise UserError(f"{protocol}:// is not known: {error}", "file://, s3://, gs://, az:// …") from None


def _unreachable(path: RemotePath, what: str, error: Exception) -> UserError:
    hint = "check the address, the credentials and the network; then run the same command again: finished work is kept"
    return UserError(f"cannot {what} {path}: {type(error).__name__}: {error}", hint)
