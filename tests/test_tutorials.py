"""Every command and code block of docs/tutorials is followed from top to bottom, as a reader would."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from cuebench.cli import invoke
from cuebench.registry import KINDS
from cuebench.runs.scores import load

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``follow(page)``: write its files, execute its code, run its commands, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    added = {kind: dict(parts.added) for kind, parts in KINDS.items()}

    def run(page: str) -> Path:
        blocks = re.findall(r"^```(bash|python)\n(.*?)^```", (TUTORIALS / page).read_text("utf-8"), re.DOTALL | re.M)
        assert {language for language, _ in blocks} == {"bash", "python"}
        for language, text in blocks:
            name = re.match(r"# (\w+\.py)\n", text)
            if name:
                Path(name[1]).write_text(text, "utf-8")
            elif language == "python":
                exec(text, {"__name__": "__main__"})
            else:
                for line in text.strip().splitlines():
                    command(*shlex.split(line))
        return tmp_path

    yield run
    for kind, parts in KINDS.items():
        parts.added.clear()
        parts.added.update(added[kind])
    sys.modules.pop("my_model", None)


def command(program: str, *words: str) -> None:
    """Run a command in this process: every new one would import torch again."""
    if program == "python":
        exec(Path(words[0]).read_text("utf-8"), {"__name__": "__main__", "__file__": str(Path(words[0]).resolve())})
        return
    assert program == "cuebench"
    quick = ["--resamples", "100"] if words[0] == "run" else []
    assert invoke([*words, *quick]) == 0, shlex.join(words)


def numbers(run: Path, metric: str) -> dict[str, float]:
    rows = [row for row in load(run) if row.metric == metric]
    return {row.observer: row.value for row in reversed(rows)}


@pytest.mark.slow
@pytest.mark.torch
def test_i_have_a_model(follow) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    home = follow("model.md")
    first, mine = numbers(home / "runs/first", "shape_bias"), numbers(home / "runs/mine", "shape_bias")
    assert first["ideal:shape"] == 1
    assert first["ideal:texture"] == 0
    page = (TUTORIALS / "model.md").read_text("utf-8")
    printed = float(re.search(r"lite:efficientnet_lite0  (\d\.\d+)", page)[1])
    assert first["lite:efficientnet_lite0"] == pytest.approx(printed, abs=0.02)
    assert mine["mine"] == pytest.approx(printed, abs=0.05)


@pytest.mark.slow
def test_i_have_people(follow) -> None:
    pytest.importorskip("fastapi")
    home = follow("people.md")
    found = numbers(home / "runs/people", "shape_bias")
    assert 0.85 < found["people"] < 0.95
    assert {"anna", "bert", "carl"} <= set(found)
    assert (home / "my-study" / "exclusions.toml").is_file()


@pytest.mark.slow
def test_i_have_stimuli(follow) -> None:
    home = follow("stimuli.md")
    found = numbers(home / "runs/check", "shape_bias")
    assert (found["ideal:shape"], found["ideal:texture"]) == (1, 0)
    assert len(list((home / "mine/cue_conflict/stimuli").glob("*/*.png"))) == 9
    assert (home / "edges.png").is_file()


@pytest.mark.slow
@pytest.mark.torch
def test_i_have_an_idea(follow) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    found = numbers(follow("protocol.md") / "runs/grey", "triplet_shape_bias")
    assert (found["ideal:shape"], found["ideal:texture"]) == (1, 0)
    assert 0 < found["lite:efficientnet_lite0"] < 1
