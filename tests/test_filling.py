"""Folders that are filled whole: what a killed process left is made again, and nothing else is ever removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.files import take_lock
from cuebench.folders import UNFINISHED, copy_folder, filling

NAMES = ("settings.toml", "images")


def fill(folder: Path) -> None:
    with filling(folder, NAMES):
        (folder / "images").mkdir()
        (folder / "images" / "a.png").write_text("whole")
        (folder / "settings.toml").write_text("whole")


def left_unfinished(folder: Path) -> Path:
    """Return a folder as a process leaves it that was killed."""
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "half.png").write_text("half")
    (folder / ".settings.toml.1.2.tmp").write_text("half")
    (folder / UNFINISHED).touch()
    return folder


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("before", [lambda f: f, lambda f: f.mkdir() or f, left_unfinished])
def test_absent_empty_and_unfinished_folders_are_filled(tmp_path: Path, before) -> None:
    folder = before(tmp_path / "new")
    fill(folder)
    assert names_in(folder) == ["images/a.png", "settings.toml"]
    with pytest.raises(UserError, match="is there already"):
        fill(folder)


def test_files_of_others_are_never_removed(tmp_path: Path) -> None:
    folder = left_unfinished(tmp_path / "new")
    (folder / "notes.txt").write_text("mine")
    before = names_in(folder)
    with pytest.raises(UserError, match="is there already"):
        fill(folder)
    assert names_in(folder) == before


def test_two_processes_do_not_fill_one_folder(tmp_path: Path) -> None:
    folder = left_unfinished(tmp_path / "new")
    before = names_in(folder)
    with (folder / UNFINISHED).open("ab") as other:
        take_lock(other.fileno())
        with pytest.raises(UserError, match="another process is making"):
            fill(folder)
    assert names_in(folder) == before
    fill(folder)


def test_after_an_error_everything_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "deep" / "new", tmp_path / "empty"):
        with pytest.raises(ValueError, match="in the middle"), filling(folder, NAMES):  # noqa: PT012
            (folder / "settings.toml").write_text("half")
            raise ValueError("in the middle")
    assert not (tmp_path / "deep" / "new").exists()
    assert not [*(tmp_path / "empty").iterdir()]


def test_a_folder_is_copied_without_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a" / "__pycache__").mkdir(parents=True)
    (tmp_path / "a" / "deep").mkdir()
    for name in ("x.toml", "deep/y.toml", "__pycache__/z.pyc"):
        (tmp_path / "a" / name).write_text(name)
    copy_folder(tmp_path / "a", tmp_path / "b", without="__pycache__")
    assert names_in(tmp_path / "b") == ["deep/y.toml", "x.toml"]
