"""Unpack a zip or tar archive without trusting it."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from cuebench.errors import UserError, all_problems
from cuebench.files import write_error

LARGEST = 64 << 30  # bytes: more than any published stimulus set; stops a file that unpacks without end


class Member(NamedTuple):
    """An entry of an archive: name, size, what is wrong with its kind, and how to open it."""

    name: str
    size: int
    problem: str
    is_folder: bool
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, target: Path) -> int:
    """Unpack ``archive`` into the new folder ``target``; return the number of files.

    Everything is checked before a byte is written, the files go to a temporary folder, and one rename makes them
    appear: a folder ``target`` that exists is complete.

    Raises
    ------
    UserError
        For absolute paths, ``..``, links and devices, duplicated names, or a file that is not an archive; all at once.
    """
    temporary = target.with_name(f".{target.name}.unpacking")
    try:
        with _opened(archive) as members:
            _refuse(archive, members)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            files = [m for m in members if not m.is_folder]
            for member in files:
                _write(member, temporary / member.name)
        temporary.rename(target)
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
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise UserError(f"{path} is neither a zip nor a tar archive, or is damaged: {error}") from error


def _refuse(archive: Path, members: list[Member]) -> None:
    seen: set[str] = set()
    problems = []
    for m in members:
        path, problem = PurePosixPath(m.name), m.problem
        if not problem and (path.is_absolute() or set(m.name) & set("\\:\0")):
            problem = "an absolute path or a path of another system"
        elif not problem and ".." in path.parts:
            problem = "leads out of the folder"
        elif not problem and not m.is_folder and m.name.casefold() in seen:
            problem = "occurs twice"
        seen |= set() if m.is_folder else {m.name.casefold()}
        problems += [f"{m.name!r}: {problem}"] if problem else []
    if sum(m.size for m in members) > LARGEST:
        problems.append(f"unpacks to more than {LARGEST >> 30} GiB")
    if problems:
        raise all_problems(f"archive {archive} is refused", problems, "nothing was unpacked")


def _write(member: Member, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = member.open()
    if source is None:
        raise UserError(f"archive member {member.name!r} cannot be read")
    with source, path.open("xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
