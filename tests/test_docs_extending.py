"""Every file, snippet and command of docs/extending.md is written, executed and run, in the order of the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.registry import KINDS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SECTIONS = ("A cue", "A metric", "A protocol", "A figure", "A source of observers", "A reader and a maker", "A package")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a user who follows the page, with a photograph and a few labelled squares."""
    pixels = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    for colour, value in (("red", (200, 0, 0)), ("blue", (0, 0, 200))):
        (tmp_path / "data" / "imagenet_val" / colour).mkdir(parents=True)
        for i in range(2):
            picture = np.full((40, 40, 3), value, np.uint8) + np.uint8(i)
            Image.fromarray(picture).save(tmp_path / "data" / "imagenet_val" / colour / f"{i}.png")
    return tmp_path


def run(command: list[str], folder: Path) -> str:
    # As for a user whose current folder is on Python's path, which `python -c` does and a console script does not.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def follow(kind: str, text: str, folder: Path) -> None:
    """Do what a code block says: write the file that its first line names, execute it, or run its commands."""
    name = re.match(r"# (\w+\.py)\n", text)
    if kind == "python" and name:
        (folder / name[1]).write_text(text, "utf-8")
    elif kind == "python":
        run([sys.executable, "-c", text], folder)
    elif kind == "bash":
        for line in text.strip().splitlines():
            program, *arguments = shlex.split(line)
            assert program in ("cuebench", "python"), line
            run([sys.executable, *(["-m", "cuebench"] if program == "cuebench" else []), *arguments], folder)
    else:
        assert kind == "toml"
        written = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text("utf-8"))
        assert tomllib.loads(text)["project"]["entry-points"] == written["project"]["entry-points"]


@pytest.mark.slow
def test_the_page_can_be_followed_from_top_to_bottom(folder: Path) -> None:
    for kind, text in BLOCKS:
        follow(kind, text, folder)


def test_every_kind_of_part_has_a_section() -> None:
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == list(SECTIONS)
    assert len(BLOCKS) > 2 * len(SECTIONS)


def test_every_entry_point_group_is_named() -> None:
    for parts in KINDS.values():
        assert f"`{parts.group}`" in PAGE
