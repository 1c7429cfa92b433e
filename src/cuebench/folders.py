"""Folders that are made as a whole: copied, or filled by one process at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from cuebench.errors import UserError
from cuebench.files import NO_LOCKS, disk_errors, is_temporary, refuse_printed, take_lock


def copy_folder(source: Path, target: Path, *, without: str) -> None:
    """Copy a folder, without what matches a pattern at any depth; unlike ``shutil.copytree`` it stops at an error."""
    with disk_errors(target):
        for folder, folders, files in os.walk(source, followlinks=True):
            folders[:] = [name for name in folders if not fnmatch(name, without)]
            place = target / Path(folder).relative_to(source)
            place.mkdir()
            for name in files:
                if not fnmatch(name, without):
                    shutil.copy2(Path(folder) / name, place / name)


UNFINISHED = ".unfinished"
"""File in a folder that is being filled; a process that was killed leaves it there."""


@contextmanager
def filling(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """Hold a new folder while it is filled. What a process that was killed left of it is removed and made again.

    Parameters
    ----------
    folder : Path
        Where; absent, empty, or left unfinished.
    names : sequence of str
        What is written into it: nothing else is ever removed.

    Raises
    ------
    UserError
        Where it holds anything else, or another process fills it. It is then left as it was, as it is after any other
        error while it is filled.
    """
    refuse_printed(folder)
    there = UserError(f"{folder} is there already", "name a folder that does not exist yet")
    mark, was_there = folder / UNFINISHED, folder.exists()
    removable = {*names, UNFINISHED} if mark.exists() else set()
    if was_there and (
        not folder.is_dir() or any(p.name not in removable and not is_temporary(p) for p in folder.iterdir())
    ):
        raise there

    def clear() -> None:
        for path in [folder / name for name in names] + [p for p in folder.iterdir() if is_temporary(p)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = mark.open("ab")
    with file:
        try:
            take_lock(file.fileno())
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise UserError(f"another process is making {folder}", "wait for it, or name another folder") from None
        if not mark.exists():  # the other process finished after we had looked
            raise there
        with disk_errors(folder):
            clear()
        try:
            yield
        except BaseException:
            with suppress(OSError):  # a disk on which nothing can be removed: the mark stays, and the next one does it
                clear()
                file.close()
                mark.unlink()
                if not was_there:
                    folder.rmdir()
            raise
    with disk_errors(mark):
        mark.unlink()
