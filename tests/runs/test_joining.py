"""The same ``--out`` again: observers and protocols are added under the same conditions, and refused under others."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cuebench as cb
from cuebench.errors import UserError
from cuebench.protocols.cue_conflict import PROTOCOL
from cuebench.responses.events import Event
from cuebench.responses.job import JobRecord
from cuebench.runs.joining import check_observers

CLASSES = ("cat", "dog", "car", "clock")
FILES = ("scores.parquet", "scores.json")


def model(name: str = "model", winner: int = 0, fingerprint: str = "") -> cb.Observer:
    def respond(pixels: np.ndarray) -> np.ndarray:
        return np.eye(4, dtype=np.float32)[[winner] * len(pixels)]

    plain = cb.Preprocess(size=32)
    return cb.wrap(respond, preprocess=plain, labels=CLASSES, name=name, fingerprint=fingerprint or name)


@pytest.fixture
def measure(data_root: Path, tmp_path: Path) -> Any:
    (data_root / "imagenet_val" / "cat").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(data_root / "imagenet_val" / "cat" / "1.png")

    def run(observers: Any, protocols: Any = "cue_conflict", out: str = "run", **options: Any) -> cb.Scores:
        options = {"data_root": data_root, "resamples": 100, "workers": 0, **options}
        return cb.evaluate(observers, protocols, out=tmp_path / out, **options)

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_observers_and_protocols_are_added(measure: Any) -> None:
    both = ["cue_conflict", "imagenet_accuracy"]
    whole = measure([model("a"), model("b", 1), "ideal:shape"], both, out="whole").out
    out = measure(model("a")).out
    measure([model("b", 1), "ideal:shape"])
    measure([model("a"), "ideal:shape"], "imagenet_accuracy")
    events: list[Event] = []
    measure(model("b", 1), "imagenet_accuracy", on_event=events.append)
    assert any("holds answers of a, b, ideal:shape too" in e.message for e in events if e.kind == "notice")
    assert contents(out) == contents(whole)
    again = measure(model("a"))  # repeating one of the commands costs nothing and changes nothing
    assert contents(out) == contents(whole)
    assert again.record.images_decoded == 0
    assert cb.load(out).observers == ["a", "b", "ideal:shape"]
    cb.score(out)
    assert contents(out) == contents(whole)


def test_answers_of_a_changed_model_that_were_not_asked_for_are_named(measure: Any, data_root: Path) -> None:
    """What is set aside with the answers that differ, and what is left of the model before."""
    twin = replace(PROTOCOL, name="twin")  # its answers lie in the same folder as those of cue_conflict
    measure(model("a"), ["cue_conflict", twin, "imagenet_accuracy"])
    events: list[Event] = []
    scores = measure(model("a", winner=1), "cue_conflict", on_event=events.append)
    told = [e.message for e in events if e.kind == "notice" and e.message.startswith("a answers differently now")]
    assert [text.partition("; ")[0].partition(": ")[2] for text in told] == [
        "its answers to twin are set aside too",
        "its answers to imagenet_accuracy are those from before",
    ]
    assert told[1].endswith("-o a -p imagenet_accuracy")
    assert set(told) <= set(scores.record.notices)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 1}, "seed was 0, now 1"),
        ({"limit": 10}, "limit was 0, now 10"),
        ({"shard_size": 8}, "shard size was 256, now 8"),
        ({"precision": "bfloat16"}, "precision was 'float32', now 'bfloat16'"),
        ({"cues_on": "device"}, "cues on was 'cpu', now 'device'"),
    ],
)
def test_other_conditions_are_refused_and_cost_nothing(measure: Any, options: dict, words: str) -> None:
    out = measure(model("a")).out
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    for observer in (model("a"), model("b")):
        with pytest.raises(UserError, match=rf"(?s)other conditions: {words}.*--fresh"):
            measure(observer, **options)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    assert measure(model("b"), fresh=True, **options).observers == ["b"]
    assert measure(model("a"), **options).observers == ["b", "a"]  # the same conditions are no others


def test_other_settings_of_the_same_protocol_are_refused(measure: Any) -> None:
    arguments: dict[str, Any] = {"protocols": "triplets", "data_root": None}
    small = {"triplets.experiments": "3", "triplets.draw": "50"}
    measure("ideal:shape", settings=small, **arguments)
    with pytest.raises(UserError, match=r"triplets\.draw was"):
        measure("ideal:texture", settings={**small, "triplets.draw": "60"}, **arguments)
    both = measure("ideal:texture", settings=small, **arguments)
    assert both.observers == ["ideal:shape", "ideal:texture"]
    assert measure("ideal:shape").protocols == ["triplets", "cue_conflict"]  # the settings of triplets are kept


def test_other_stimuli_are_refused(measure: Any, data_root: Path) -> None:
    measure(model("a"))
    next(data_root.glob("cue_conflict/stimuli/cat/*.png")).unlink()
    with pytest.raises(UserError, match="answers of a to other stimuli"):
        measure(model("b"))
    assert measure([model("a"), model("b")]).observers == ["a", "b"]


def test_one_name_for_two_models_is_refused(measure: Any) -> None:
    measure(model("a"))
    with pytest.raises(UserError, match="'a' answered 'cue_conflict' as another model"):
        measure(model("a", 1, "other"), "imagenet_accuracy")
    measure(model("a", 1, "other"), ["cue_conflict", "imagenet_accuracy"])


def test_one_name_for_two_models_is_refused_with_other_classes_too(measure: Any) -> None:
    """Only the weights of a text encoder are made of the classes."""

    def job(adapter: str, weights: str, classes: str, protocol: str) -> JobRecord:
        key = {"adapter": adapter, "weights": weights, "labels": classes}
        return JobRecord(protocol, "", "a", "model", "s:a", ("logits",), f"{protocol}.parquet", "a", None, key)

    for adapter, accepted in {"checkpoint/1": False, "wrap/1": False, "nowhere/1": False, "open_clip/1": True}.items():
        before, added = [job(adapter, "v", "x", "p")], [job(adapter, "w", "y", "q")]
        if accepted:
            check_observers(before, before, added, "here", "")
        else:
            with pytest.raises(UserError, match="'a' answered 'p' as another model"):
                check_observers(before, before, added, "here", "")
    measure(model("a"))
    turned = cb.wrap(
        lambda x: np.eye(4, dtype=np.float32)[[1] * len(x)],
        preprocess=cb.Preprocess(size=32), labels=CLASSES[::-1], name="a", fingerprint="other",
    )  # fmt: skip
    with pytest.raises(UserError, match="'a' answered 'cue_conflict' as another model"):
        measure(turned, "imagenet_accuracy")


def test_an_observer_that_failed_before_is_not_forgotten(measure: Any) -> None:
    with pytest.warns(RuntimeWarning, match="not measured"):
        measure([model("a"), "recorded:nowhere"])
    with pytest.warns(RuntimeWarning, match="recorded:nowhere"):
        scores = measure(model("b"))
    assert [f.observer for f in scores.record.failures] == ["recorded:nowhere"]


def test_a_failure_stays_on_the_protocols_that_were_not_asked_for_again(measure: Any, tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    spec = f"python:{file}:make"

    def failed() -> set[tuple[str, str]]:
        rows = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))
        return {(row["protocol"], row["observer"]) for row in rows if row["metric"] == "failed"}

    with pytest.warns(RuntimeWarning, match="not measured"):
        scores = measure([model("a"), spec], ["cue_conflict", "imagenet_accuracy"])
    assert failed() == {("cue_conflict", spec), ("imagenet_accuracy", spec)}
    assert len(scores.failures) == 1  # told once
    file.write_text(
        "import numpy as np\nimport cuebench as cb\n\ndef make():\n"
        "    return cb.wrap(lambda x: np.eye(4, dtype=np.float32)[[0] * len(x)], preprocess=cb.Preprocess(size=32),\n"
        f"                   labels={CLASSES!r}, name='late', fingerprint='late')\n"
    )
    with pytest.warns(RuntimeWarning, match="not measured"):
        measure(spec, "imagenet_accuracy")
    assert failed() == {("cue_conflict", spec)}
    measure(spec, "cue_conflict")
    assert failed() == set()


def test_an_earlier_record_did_not_say_on_which_protocols_nothing_was_loaded(measure: Any, tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="not measured"):
        before = measure([model("a"), "ideal:nobody"], ["cue_conflict", "imagenet_accuracy"]).record
    before.failures = [replace(f, protocol="") for f in before.failures[:1]]
    before.write(tmp_path / "run")
    with pytest.warns(RuntimeWarning, match="not measured"):
        after = measure(model("b")).record
    assert {f.protocol for f in after.failures} == {"cue_conflict", "imagenet_accuracy"}


def test_the_order_of_failed_rows_does_not_depend_on_repetitions(measure: Any) -> None:
    first, second = [model("a"), "ideal:x"], ["ideal:shape", "ideal:y"]
    both = ["cue_conflict", "imagenet_accuracy"]
    for names in (first, second):
        with pytest.warns(RuntimeWarning, match="not measured"):
            out = measure(names, both).out
    whole = measure([*first, *second], both, out="whole", on_event=lambda event: None).out
    assert contents(out) == contents(whole)
    measure(first, both, on_event=lambda event: None)
    assert contents(out) == contents(whole)


def test_what_a_killed_run_left_unanswered_is_a_failure(measure: Any, tmp_path: Path) -> None:
    out = measure([model("a"), model("b")]).out
    shutil.rmtree(next(out.glob("responses/b--*")))
    with pytest.warns(RuntimeWarning, match="b: no stored answers"):
        scores = measure(model("a"))
    assert scores.observers == ["a"]


@pytest.mark.parametrize("name", ["人間", "модель", "…", "_"])
def test_fresh_deletes_answers_of_any_name(measure: Any, name: str) -> None:
    out = measure(model(name)).out
    assert len(list(out.glob("responses/*/key.json"))) == 1
    measure("ideal:shape", fresh=True)
    assert [p.parent.name.partition("--")[0] for p in out.glob("responses/*/key.json")] == ["ideal_shape"]


def test_a_model_that_changes_the_folder_moves_nothing(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "model.py").write_text(
        "import os\nimport numpy as np\nimport cuebench as cb\n\ndef make():\n"
        f"    os.chdir({str(tmp_path / 'elsewhere')!r})\n"
        "    plain = cb.Preprocess(size=32)\n"
        "    return cb.wrap(lambda x: np.eye(4, dtype=np.float32)[[0] * len(x)], preprocess=plain,\n"
        f"                   labels={CLASSES!r}, name='m', fingerprint='m')\n"
    )
    monkeypatch.chdir(tmp_path)
    spec = f"python:{tmp_path / 'model.py'}:make"
    cb.evaluate(spec, "cue_conflict", data_root="data", out="run", resamples=100, workers=0)
    assert os.getcwd() == str(tmp_path / "elsewhere")
    assert (tmp_path / "run" / "scores.json").is_file()
    assert not list((tmp_path / "elsewhere").iterdir())


# ------------------------------------------------------------------------------------------------------------ merge


def test_merged_runs_give_the_scores_of_one_run(measure: Any, tmp_path: Path) -> None:
    both = ["cue_conflict", "imagenet_accuracy"]
    whole = measure([model("a"), model("b", 1), "ideal:shape"], both, out="whole").out
    first = measure([model("a"), model("b", 1)], both, out="first").out
    second = measure([model("b", 1), "ideal:shape"], both, out="second").out
    before = {p: p.read_bytes() for run in (first, second) for p in run.rglob("*") if p.is_file()}
    merged = cb.merge([first, second], tmp_path / "merged")
    assert contents(merged.out) == contents(whole)
    assert contents(cb.merge([first, second], tmp_path / "merged").out) == contents(whole)
    assert {p: p.read_bytes() for run in (first, second) for p in run.rglob("*") if p.is_file()} == before
    shutil.rmtree(first)
    shutil.rmtree(second)
    cb.score(merged.out)
    assert contents(merged.out) == contents(whole)


def test_what_cannot_be_merged_is_named(measure: Any, tmp_path: Path, data_root: Path) -> None:
    first = measure(model("a"), out="first").out
    cases = {
        "seed was 0, now 1": measure(model("b"), out="seed", seed=1).out,
        "a answered 'cue_conflict' differently": measure(model("a", 1), out="other").out,
        "two or more different runs": first,
        "is not a run folder": tmp_path / "nothing",
    }
    unfinished = measure(model("b"), out="unfinished").out
    body = json.loads((unfinished / "run.json").read_text())
    body |= {"status": "stopped", "format": 2}
    del body["checksum"]
    (unfinished / "run.json").write_text(json.dumps(body))
    cases["is not finished"] = unfinished
    damaged = measure(model("b"), out="damaged").out
    shard = next(damaged.glob("responses/*/*.parquet"))
    data = bytearray(shard.read_bytes())
    data[100] ^= 1
    shard.write_bytes(data)
    cases["damaged"] = damaged
    next(data_root.glob("cue_conflict/stimuli/cat/*.png")).unlink()
    cases["other stimuli"] = measure(model("b"), out="stimuli").out
    for number, (words, other) in enumerate(cases.items()):
        with pytest.raises(UserError, match=words):
            cb.merge([first, other], tmp_path / f"merged-{number}")
    with pytest.raises(UserError, match="holds another run"):
        cb.merge([first, cases["other stimuli"]], cases["seed was 0, now 1"])
