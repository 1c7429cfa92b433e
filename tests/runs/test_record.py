"""``run.json``: what the scores were made with, and what a damaged one means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.responses.events import Event


@pytest.fixture
def measure(data_root: Path, tmp_path: Path) -> Any:
    def run(**options: Any) -> cb.Scores:
        options = {"protocols": "cue_conflict", "observers": "ideal:shape", "resamples": 100, **options}
        return cb.evaluate(data_root=data_root, out=tmp_path / "run", **options)

    return run


def record(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "run.json").read_text()))


def test_scoring_again_leaves_a_record(measure: Any) -> None:
    out = measure().out
    before = record(out)
    assert before["scored"] == {"seed": 0, "resamples": 100, "settings": {}, "common": False}
    cb.score(out, seed=7, resamples=200, common=True)
    after = record(out)
    assert after.pop("scored") == {"seed": 7, "resamples": 200, "settings": {}, "common": True}
    assert before.pop("checksum") != after.pop("checksum")
    before.pop("scored")
    assert after == before  # how the run was made stays as it was


@pytest.mark.parametrize(
    "text", ["", '{"format": 1', '{"format": 1}', "[]", '{"format": 0, "jobs": []}', '{"format": 4, "format": 4}']
)
def test_a_damaged_record_is_no_obstacle_for_a_run(measure: Any, text: str) -> None:
    first = measure()
    (first.out / "run.json").write_text(text)
    with pytest.raises(UserError) as caught:
        cb.score(first.out)
    assert "same command" in caught.value.hint
    events: list[Event] = []
    again = measure(on_event=events.append)
    assert [repr(r) for r in again] == [repr(r) for r in first]
    assert any("written anew" in e.message for e in events if e.kind == "notice")
    assert record(first.out)["notices"]


def test_a_record_without_newer_fields_can_be_scored(measure: Any) -> None:
    first = measure()
    old = {**record(first.out), "format": 2}
    old["arguments"]["batch_size"] = old["arguments"].pop("shard_size")
    for name in ("scored", "files", "checksum"):
        del old[name]
    (first.out / "run.json").write_text(json.dumps(old))
    assert [repr(r) for r in cb.score(first.out)] == [repr(r) for r in first]


def test_a_record_of_a_later_version_is_not_overwritten(measure: Any) -> None:
    out = measure().out
    (out / "run.json").write_text('{"format": 99}')
    for again in (measure, lambda: cb.score(out)):
        with pytest.raises(UserError, match="format 99"):
            again()


def test_tables_of_protocols_that_are_gone_are_removed(measure: Any, data_root: Path) -> None:
    from PIL import Image

    (data_root / "imagenet_val" / "cat").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(data_root / "imagenet_val" / "cat" / "1.png")
    out = measure(protocols=["cue_conflict", "imagenet_accuracy"]).out
    assert list((out / "tables").glob("cue_conflict.*"))
    (out / "tables" / "mine.own.parquet").write_text("kept")
    measure(protocols="imagenet_accuracy", fresh=True)
    assert [p.name for p in (out / "tables").iterdir()] == ["mine.own.parquet"]


@pytest.mark.parametrize(("option", "said"), [({"seed": -1}, "seed"), ({"resamples": 5}, "resamples")])
def test_numbers_are_checked(measure: Any, option: dict, said: str) -> None:
    out = measure().out
    for call in (lambda: measure(**option), lambda: cb.score(out, **option)):
        with pytest.raises(UserError, match=f"{said} must be"):
            call()


def test_value_finds_the_row_that_is_meant(measure: Any, data_root: Path) -> None:
    from PIL import Image

    (data_root / "imagenet_val" / "cat").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(data_root / "imagenet_val" / "cat" / "1.png")
    scores = measure(protocols=["cue_conflict", "imagenet_accuracy"], observers=["ideal:shape", "ideal:texture"])
    assert scores.value("ideal:texture", "shape_bias") == 0
    assert scores.value("ideal:shape", "accuracy", "top1") == 1
    assert scores.value("ideal:shape", "accuracy", "top1", protocol="imagenet_accuracy") == 1
    for call, said in (
        (("ideal:shap", "shape_bias"), "unknown observer.*Did you mean 'ideal:shape'"),
        (("ideal:shape", "shape_bia"), "unknown metric.*Did you mean 'shape_bias'"),
        (("ideal:shape", "accuracy", "top2"), "unknown condition 'top2'.*'top1'"),
    ):
        with pytest.raises(UserError, match=said):
            scores.value(*call)


def test_value_of_one_that_failed_says_why(measure: Any) -> None:
    import numpy as np

    def broken(pixels: np.ndarray) -> np.ndarray:
        raise ValueError("no such layer")

    bad = cb.wrap(broken, preprocess=cb.Preprocess(size=32), labels=("cat", "dog", "car", "clock"), name="bad")
    with pytest.raises(UserError, match="bad was not measured: ValueError: no such layer"):
        measure(observers=[bad, "ideal:shape"]).value("bad", "shape_bias")
