"""Every command and code block of docs/tutorials and of some how-to pages is followed from top to bottom."""

from __future__ import annotations

import importlib.util
import json
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
    monkeypatch.setattr(sys, "path", [*sys.path])
    added = {kind: dict(parts.added) for kind, parts in KINDS.items()}

    def run(page: str) -> Path:
        blocks = re.findall(r"^```(bash|python)\n(.*?)^```", (TUTORIALS / page).read_text("utf-8"), re.DOTALL | re.M)
        assert blocks
        values = {"__name__": "__main__"}
        for language, text in blocks:
            name = re.match(r"# (\w+\.py)\n", text)
            if name:
                Path(name[1]).write_text(text, "utf-8")
            elif language == "python":
                exec(text, values)
            else:
                for line in text.strip().splitlines():
                    command(*shlex.split(line))
        return tmp_path

    yield run
    for kind, parts in KINDS.items():
        parts.added.clear()
        parts.added.update(added[kind])
    for name in ("my_model", "net"):
        sys.modules.pop(name, None)


def command(program: str, *words: str) -> None:
    """Run a command in this process: every new one would import torch again."""
    if program == "python":
        with pytest.MonkeyPatch.context() as context:
            context.syspath_prepend(Path.cwd())
            exec(Path(words[0]).read_text("utf-8"), {"__name__": "__main__", "__file__": str(Path(words[0]).resolve())})
        sys.modules.pop("net", None)  # of that program
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


@pytest.mark.slow
@pytest.mark.torch
def test_own_models(follow) -> None:
    if not all(importlib.util.find_spec(package) for package in ("timm", "transformers")):
        pytest.skip("needs timm and transformers")
    from cuebench.observers.torch.torchvision_import import import_torchvision

    import_torchvision()  # where it was built for another torch, timm needs it
    home = follow("../own_models.md")
    code = numbers(home / "runs/code", "shape_accuracy")
    assert code["mine"] == code["exported"]
    assert {"mine", "exported"} <= set(code)
    assert set(numbers(home / "runs/known", "shape_accuracy")) == {
        "timm:test_resnet/timm", "torchvision:squeezenet1_1/torchvision",
    }  # fmt: skip
    assert set(numbers(home / "runs/files", "shape_accuracy")) == {"torchscript:net", "transformers:vit"}
    assert set(numbers(home / "runs/two", "shape_accuracy")) == {"checkpoint:a/best", "checkpoint:b/best"}
    assert len(numbers(home / "runs/frameworks", "shape_accuracy")) == 3


@pytest.mark.slow
@pytest.mark.torch
def test_training(follow) -> None:
    pytest.importorskip("torch")
    home = follow("../training.md")
    assert (home / "bias.svg").is_file()
    assert [record["epoch"] for record in json.loads((home / "bias.json").read_text("utf-8"))] == [0, 2, 4]
