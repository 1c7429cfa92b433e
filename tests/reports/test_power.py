"""The verb ``power``: what a design finds, what would help, and what cannot be planned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cuebench as cb
from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.reports.power import plan_runs

CLASSES = ("cat", "dog", "car", "clock")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two recorded observers whose answers depend on the texture, and a little on the image."""
    folder = tmp_path_factory.mktemp("power")
    (folder / "answers").mkdir()
    images = [(f"{s}{1 + i % 6}-{t}{1 + i // 6}", s, t) for s in CLASSES for t in CLASSES if s != t for i in range(18)]
    rng = np.random.default_rng(0)
    for name, share in (("one", 0.6), ("other", 0.45)):
        lean = {t: rng.random() for t in {image.partition("-")[2] for image, *_ in images}}
        rows = [f"{image},{s if lean[image.partition('-')[2]] + 0.2 * rng.normal() < share else t}"
                for image, s, t in images]  # fmt: skip
        (folder / "answers" / f"{name}.csv").write_text("image,response\n" + "\n".join(rows) + "\n")
    cb.evaluate(f"recorded:{folder / 'answers'}", "cue_conflict", out=folder / "run", data_root=folder)
    return folder / "run"


def test_textures_that_decide_are_what_is_missing(run: Path) -> None:
    (plan,) = plan_runs([run], difference=0.05)
    assert plan.components.numbers == {"images": 216, "shape_sources": 24, "texture_sources": 12}
    assert plan.shares["texture_sources"] > 0.6
    assert sum(plan.shares.values()) == pytest.approx(1)
    smallest = {design.name: design.smallest for design in plan.designs}
    assert smallest["4× of all"] < smallest["4× textures"] < smallest["4× images of the same sources"]
    assert "hardly help" in plan.advice
    assert "4 times the textures" in plan.advice
    assert plan.needed["images of the same sources"] == {}
    assert plan.needed["of all"]["texture_sources"] > 12
    (strict,) = plan_runs([run], comparisons=10)
    assert strict.designs[0].smallest > plan.designs[0].smallest


def test_the_verb(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["power", str(run), "--difference", "0.05"]) == 0
    text = capsys.readouterr().out
    assert "2× textures" in text
    assert "no number of them is enough" in text
    assert invoke(["power", str(run), "--json"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert plan["designs"][0]["texture_sources"] == 12
    assert plan["difference"] is None


def test_one_observer_is_not_enough(run: Path) -> None:
    with pytest.raises(UserError, match="no pair of observers"):
        plan_runs([run], observers=["one"])


def test_a_difference_that_two_observers_cannot_have_is_refused(run: Path) -> None:
    for difference in (5.0, 1.01):
        with pytest.raises(UserError, match="shape_bias lies between 0 and 1"):
            plan_runs([run], difference=difference)
    (plan,) = plan_runs([run], difference=1.0)
    assert plan.difference == 1
