"""Unpack a zip or tar archive without trusting it."""

from __future__ import annotations

import lzma
import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from cuebench.errors import UserError, all_problems, is_printable, printable
from cuebench.files import write_error

LARGEST = 64 << 30  # bytes: more than any published stimulus set; stops a file that unpacks without end


MOST_MEMBERS = 2_000_000
PICTURES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"})
DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    IndexError,
    KeyError,
    struct.error,
    OverflowError,
    MemoryError,  # a header of a few bytes may ask for a dictionary of gigabytes
)
"""What the libraries raise for archives that are damaged, encrypted or packed by a method that they do not know."""
_AGAIN = "fetch it again, or unpack it by hand"


class Member(NamedTuple):
    """An entry of an archive: name, size, what is wrong with its kind, and how to open it."""

    name: str
    size: int
    problem: str
    is_folder: bool
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, target: Path, *, pictures: bool = False) -> int:
    """Unpack ``archive`` into the new folder ``target``; return the number of files.

    With ``pictures``, only picture files are taken, as ``<class>/<file>``: the folders before these two are dropped.

    Everything is checked before a byte is written, the files go to a temporary folder, and one rename makes them
    appear: a folder ``target`` that exists is complete.

    Raises
    ------
    UserError
        For absolute paths, ``..``, links and devices, duplicated names, or a file that is not an archive; all at once.
    """
    # A folder for each process: two that unpack the same archive must not write into each other's.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.unpacking")
    try:
        with _opened(archive) as members:
            _refuse(archive, members)
            if pictures:
                members = _pictures(archive, members)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            files = [m for m in members if not m.is_folder]
            for member in files:
                _write(member, temporary / member.name)
        _publish(temporary, target)
    except OSError as error:
        raise write_error(target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return len(files)


@contextmanager
def _opened(path: Path) -> Iterator[list[Member]]:
    """Open a zip or tar file and list its members; they can be read inside the ``with`` block."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as zipped:
                # The upper bits are the file type of Unix; 0 where the archive does not say.
                yield [
                    Member(
                        info.filename,
                        info.file_size,
                        "" if info.external_attr >> 28 in {0, 0o4, 0o10} else "a link or a device",
                        info.is_dir(),
                        partial(zipped.open, info),
                    )
                    for info in zipped.infolist()
                ]
        else:
            with tarfile.open(path) as tarred:
                yield [
                    Member(
                        info.name,
                        info.size,
                        "" if info.isfile() or info.isdir() else "a link or a device",
                        info.isdir(),
                        partial(tarred.extractfile, info),
                    )
                    for info in tarred
                ]
    except DAMAGED as error:
        reason = printable(str(error)) or type(error).__name__
        raise UserError(f"{path} is neither a zip nor a tar archive, or is damaged: {reason}", _AGAIN) from error


def _refuse(archive: Path, members: list[Member]) -> None:
    seen: set[str] = set()
    problems = []
    for m in members:
        path, problem = PurePosixPath(m.name), m.problem
        if not problem and (path.is_absolute() or set(m.name) & set("\\:\0")):
            problem = "an absolute path or a path of another system"
        elif not problem and ".." in path.parts:
            problem = "leads out of the folder"
        elif not problem and not is_printable(m.name):
            problem = "a name that is not UTF-8 or holds control characters"
        elif not problem and not m.is_folder and not path.parts:
            problem = "a file without a name"
        elif not problem and not m.is_folder and m.name.casefold() in seen:
            problem = "occurs twice"
        seen |= set() if m.is_folder else {m.name.casefold()}
        problems += [f"{m.name!r}: {problem}"] if problem else []
    if any(m.size < 0 for m in members) or sum(m.size for m in members) > LARGEST:
        problems.append(f"unpacks to more than {LARGEST >> 30} GiB")
    if len(members) > MOST_MEMBERS:
        problems.append(f"has more than {MOST_MEMBERS:,} members")
    if problems:
        raise all_problems(f"archive {archive} is refused", problems, "nothing was unpacked")


def picture_folders(archive: Path) -> dict[str, int]:
    """Return class folder → number of its pictures in an archive; nothing is unpacked."""
    with _opened(archive) as members:
        _refuse(archive, members)
        return dict(Counter(PurePosixPath(m.name).parent.as_posix() for m in _pictures(archive, members)))


def _pictures(archive: Path, members: list[Member]) -> list[Member]:
    """Return the pictures of an archive under the names of their class and their file."""
    pictures = []
    for member in members:
        path = PurePosixPath(member.name)
        hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
        if path.suffix.lower() in PICTURES and len(path.parts) > 1 and not hidden:
            pictures.append(member._replace(name="/".join(path.parts[-2:])))
    if not pictures:
        raise UserError(
            f"archive {archive} holds no pictures in folders of classes",
            "it may hold further archives: unpack it by hand, one folder for each class",
        )
    _refuse(archive, pictures)
    return pictures


def _publish(temporary: Path, target: Path) -> None:
    try:
        temporary.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        # Another process unpacked the same archive first: what is there is complete.


def _write(member: Member, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = member.open()
    if source is None:
        raise UserError(f"archive member {member.name!r} cannot be read")
    with source, path.open("xb") as file:
        # Never more than the archive says: the sum of the sizes was checked before.
        left = member.size
        while chunk := source.read(min(1 << 20, left + 1)):
            left -= len(chunk)
            if left < 0:
                raise UserError(f"archive member {member.name!r} unpacks to more than its {member.size:,} bytes")
            file.write(chunk)
    if left:
        raise UserError(f"archive member {member.name!r} is cut: {left:,} of {member.size:,} bytes are missing")
