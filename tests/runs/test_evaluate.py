"""From images to scores: the whole way, with observers whose answer is known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.responses.events import Event

COLUMNS = ["protocol", "protocol_version", "observer", "condition", "metric", "value"]
COLUMNS += ["ci_low", "ci_high", "ci_kind", "n", "n_excluded", "note", "ci_method"]
CLASSES = ("cat", "dog", "car", "clock")


def by_colour(channel: int) -> cb.Observer:
    """A model that reads the shape (red) or the texture (green) that the tiny stimuli carry in their colour."""

    def respond(pixels: np.ndarray) -> np.ndarray:
        level = pixels[:, channel].mean(axis=(1, 2))
        return -np.abs(level[:, None] - 40 * np.arange(4)[None]).astype(np.float32)

    name = ("red", "green")[channel]
    plain = cb.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    return cb.wrap(respond, preprocess=plain, labels=CLASSES, name=name, fingerprint=f"{name}-1")


def test_planted_biases_are_recovered(data_root: Path, tmp_path: Path) -> None:
    scores = cb.evaluate(["ideal:shape", "ideal:texture"], "cue_conflict", data_root=data_root, out=tmp_path / "run")
    assert scores.value("ideal:shape", "shape_bias") == 1
    assert scores.value("ideal:texture", "shape_bias") == 0
    assert scores.value("ideal:texture", "texture_accuracy") == 1


def test_a_wrapped_model_goes_through_decoding_and_preprocessing(data_root: Path, tmp_path: Path) -> None:
    observers = [by_colour(0), by_colour(1)]
    scores = cb.evaluate(observers, ["cue_conflict"], data_root=data_root, out=tmp_path / "run", workers=1)
    assert scores.value("red", "shape_bias") == 1
    assert scores.value("green", "shape_bias") == 0
    assert scores.record.images_decoded == 32


def test_the_run_folder_holds_what_it_should(data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    scores = cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=out)
    table = pq.read_table(out / "scores.parquet")
    rows = json.loads((out / "scores.json").read_text())
    assert table.column_names == COLUMNS == list(rows[0])
    assert table.num_rows == len(rows) == len(scores)
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "complete"
    assert record["arguments"]["observers"] == ["ideal:shape"]
    assert record["environment"]["packages"]["numpy"]
    assert isinstance(record["environment"]["cpu_instructions"], str)
    assert list((out / "responses").glob("*/*.parquet"))
    kinds = {r["ci_kind"] for r in rows if (r["metric"], r["condition"]) == ("shape_bias", "4-way")}
    assert kinds == {"images", "shape_sources", "texture_sources", "two_way"}


def test_the_denominators_are_told(data_root: Path, tmp_path: Path) -> None:
    scores = cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=tmp_path / "run")
    row = next(s for s in scores if (s.metric, s.condition) == ("shape_bias", "4-way"))
    assert (row.n, row.n_excluded) == (24, 8)
    assert "8 aligned" in row.note


def test_scoring_again_gives_the_same_bytes_without_images(data_root: Path, tmp_path: Path) -> None:
    import shutil

    out = tmp_path / "run"
    cb.evaluate(["ideal:random", by_colour(0)], "cue_conflict", data_root=data_root, out=out)
    before = {name: (out / name).read_bytes() for name in ("scores.json", "scores.parquet")}
    shutil.rmtree(data_root)
    cb.score(out)
    assert {name: (out / name).read_bytes() for name in before} == before


def test_intervals_in_closed_form_need_no_seed(data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    cb.evaluate("ideal:mixture?shape=0.6", "cue_conflict", data_root=data_root, out=out)
    one, two = cb.score(out, seed=1), cb.score(out, seed=2)
    for name in ("value", "ci_low", "ci_high"):
        numbers = [[x for s in scores if not math.isnan(x := getattr(s, name))] for scores in (one, two)]
        assert numbers[0] == numbers[1]
        assert numbers[0]


def test_a_limit_is_told_in_every_row(data_root: Path, tmp_path: Path) -> None:
    scores = cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=tmp_path / "run", limit=10)
    assert all("limited to 10 of 32" in s.note for s in scores if s.metric == "shape_bias")
    assert next(iter(scores.record.stimuli.values()))["partial"]


def test_a_failed_observer_is_a_row_and_the_rest_goes_on(data_root: Path, tmp_path: Path) -> None:
    def broken(pixels: np.ndarray) -> np.ndarray:
        raise ValueError("no such layer")

    bad = cb.wrap(broken, preprocess=cb.Preprocess(size=32), labels=CLASSES, name="bad", fingerprint="b")
    scores = cb.evaluate([bad, "ideal:shape"], "cue_conflict", data_root=data_root, out=tmp_path / "run")
    row = next(s for s in scores if s.observer == "bad")
    assert (row.metric, math.isnan(row.value)) == ("failed", True)
    assert "no such layer" in row.note
    assert scores.failures
    assert scores.value("ideal:shape", "shape_bias") == 1


def test_a_head_that_does_not_fit_fails_before_work(data_root: Path, tmp_path: Path) -> None:
    odd = cb.wrap(lambda x: x, preprocess=cb.Preprocess(size=32), labels=["oak", "elm"], name="trees", fingerprint="t")
    with pytest.raises(UserError, match="'cat' is none of its classes") as caught:
        cb.evaluate(odd, "cue_conflict", data_root=data_root, out=tmp_path / "run")
    assert "14 stimuli" in caught.value.message  # 8 by shape, 8 by texture, 2 of them by both


def test_wrong_number_of_logits_says_both_numbers(data_root: Path, tmp_path: Path) -> None:
    odd = cb.wrap(
        lambda x: np.zeros((len(x), 7), np.float32),
        preprocess=cb.Preprocess(size=32),
        labels=CLASSES,
        name="seven",
        fingerprint="7",
    )
    scores = cb.evaluate([odd, "ideal:shape"], "cue_conflict", data_root=data_root, out=tmp_path / "run")
    note = next(s for s in scores if s.observer == "seven").note
    assert "7" in note
    assert "4" in note


def test_same_name_other_weights_is_asked_again(data_root: Path, tmp_path: Path) -> None:
    def constant(winner: int) -> cb.Observer:
        def respond(x: np.ndarray) -> np.ndarray:
            return np.eye(4, dtype=np.float32)[[winner] * len(x)]

        plain = cb.Preprocess(size=32)
        return cb.wrap(respond, preprocess=plain, labels=CLASSES, name="same", fingerprint=f"w{winner}")

    out = tmp_path / "run"
    runs = [cb.evaluate(constant(w), "cue_conflict", data_root=data_root, out=out) for w in (0, 1)]
    cat = [next(s for s in r if s.condition == "4-way/class=cat" and s.metric == "shape_accuracy") for r in runs]
    assert [c.value for c in cat] == [1, 0]


def test_the_second_run_asks_nobody(data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = cb.evaluate(by_colour(0), "cue_conflict", data_root=data_root, out=out)
    second = cb.evaluate(by_colour(0), "cue_conflict", data_root=data_root, out=out)
    assert (first.record.images_decoded, second.record.images_decoded) == (32, 0)
    assert [repr(s) for s in first] == [repr(s) for s in second]


def test_events_count_up_to_the_total(data_root: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    cb.evaluate(
        [by_colour(0), "ideal:shape"], "cue_conflict", data_root=data_root, out=tmp_path / "run", on_event=events.append
    )
    counts = [e.done for e in events if e.kind == "batch"]
    assert counts == sorted(counts)
    assert counts[-1] == 64 == max(e.total for e in events)
    assert events[-1].kind == "finished"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocols": "cue_conflct"}, "Did you mean 'cue_conflict'"),
        ({"observers": "timn:resnet50"}, "Did you mean 'timm'"),
        ({"observers": "resnet50"}, "has no source"),
        ({"observers": "ideal:shpe"}, "Did you mean 'shape'"),
        ({"observers": []}, "no observer"),
        ({"protocols": []}, "no protocol"),
        ({"shard_size": -1}, "shard size must be 1 or more"),
        ({"precision": "float8"}, "float8"),
        ({"data_root": "/nowhere"}, "nowhere"),
        ({"data_root": None}, "needs its stimuli"),
        ({"observers": ["ideal:shape", "ideal:shape"]}, "two observers are called"),
    ],
)
def test_mistakes_are_named(data_root: Path, tmp_path: Path, arguments: dict, message: str) -> None:
    call = {
        "observers": "ideal:shape",
        "protocols": "cue_conflict",
        "data_root": data_root,
        "out": tmp_path / "run",
    } | arguments
    with pytest.raises(UserError, match=message):
        cb.evaluate(call.pop("observers"), call.pop("protocols"), **call)


def test_a_file_in_the_way_of_the_run_folder(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(UserError, match=r"(?s)a file of that name is in the way.*choose another"):
        cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=tmp_path / "run")


def test_two_runs_cannot_write_the_same_folder(data_root: Path, tmp_path: Path) -> None:
    from cuebench.files import make_folder
    from cuebench.runs.record import locked

    out = make_folder(tmp_path / "run")
    with locked(out), pytest.raises(UserError, match="another run"):
        cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=out)


def test_a_full_disk_loses_nothing_that_was_finished(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    out, written, original = tmp_path / "run", [], os.replace

    def full(source: Path, target: Path) -> None:
        if target.parent.parent.name == "responses" and target.suffix == ".parquet":
            if len(written) == 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            written.append(target)
        original(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UserError, match="disk is full") as caught:
        cb.evaluate(by_colour(0), "cue_conflict", data_root=data_root, out=out, shard_size=8)
    assert "same command" in caught.value.hint
    assert not list(out.rglob("*.tmp"))
    monkeypatch.setattr(os, "replace", original)
    scores = cb.evaluate(by_colour(0), "cue_conflict", data_root=data_root, out=out, shard_size=8)
    assert scores.record.images_decoded == 16
    assert scores.value("red", "shape_bias") == 1


def test_common_restricts_everybody_to_the_same_stimuli(data_root: Path, tmp_path: Path) -> None:
    import csv

    recording = tmp_path / "one.csv"
    with recording.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "decision"])
        writer.writerows([["cat1-dog2.png", "cat"], ["dog1-cat2.png", "cat"]])
    out = tmp_path / "run"
    observers = ["ideal:shape", f"recorded:{recording}"]
    every = cb.evaluate(observers, "cue_conflict", data_root=data_root, out=out)
    assert next(s.n for s in every if s.observer == "ideal:shape" and s.metric == "shape_bias") == 24
    shared = cb.score(out, common=True)
    counts = {s.observer: s.n for s in shared if s.metric == "shape_bias" and s.condition == "4-way"}
    assert set(counts.values()) == {2}
    assert all(
        "that all observers saw" in s.note for s in shared if s.observer == "ideal:shape" and s.metric == "shape_bias"
    )


def test_ideal_observers_choose_among_the_classes_of_each_protocol(data_root: Path, tmp_path: Path) -> None:
    (data_root / "imagenet_val" / "zebra").mkdir(parents=True)
    from PIL import Image

    Image.new("RGB", (32, 32)).save(data_root / "imagenet_val" / "zebra" / "1.png")
    names = ["cue_conflict", "imagenet_accuracy"]
    scores = cb.evaluate(["ideal:shape", "ideal:random"], names, data_root=data_root, out=tmp_path / "run")
    assert scores.value("ideal:shape", "shape_bias") == 1
    assert scores.value("ideal:shape", "accuracy", "top1") == 1
    assert 0 < scores.value("ideal:random", "decided_fraction") < 1


def test_people_are_not_a_failure_of_a_protocol_that_needs_logits(data_root: Path, tmp_path: Path) -> None:
    from PIL import Image

    (data_root / "imagenet_val" / "cat").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(data_root / "imagenet_val" / "cat" / "1.png")
    recording = tmp_path / "one.csv"
    recording.write_text("image,decision\ncat1-dog2.png,cat\n")
    names = ["cue_conflict", "imagenet_accuracy"]
    scores = cb.evaluate(["ideal:shape", f"recorded:{recording}"], names, data_root=data_root, out=tmp_path / "run")
    assert not scores.failures
    (row,) = [s for s in scores if s.metric == "not_applicable"]
    assert "needs logits" in row.note
    with pytest.raises(UserError, match="needs logits"):
        cb.evaluate(f"recorded:{recording}", names[1], data_root=data_root, out=tmp_path / "other")


def test_score_of_something_else_says_what_a_run_folder_is(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        cb.score(tmp_path)


def test_a_limit_draws_whole_images(tmp_path: Path) -> None:
    from cuebench.runs.experiments import Experiment
    from cuebench.types import Stimulus, StimulusSet

    pictures = tuple(Stimulus(f"{i}|{c}", condition=c) for c in ("clean", "dark", "noisy") for i in range(20))
    experiment = Experiment(cb.registry.protocols.get("corruption_robustness"), {}, limit=10, seed=3)
    found = experiment.limited(StimulusSet("s", pictures, "", 60))
    assert len(found) == 12  # four images with three pictures each
    assert len({s.image for s in found}) == 4
    assert found.partial == ("limited to 12 of 60 stimuli (4 of 20 images)",)
    assert list(found) == [s for s in pictures if s in set(found)]  # in the order of the manifest
    assert {s.image for s in found} != {"0", "1", "2", "3"}


def test_a_limit_shows_people_and_models_the_same_images(data_root: Path, tmp_path: Path) -> None:
    """A recording of more images than lie here: a draw of its own would hardly meet the models'."""
    from cuebench.protocols.cue_conflict import read

    names = [s.id for s in read(data_root)] + [f"cat{i}-dog{i}" for i in range(10, 200)]
    lines = ["subject,stimulus,decision,rt", *(f"anna,{n},cat,0.9" for n in names)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    observers = ["ideal:shape", f"recorded:{tmp_path / 'people.csv'}"]
    found = cb.evaluate(observers, "cue_conflict", data_root=data_root, out=tmp_path / "r", limit=10, resamples=100)
    counts = {r.observer: r.n + r.n_excluded for r in found if r.metric == "shape_accuracy" and r.condition == "4-way"}
    assert counts == {"ideal:shape": 10, "anna": 10}
    assert "limited to 10 stimuli of the run" in next(r.note for r in found if r.observer == "anna")
    assert cb.score(tmp_path / "r", common=True)


def test_nothing_in_common_is_said(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("subject,stimulus,decision,rt\nanna,cat77-dog77,cat,0.9")
    observers = ["ideal:shape", f"recorded:{tmp_path / 'other.csv'}"]
    cb.evaluate(observers, "cue_conflict", data_root=data_root, out=tmp_path / "r", resamples=100)
    with pytest.raises(UserError, match="no stimulus was shown to all of ideal:shape, anna"):
        cb.score(tmp_path / "r", common=True)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("cue_conflict.foo", "unknown option of protocol 'cue_conflict'"),
        ("population", "no protocol of this run is called 'population'"),
        ("triplets.draw", "no protocol of this run is called 'triplets'"),
    ],
)
def test_options_without_effect_are_refused(data_root: Path, tmp_path: Path, setting: str, words: str) -> None:
    cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=tmp_path / "r", resamples=100)
    with pytest.raises(UserError, match=words):
        cb.score(tmp_path / "r", settings={setting: "3"})
    with pytest.raises(UserError, match=words):
        cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=tmp_path / "q", settings={setting: "3"})


def test_a_bare_module_is_told_to_be_wrapped(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected an observer or a spec such as timm:resnet50; got dict"):
        cb.evaluate([{}], "triplets", out=tmp_path)  # type: ignore[list-item]


@pytest.mark.parametrize("size", [0, -5, "224", (224,), (224, 0), 22.4])
def test_a_size_that_is_none(size: object) -> None:
    with pytest.raises(UserError, match="Preprocess size is"):
        cb.Preprocess(size=size)  # type: ignore[arg-type]


def test_missing_data_is_told_to_ideal_observers_too(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="imagenet_val"):
        cb.evaluate("ideal:shape", "imagenet_accuracy", data_root=tmp_path, out=tmp_path / "r")


def test_a_failure_that_nobody_listens_to_is_a_warning(data_root: Path, tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="not measured: recorded:nowhere"):
        found = cb.evaluate(
            ["ideal:shape", "recorded:nowhere"], "cue_conflict", data_root=data_root, out=tmp_path / "r"
        )
    assert "1 not measured" in repr(found)
    assert len(repr(found)) < 300
