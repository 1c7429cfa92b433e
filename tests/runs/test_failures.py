"""One bad observer, one damaged file: a row of the result, never the end of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.observers.base import Batch
from cuebench.runs.record import RunRecord

CLASSES = ("cat", "dog", "car", "clock")
PLAIN = cb.Preprocess(size=32)


def always_cat(name: str = "cat") -> cb.Observer:
    def respond(pixels: np.ndarray) -> np.ndarray:
        return np.eye(4, dtype=np.float32)[[0] * len(pixels)]

    return cb.wrap(respond, preprocess=PLAIN, labels=CLASSES, name=name, fingerprint=name)


@pytest.fixture
def measure(data_root: Path, tmp_path: Path) -> Any:
    def run(observers: Any, protocols: Any = "cue_conflict", **options: Any) -> cb.Scores:
        options = {"data_root": data_root, "out": tmp_path / "run", "resamples": 100, **options}
        return cb.evaluate(observers, protocols, **options)

    return run


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("def make():\n    raise ValueError('no such config')\n", "ValueError: no such config"),
        ("def make(:\n", "SyntaxError: "),
        ("import nothing_like_this\n", "ModuleNotFoundError: "),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_script_that_raises_fails_alone(measure: Any, tmp_path: Path, script: str, reason: str) -> None:
    (tmp_path / "model.py").write_text(script)
    spec = f"python:{tmp_path / 'model.py'}:make"
    scores = measure([spec, "ideal:shape"])
    (failure,) = scores.record.failures
    assert failure.reason.startswith(reason)
    assert "Traceback" in failure.details["traceback"]
    assert scores.value("ideal:shape", "shape_bias") == 1
    with pytest.raises(UserError, match=reason):
        measure(spec)


def test_an_observer_that_breaks_while_planning_fails_alone(measure: Any) -> None:
    class Broken:
        name, kind, preprocess, labels, capabilities = "broken", "model", PLAIN, None, frozenset({"logits"})

        @property
        def fingerprint(self) -> str:
            raise RuntimeError("the weights cannot be read")

        def respond(self, batch: Batch, needs: Any) -> Any:
            return {}

    class Odd(Broken):
        name = "odd"
        fingerprint = "odd"  # type: ignore[assignment]
        preprocess = "224"  # type: ignore[assignment]

    scores = measure([Broken(), Odd(), "ideal:shape"])
    assert [f.observer for f in scores.record.failures] == ["broken", "odd"]
    assert "the weights cannot be read" in scores.failures[0]
    assert scores.value("ideal:shape", "shape_bias") == 1


def test_all_reasons_are_told_where_nobody_is_left(measure: Any) -> None:
    trees = cb.wrap(lambda x: x, preprocess=PLAIN, labels=["oak", "elm"], name="trees", fingerprint="t")
    with pytest.raises(UserError, match=r"(?s)is none of its classes.*ideal:shap: unknown ideal observer"):
        measure(["ideal:shap", trees])


def test_a_damaged_shard_is_a_failed_row_and_is_mended(measure: Any) -> None:
    first = measure(["ideal:shape", "ideal:texture"])
    shard = next(first.out.glob("responses/*texture*/*.parquet"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:100])
    rows = cb.score(first.out)
    (failed,) = [r for r in rows if r.metric == "failed"]
    assert failed.observer == "ideal:texture"
    assert "is damaged" in failed.note
    assert [r for r in rows if r.observer == "ideal:shape"] == [r for r in first if r.observer == "ideal:shape"]
    assert [f.observer for f in RunRecord.read(first.out).failures] == ["ideal:texture"]
    assert measure(["ideal:shape", "ideal:texture"]).failures == []
    assert shard.read_bytes() == whole


def test_a_failure_of_scoring_is_gone_when_its_reason_is(measure: Any) -> None:
    first = measure(["ideal:shape", "ideal:texture"])
    shard = next(first.out.glob("responses/*texture*/*.parquet"))
    whole = shard.read_bytes()
    shard.unlink()
    assert any(r.metric == "failed" for r in cb.score(first.out))
    shard.write_bytes(whole)
    assert [repr(r) for r in cb.score(first.out)] == [repr(r) for r in first]
    assert RunRecord.read(first.out).failures == []


def test_nothing_readable_but_allowed_is_a_clear_failure(measure: Any, data_root: Path) -> None:
    for path in data_root.rglob("*.png"):
        path.write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    scores = measure([always_cat(), "ideal:shape"], allow_unreadable=1)
    assert "cat: none of the 32 stimuli could be shown" in scores.failures[0]
    assert scores.value("ideal:shape", "shape_bias") == 1
    assert len(scores.record.unreadable) == 32


def test_the_record_names_all_excluded_stimuli_however_often_it_runs(measure: Any, data_root: Path) -> None:
    (data_root / "cue_conflict" / "stimuli" / "cat" / "cat1-dog2.png").write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    runs = [measure(always_cat(), allow_unreadable=0.1) for _ in range(2)]
    assert [[key.partition("/")[2] for key in r.record.unreadable] for r in runs] == [["cat1-dog2"]] * 2
    with pytest.raises(UserError, match="too many unreadable"):
        measure(always_cat())
    record = json.loads((runs[0].out / "run.json").read_text())
    assert (record["status"], list(record["unreadable"])) == ("stopped", list(runs[0].record.unreadable))


def test_a_repaired_picture_that_was_asked_again_is_not_unreadable(measure: Any, data_root: Path) -> None:
    file = data_root / "cue_conflict" / "stimuli" / "cat" / "cat1-dog2.png"
    whole = file.read_bytes()
    file.write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    measure(always_cat(), allow_unreadable=0.1)
    small = {"triplets.experiments": "3", "triplets.draw": "50"}
    both = measure("ideal:shape", "triplets", settings=small)
    assert len(both.record.unreadable) == 1  # the answers of cat are still without it
    file.write_bytes(whole)
    repaired = measure(always_cat())
    assert repaired.protocols == ["cue_conflict", "triplets"]
    assert repaired.record.unreadable == {}


def test_ids_of_an_earlier_record_stay_unreadable_while_somebody_lacks_them(measure: Any, tmp_path: Path) -> None:
    before = measure([always_cat(), "ideal:shape"]).record
    for others in ("ideal:texture", always_cat()):
        before.unreadable = {"cat1-dog2": "cut short"}
        before.write(tmp_path / "run")
        left = measure(others).record.unreadable
        assert left == ({} if others != "ideal:texture" else {"cat1-dog2": "cut short"})


def test_a_run_that_cannot_be_scored_says_how_far_it_came(
    measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*arguments: Any, **options: Any) -> None:
        raise UserError("no such option")

    monkeypatch.setattr("cuebench.runs.evaluate.score_run", wrong)
    with pytest.raises(UserError, match="no such option"):
        measure("ideal:shape")
    assert RunRecord.read(tmp_path / "run").status == "collected"


def test_a_corrected_label_reaches_the_ideal_observer(measure: Any, data_root: Path) -> None:
    """It reads the truth, not the pixels: the same files with other labels are other stimuli."""
    from PIL import Image

    folder = data_root / "imagenet_val"
    folder.mkdir()
    for i in range(4):
        Image.new("RGB", (32, 32), (i, 0, 0)).save(folder / f"{i}.png")
    for third in (3, 2):  # the classes and their order stay the same
        labels = [3, 2, third, third]
        (folder / "labels.csv").write_text("file,index\n" + "".join(f"{i}.png,{k}\n" for i, k in enumerate(labels)))
        scores = measure("ideal:shape", "imagenet_accuracy")
        assert scores.value("ideal:shape", "accuracy", "top1") == 1
    assert len(list(scores.out.glob("responses/*/*.parquet"))) == 2


def test_a_member_of_a_suite_is_keyed_by_what_loaded_it(measure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuebench.observers.adapters import suite

    def load(spec: Any, options: Any) -> list[cb.Observer]:
        made = always_cat("member")
        made.loaded_by = "timm/7"  # type: ignore[attr-defined]
        return [made, always_cat("plain")]

    monkeypatch.setattr(suite, "ADAPTER", replace(suite.ADAPTER, load=load))
    jobs = measure("suite:texture_association").record.jobs
    assert {j.observer: j.key["adapter"] for j in jobs} == {"member": "timm/7", "plain": "suite/1"}


def test_the_weights_are_hashed_once_in_a_run(measure: Any, data_root: Path) -> None:
    from PIL import Image

    (data_root / "imagenet_val" / "cat").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(data_root / "imagenet_val" / "cat" / "1.png")
    hashed: list[int] = []

    class Large:
        name, kind, preprocess, capabilities = "large", "model", PLAIN, frozenset({"logits"})
        labels = always_cat().labels

        @property
        def fingerprint(self) -> str:
            hashed.append(1)
            return "large"

        def respond(self, batch: Batch, needs: Any) -> Any:
            return {"logits": np.eye(4, dtype=np.float32)[[0] * len(batch)]}

    measure(Large(), ["cue_conflict", "imagenet_accuracy"])
    assert len(hashed) == 1


@pytest.mark.parametrize("order", [("cue_conflict", "refined_bias"), ("refined_bias", "cue_conflict")])
def test_recordings_of_one_protocol_are_not_asked_about_the_others(
    order: tuple[str, str], data_root: Path, tmp_path: Path
) -> None:
    """One line, whoever they are; people and models, with names that the other protocol would call mistakes."""
    recording = tmp_path / "people.csv"
    rows = [f"cat{n}-dog{n}.png,{who},cat" for who in ("anna", "bert", "carl", "dora") for n in range(1, 4)]
    recording.write_text("\n".join(["image,participant,decision", *rows]))
    folder = tmp_path / "run"
    cb.evaluate(["ideal:shape", f"recorded:{recording}"], list(order), data_root=data_root, out=folder)
    (failure,) = RunRecord.read(folder).failures
    assert (failure.observer, failure.protocol) == ("ideal:shape", "refined_bias")
    assert "\n" not in failure.reason
    notices = [n for n in RunRecord.read(folder).notices if n.startswith("not as")]
    assert notices == [
        "not asked: recordings are of cue_conflict (anna, bert, carl …), not of refined_bias",
    ]
    assert {f.reason for f in RunRecord.read(folder).skipped if f.protocol == "refined_bias"} == {
        "none of the 3 recorded names is of refined_bias: 'cat1-dog1' is neither <class>_<i> nor <G>x<G>_<class>_<i>"
    }


def test_a_recording_with_a_name_that_is_a_mistake_has_failed(data_root: Path, tmp_path: Path) -> None:
    """Not all of its names are of another experiment: what is wrong is named."""
    recording = tmp_path / "one.csv"
    recording.write_text("image,decision\ncat1-dog2.png,cat\ncat-and-dog.png,cat\n")
    with pytest.raises(UserError, match="cat-and-dog"):
        cb.evaluate([f"recorded:{recording}"], "cue_conflict", data_root=data_root, out=tmp_path / "run")
