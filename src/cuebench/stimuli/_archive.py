"""Unpack a zip or tar archive without trusting it."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from cuebench.errors import UserError, all_problems
from cuebench.files import write_error

LARGEST = 64 << 30  # bytes: more than any published stimulus set; stops a file that unpacks without end


class Member(NamedTuple):
    """One entry of an archive: name, size, what is wrong with its kind, and how to open it."""

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
        For absolute paths, ``..``, links and devices, duplicated names, or an archive that is none; all at once.
    """
    temporary = target.with_name(f".{target.name}.unpacking")
    try:
        with _opened(archive) as members:
            listed = list(members)
            _refuse(archive, listed)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            files = [m for m in listed if not m.is_folder]
            for member in files:
                _write(member, temporary / member.name)
        temporary.rename(target)
    except OSError as error:
        raise write_error(target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return len(files)


class _opened:
    """Context manager: the members of a zip or tar file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Iterator[Member]:
        try:
            if zipfile.is_zipfile(self._path):
                self._file: zipfile.ZipFile | tarfile.TarFile = zipfile.ZipFile(self._path)
                return _zip_members(self._file)
            self._file = tarfile.open(self._path)
            return _tar_members(self._file)
        except (zipfile.BadZipFile, tarfile.TarError) as error:
            raise UserError(f"{self._path} is neither a zip nor a tar archive: {error}") from error

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _zip_members(file: zipfile.ZipFile) -> Iterator[Member]:
    for info in file.infolist():
        kind = info.external_attr >> 28  # the file type of Unix; 0 where the archive does not say
        problem = "" if kind in {0, 0o4, 0o10} else "a link or a device"
        yield Member(info.filename, info.file_size, problem, info.is_dir(), lambda i=info: file.open(i))  # type: ignore[misc]


def _tar_members(file: tarfile.TarFile) -> Iterator[Member]:
    for info in file:
        problem = "" if info.isfile() or info.isdir() else "a link or a device"
        yield Member(info.name, info.size, problem, info.isdir(), lambda i=info: file.extractfile(i))  # type: ignore[misc]


def _refuse(archive: Path, members: list[Member]) -> None:
    seen: set[str] = set()
    problems = []
    for m in members:
        problem = m.problem or _path_problem(m.name)
        if not problem and not m.is_folder and m.name.casefold() in seen:
            problem = "occurs twice"
        seen |= set() if m.is_folder else {m.name.casefold()}
        problems += [f"{m.name!r}: {problem}"] if problem else []
    if sum(m.size for m in members) > LARGEST:
        problems.append(f"unpacks to more than {LARGEST >> 30} GiB")
    if problems:
        raise all_problems(f"archive {archive} is refused", problems, "nothing was unpacked")


def _path_problem(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or "\\" in name or ":" in name or "\0" in name:
        return "an absolute path or a path of another system"
    return "leads out of the folder" if ".." in path.parts else ""


def _write(member: Member, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = member.open()
    if source is None:
        raise UserError(f"archive member {member.name!r} cannot be read")
    with source, path.open("xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
