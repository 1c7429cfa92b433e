"""The version of a cue: another one for every change of the code that makes a picture, the same for other words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench
from cuebench import source_code
from cuebench.cues import versions
from cuebench.cues.base import CueInfo
from cuebench.cues.versions import recipe_versions, version_of
from cuebench.errors import UserError
from cuebench.registry import ALLOW_CODE, cues, sources

COMPUTED = "import importlib\ngrey_helper = importlib.import_module('grey' + '_helper')"
MINE = """
from cuebench.cues.base import CueInfo
import {helper}

@CueInfo(kind="corruption", reference="none")
def darken(image, *, by: float = 0.5):
    return (image * by * {helper}.SCALE).astype(image.dtype)
"""


def edited(monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str) -> None:
    """Let a file of cuebench read as if it had been edited."""
    read = source_code._read

    def changed(name: str, path: str) -> bytes:
        text = read(name, path)
        if not path.endswith(file):
            return text
        assert old.encode() in text
        return text.replace(old.encode(), new.encode())

    monkeypatch.setattr(source_code, "_read", changed)


@pytest.mark.parametrize(
    ("file", "old", "new", "other"),
    [
        ("cues/contrast.py", "(1 - level) / 2", "(1 - level) / 3", True),
        ("cues/grey.py", "image if keep_colour", "-image if keep_colour", True),
        ("cues/base.py", "np.rint(", "np.floor(", True),
        ("cues/contrast.py", '"""Corruption: lower contrast', '"""A corruption: lower contrast', False),
        ("cues/contrast.py", "    def kernel(", "    # a comment\n    def kernel(", False),
        ("cues/rotation.py", "rotation", "rotations", False),
        ("registry.py", "def get(", "def get_it(", False),
    ],
)
def test_the_code_of_a_built_in_cue(
    file: str, old: str, new: str, other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = version_of("contrast")
    edited(monkeypatch, file, old, new)
    assert (version_of("contrast") != before) == other


@pytest.mark.parametrize(
    "recipe",
    [
        'chain?cues=["contrast","grey"]',
        "chain?cues=contrast",
        r'chain?cues=["contr\u0061st","grey"]',
        "square?size=8;contrast?level=1",
    ],
)
def test_cues_that_a_recipe_names(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = recipe_versions([(recipe, False)])
    assert "contrast" in before
    edited(monkeypatch, "cues/contrast.py", "(1 - level) / 2", "(1 - level) / 3")
    assert recipe_versions([(recipe, False)]) != before


def test_what_a_cue_applies_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    before = version_of("chain")
    edited(monkeypatch, "cues/gaussian_blur.py", "def gaussian_blur(", "def gaussian_blur_(")
    assert version_of("chain") != before


def test_sources_have_versions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = recipe_versions([("texture?name=striped&version=1", True)])
    assert list(versions) == ["texture"]
    edited(monkeypatch, "sources/texture.py", "SIZE = 256", "SIZE = 255")
    assert version_of("texture", sources) != versions["texture"]


def test_every_cue_and_source_has_one() -> None:
    versions = [*(version_of(name) for name in cues), *(version_of(name, sources) for name in sources)]
    assert len(set(versions)) == len(versions)
    assert all(len(version) == 16 for version in versions)


def test_a_file_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "dark_helper.py").write_text("SCALE = 1\n")
    (tmp_path / "mine.py").write_text(MINE.format(helper="dark_helper"))
    recipe = f"python:{tmp_path}/mine.py:darken?by=0.5"
    monkeypatch.setenv(ALLOW_CODE, f"{tmp_path}/mine.py")
    before = recipe_versions([(recipe, False)])
    assert list(before) == ["darken"]
    assert recipe_versions([(recipe, False)]) == before
    (tmp_path / "dark_helper.py").write_text("SCALE = 2\n")
    assert recipe_versions([(recipe, False)]) != before


def test_a_helper_that_is_imported_by_a_computed_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "grey_helper.py").write_text("SCALE = 1\n")
    text = MINE.format(helper="grey_helper").replace("import grey_helper", COMPUTED)
    assert COMPUTED in text
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(text)
    recipes = [[(f"python:{tmp_path}/{name}/mine.py:darken?by=0.5", False)] for name in ("one", "two")]
    monkeypatch.setenv(ALLOW_CODE, os.pathsep.join(f"{tmp_path}/{name}/mine.py" for name in ("one", "two")))
    before = [recipe_versions(recipe) for recipe in recipes]
    (tmp_path / "grey_helper.py").write_text("SCALE = 2\n")
    after = [recipe_versions(recipe) for recipe in recipes]
    assert before[0] == before[1] != after[0] == after[1], "also for the one that found it loaded"


def test_code_that_cannot_be_read_holds_for_this_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(helper="os"))
    monkeypatch.setenv(ALLOW_CODE, f"{tmp_path}/mine.py")
    recipe = [(f"python:{tmp_path}/mine.py:darken?by=0.5", False)]
    whole = recipe_versions(recipe)
    monkeypatch.setattr(source_code, "MOST_FILES", 0)
    assert recipe_versions(recipe) == recipe_versions(recipe) != whole
    here = recipe_versions(recipe)
    monkeypatch.setattr(versions, "_SESSION", "another")
    assert recipe_versions(recipe) != here


def test_a_helper_that_is_edited_while_its_old_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "edited_dark_helper.py").write_text("SCALE = 1\n")
    (tmp_path / "mine.py").write_text(MINE.format(helper="edited_dark_helper"))
    monkeypatch.setenv(ALLOW_CODE, f"{tmp_path}/mine.py")
    recipe = [(f"python:{tmp_path}/mine.py:darken?by=0.5", False)]
    source_code.notices_of_code()
    whole = recipe_versions(recipe)
    (tmp_path / "edited_dark_helper.py").write_text("SCALE = 2\n")
    here = recipe_versions(recipe)
    assert here == recipe_versions(recipe) != whole
    monkeypatch.setattr(versions, "_SESSION", "another")
    assert recipe_versions(recipe) != here
    assert len(source_code.notices_of_code()) == 1


def test_a_function_of_this_session() -> None:
    space: dict[str, Any] = {"__name__": "__main__", "CueInfo": CueInfo}
    exec("@CueInfo(kind='corruption', reference='none')\ndef session_cue(image):\n    return image", space)
    name = cues.resolve(space["session_cue"])
    try:
        assert version_of(name).startswith("session-")
    finally:
        del cues.added[name]


def test_the_key_of_answers_has_the_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grey(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.zeros((len(pixels), 1000), np.float32)

    def run() -> Any:
        observer = cuebench.wrap(grey, preprocess=cuebench.Preprocess(size=8), name="grey", fingerprint="1")
        options: dict[str, Any] = {"limit": 4, "workers": 0, "resamples": 100}
        scores = cuebench.evaluate(observer, "texture_association", out=tmp_path / "run", **options)
        return scores.record.jobs[0]

    first, again = run(), run()
    assert first.key["preprocess"]["recipes"] == {"texture": version_of("texture", sources)}
    assert first.folder == again.folder
    edited(monkeypatch, "sources/texture.py", "SIZE = 256", "SIZE = 255")
    assert run().folder != first.folder


def test_a_cue_that_ends_python_is_an_error(tmp_path: Path) -> None:
    from cuebench.cues.by_name import call

    text = "import sys\nfrom cuebench.cues.base import CueInfo\n@CueInfo(kind='corruption', reference='none')\n"
    (tmp_path / "ends.py").write_text(text + "def ends(image):\n    sys.exit(0)\n")
    with pytest.raises(UserError, match="SystemExit: 0"):
        call(f"python:{tmp_path}/ends.py:ends", np.zeros((4, 4, 3), np.uint8))
