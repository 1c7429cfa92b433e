"""With --json every verb writes one strict JSON document to standard output, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cuebench import cli
from cuebench.catalogue import kinds

CHATTY = """
print("the model's file is read")
import numpy as np, cuebench as cb
def answer(x):
    print("the model answers")
    return np.eye(4, dtype=np.float32)[[0] * len(x)]
def factory():
    return cb.wrap(answer, preprocess=cb.Preprocess(size=32), labels=("cat", "dog", "car", "clock"), name="net[/a1]",
                   fingerprint="1")
"""
CUE = """
from cuebench.cues.base import CueInfo
@CueInfo(kind="texture", reference="nobody")
def upside_down(image):
    print("the cue works")
    return image[::-1].copy()
"""


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def world(data_root: Path, tmp_path: Path) -> Path:
    """A folder with data, a finished run, an image, and a model that prints."""
    pixels = np.random.default_rng(0).integers(0, 256, (24, 24, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    (tmp_path / "chatty.py").write_text(CHATTY)
    (tmp_path / "answers.csv").write_text("stimulus,shape,texture,decision\na,ball,brick,ball\n")
    (tmp_path / "mine.py").write_text(CUE)
    arguments = ["run", "-p", "cue_conflict", "--data-root", str(data_root), "--out", str(tmp_path / "run"), "-q"]
    arguments += [f"-oideal:{name}" for name in ("shape", "texture", "random", "mixture?shape=0.7")]
    assert cli.invoke([*arguments, "--resamples", "100"]) == 0
    return tmp_path


NEEDS = {"demo": "a network and minutes; see test_demo.py", "doctor": "torch, where it is installed; see test_cli.py",
         "calibrate": "a minute; see tests/calibration", "study": "a server; see tests/study"}  # fmt: skip
"""Verbs that cannot run without more than this folder."""
CALLS = {
    "import": ["answers answers.csv --out own"],
    "compare": ["run", "run -p cue_conflict -o ideal:shape -o ideal:random --out pairs.csv"],
    "correlate": ["run --kind ideal --x cue_conflict --y shape_accuracy@4-way"],
    "cue": ["greyscale image.png grey.png", "python:mine.py:upside_down image.png turned.png"],
    "explain": ["cue_conflict", "shape_bias", "voronoi_shuffle", "ci_kind", "16-way/class=cat"],
    "list": [*kinds()],
    "make": ["cue_conflict --out made --count 4"],
    "new": ["cue mine_too --to parts"],
    "power": ["run"],
    "published": ["list", "export --out all.csv", "place run", "agree"],
    "curate": ["data/cue_conflict/stimuli --agreement"],
    "validity": ["classes run", "difficulty"],
    "report": ["run", "run --format csv --out scores.csv", "run --out report.html --images 4 --no-figures"],
    "run": ["-o python:chatty.py:factory -p cue_conflict --data-root data --out other --workers 0"],
    "score": ["run --resamples 100"],
    "steer": ["run --neutral ideal:random --shape ideal:shape --texture ideal:texture"],
    "trials": ["run", "run -p cue_conflict -o ideal:shape --out trials.parquet"],
}
REFUSED = {
    "board": ["image.png --out site", "check nothing"],
    "data": ["balance run", "check refined_bias --data-root data", "check", "chek refined_bias"],
    "fetch": ["cue_conflict --data-root data --offline"],
    "import": ["model-vs-human data --out all.parquet"],
    "figure": ["tav_bars run --out figure.svg"],
    "merge": ["run --out joined"],
    "published": ["export run --out csv"],
    "curate": ["run --agreement"],
    "validity": ["agreement run", "distortion run"],
    "texture-of": ["image.png -o python:chatty.py:factory --run run"],
    "controls": ["shap"],
}
"""Calls that need published data or a run of another protocol: they say so, also as JSON, and print no result."""


def each(calls: dict[str, list[str]]) -> list[list[str]]:
    return [[verb, *call.split(), "--json"] for verb, own in calls.items() for call in own]


def test_every_verb_is_called_or_says_why_not() -> None:
    assert {*CALLS, *REFUSED, *NEEDS} - set(cli.ALIASES) == set(cli.verbs())
    assert not {*CALLS, *REFUSED} & set(NEEDS)


@pytest.mark.parametrize("call", each(CALLS), ids=" ".join)
def test_standard_output_is_one_strict_document(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: list[str]
) -> None:
    monkeypatch.chdir(world)
    assert cli.invoke(call) == int(call[:2] == ["published", "place"])  # drawings cannot be placed
    assert strict(capsys.readouterr().out)


@pytest.mark.parametrize("call", each(REFUSED), ids=" ".join)
def test_an_error_leaves_standard_output_empty(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: list[str]
) -> None:
    monkeypatch.chdir(world)
    assert cli.invoke(call) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert set(strict(captured.err.splitlines()[-1])) == {"error", "hint"}


def test_the_sheet_of_cues_is_json_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("cuebench.stimuli.sheet.save_sheet", lambda image, sheet, **options: {"eed": "too small"})
    assert cli.invoke(["cue", "--sheet", "sheet.png", "image.png", "--json"]) == 1
    assert strict(capsys.readouterr().out) == {"sheet": "sheet.png", "failed": {"eed": "too small"}}


def test_what_a_model_prints_goes_to_standard_error(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(world)
    cli.invoke(["run", *CALLS["run"][0].split(), "--json"])
    captured = capsys.readouterr()
    assert {row["observer"] for row in strict(captured.out)["scores"]} == {"net[/a1]"}
    assert "the model answers" in captured.err


def one_line(text: str) -> str:
    return "".join(text.split())


@pytest.fixture
def printed(world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.chdir(world)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> str:
        capsys.readouterr()
        cli.invoke(list(arguments))
        captured = capsys.readouterr()
        return one_line(captured.out + captured.err)

    return call


def test_brackets_in_names_are_printed_as_they_are(printed: Callable[..., str], world: Path) -> None:
    text = (world / "chatty.py").read_text()
    for name in ("net[a1]", "net[/a1]", "net[bold]:cat:"):
        (world / "chatty.py").write_text(text.replace("net[/a1]", name))
        assert name in printed("run", *CALLS["run"][0].split(), "--fresh")


def test_brackets_of_failures_are_printed_as_they_are(printed: Callable[..., str]) -> None:
    out = printed("run", *CALLS["run"][0].split(), "-o", "ideal:[/nobody]")
    assert out.count("ideal:[/nobody]") >= 2  # while it works, and under the table


def test_the_command_that_installs_an_extra_keeps_its_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    from cuebench.checkup import Finding
    from cuebench.cli.doctor import _print

    _print([Finding("extra hf", "missing", "not installed", "pip install 'cuebench[hf]'")])
    assert "cuebench[hf]" in capsys.readouterr().out
