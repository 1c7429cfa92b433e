"""``cuebench new``: what it writes fails with one hole to fill, and passes its check when the hole is filled."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuebench import cli
from cuebench.errors import UserError
from cuebench.registry import KINDS, cues
from cuebench.testing.new import NEW, new_part

HOLE = re.compile(r"# For example: (.*)\n(?P<indent> +)raise NotImplementedError\(.*\)\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    added = {kind: dict(parts.added) for kind, parts in KINDS.items()}
    yield tmp_path
    for kind, parts in KINDS.items():
        parts.added.clear()
        parts.added.update(added[kind])


def check(test: Path, name: str) -> None:
    """Run the test that was written as its own process would: as a module, then the function."""
    runpy.run_path(str(test))[f"test_{name}"]()


QUICK = ("metric", "observer")


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in NEW]
)
def test_what_is_written_fails_until_its_hole_is_filled(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"planted_{kind}"
    assert cli.invoke(["new", kind, name, "--json"]) == 0
    begun = json.loads(capsys.readouterr().out)
    file, test = Path(begun["file"]), Path(begun["test"])
    with pytest.raises(Exception, match=r"NotImplementedError|then run its test again"):
        check(test, name)
    text = file.read_text("utf-8")
    assert len(HOLE.findall(text)) == 1
    file.write_text(HOLE.sub(lambda hole: hole[1] + "\n", text), "utf-8")
    sys.modules.pop(name, None)
    check(test, name)
    if kind != "observer":
        assert cli.invoke(["explain", begun["part"]]) == 0


def test_mistakes_are_told_together_and_nothing_is_written(folder: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'cue'"):
        new_part("cues", "mine")
    with pytest.raises(UserError, match="is no name"):
        new_part("cue", "My Cue")
    with pytest.raises(UserError, match="there is a cue 'eed' already"):
        new_part("cue", "eed")
    for path in (folder / "mine.py", folder / "test_mine.py"):
        path.write_text("of mine")
    with pytest.raises(UserError, match="2 problems") as caught:
        new_part("cue", "mine")
    assert "test_mine.py exists" in caught.value.message
    assert (folder / "mine.py").read_text() == "of mine"
    assert {path.name for path in folder.iterdir()} == {"mine.py", "test_mine.py"}


def test_what_a_killed_process_had_written_is_no_mistake(folder: Path) -> None:
    begun = new_part("cue", "mine")
    texts = [path.read_text() for path in (folder / "mine.py", folder / "test_mine.py")]
    (folder / "test_mine.py").unlink()
    assert new_part("cue", "mine") == begun
    assert [path.read_text() for path in (folder / "mine.py", folder / "test_mine.py")] == texts


def test_in_the_folder_of_cuebench_it_becomes_a_part_of_cuebench(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(cues), "folder", property(lambda registry: folder / registry.package.rpartition(".")[2]))
    begun = new_part("cue", "mine", folder / "cues")
    assert begun.test is None
    assert begun.part == "mine"
    assert "tests/conformance" in begun.run_test
