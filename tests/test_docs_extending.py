"""Every file, snippet and command of docs/extending.md is written, executed and run, in the order of the page."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.cli import invoke
from cuebench.registry import KINDS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SECTIONS = ("A cue", "A metric", "A protocol", "A figure", "A source of observers", "A reader and a maker", "A package")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a user who follows the page; what becomes known of it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    for colour, value in (("red", (200, 0, 0)), ("blue", (0, 0, 200))):
        (tmp_path / "data" / "imagenet_val" / colour).mkdir(parents=True)
        for i in range(2):
            picture = np.full((40, 40, 3), value, np.uint8) + np.uint8(i)
            Image.fromarray(picture).save(tmp_path / "data" / "imagenet_val" / colour / f"{i}.png")
    added = {kind: dict(parts.added) for kind, parts in KINDS.items()}
    yield tmp_path
    for kind, parts in KINDS.items():
        parts.added.clear()
        parts.added.update(added[kind])
    sys.modules.pop("my_model", None)


def follow(kind: str, text: str, folder: Path) -> None:
    """Do what a code block says: write the file that its first line names, execute it, or run its commands."""
    name = re.match(r"# (\w+\.py)\n", text)
    if kind == "python" and name:
        (folder / name[1]).write_text(text, "utf-8")
    elif kind == "python":
        exec(text, {"__name__": "__main__"})
    elif kind == "bash":
        for line in text.strip().splitlines():
            run(*shlex.split(line))
    else:
        assert kind == "toml"
        written = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text("utf-8"))
        assert tomllib.loads(text)["project"]["entry-points"] == written["project"]["entry-points"]


def run(program: str, *arguments: str) -> None:
    """Run a command in this process: every new one would import torch again."""
    if program == "python":
        assert arguments[0] == "-c"
        exec(arguments[1], {"__name__": "__main__"})
        return
    assert program == "cuebench"
    assert invoke([*arguments]) == 0, shlex.join([program, *arguments])


@pytest.mark.slow
def test_the_page_can_be_followed_from_top_to_bottom(folder: Path) -> None:
    for kind, text in BLOCKS:
        follow(kind, text, folder)
    written = {path.name for path in folder.iterdir()}
    assert {"posterised.png", "nearest.svg", "stripes.svg", "runs", "data"} <= written


def test_every_kind_of_part_has_a_section() -> None:
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == list(SECTIONS)
    assert len(BLOCKS) > 2 * len(SECTIONS)


def test_every_entry_point_group_is_named() -> None:
    for parts in KINDS.values():
        assert f"`{parts.group}`" in PAGE
