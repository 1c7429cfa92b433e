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
from cuebench.runs.joining import check_observers, with_unreadable
from cuebench.runs.record import RunRecord

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


BOTH = ["cue_conflict", "imagenet_accuracy"]
SMALL = {"triplets.experiments": "3", "triplets.draw": "50"}


def breaking(name: str) -> cb.Observer:
    def respond(pixels: np.ndarray) -> np.ndarray:
        raise ValueError("no such layer")

    return cb.wrap(respond, preprocess=cb.Preprocess(size=32), labels=CLASSES, name=name, fingerprint=name)


def measured(record: RunRecord) -> set[tuple[str, str]]:
    return {(job.observer, job.protocol) for job in record.jobs}


def failed(record: RunRecord) -> list[tuple[str, str]]:
    return [(failure.observer, failure.protocol) for failure in record.failures]


def no_one(event: Event) -> None:
    """Hear what would be a warning."""


def test_people_whom_one_protocol_brings_keep_their_answers_to_the_others(measure: Any, tmp_path: Path) -> None:
    """A command that does not name an observer replaces it where it was measured again only."""
    people = tmp_path / "people"
    people.mkdir()
    header = "subj,session,trial,rt,object_response,category,condition,imagename\n"
    (people / "ann.csv").write_text(f"{header}ann,1,1,1,cat,cat,0,cat1-dog2.png\n")
    twin = replace(PROTOCOL, name="twin", people=None)
    spec = f"recorded:{people}"
    measure([model("a"), spec], twin)
    bringing = replace(PROTOCOL, name="bringing", people=lambda root: spec)
    scores = measure(model("a"), [bringing, twin])
    name = next(job.observer for job in scores.record.jobs if job.spec == spec)
    assert {(name, "twin"), (name, "bringing")} <= measured(scores.record)


def test_what_cannot_be_applied_is_no_failure_once_the_observer_is_measured_elsewhere(measure: Any) -> None:
    whole = measure([model("a"), "ideal:shape"], ["cue_conflict", "triplets"], out="whole", settings=SMALL).out
    measure([model("a"), "ideal:shape"])
    scores = measure([model("a"), "ideal:shape"], "triplets", settings=SMALL, on_event=no_one)
    assert not scores.record.failures
    assert [(s.observer, s.protocol) for s in scores.record.skipped] == [("a", "triplets")]
    assert contents(scores.out) == contents(whole)


def test_a_model_that_is_added_to_another_protocol_is_said_not_to_be_asked_again(measure: Any) -> None:
    """Its environment may have changed in between: nobody would see it."""
    measure([model("a"), model("b")])
    events: list[Event] = []
    scores = measure(model("a", winner=1), "imagenet_accuracy", on_event=events.append)
    (told,) = [e.message for e in events if "holds answers of a, b too" in e.message]
    assert told.endswith(
        "; the answers of a to cue_conflict were not asked again: run it with -o a -p cue_conflict to check"
    )
    assert "the answers of b" not in told
    assert told in scores.record.notices
    events.clear()
    measure(model("a", winner=1), on_event=events.append)  # as it is told to: the change is found
    assert any(e.message.startswith("a answers differently now") for e in events)


def test_what_could_not_be_read_counts_once(measure: Any, data_root: Path) -> None:
    """An earlier cuebench wrote ids without their set."""
    keys = {"0123456789ab/cat/1.png": "new"}
    assert with_unreadable({"cat/1.png": "old", "z.png": "old"}, keys) == {**keys, "z.png": "old"}
    path = sorted((data_root / "cue_conflict" / "stimuli").rglob("*.png"))[0]
    path.write_bytes(path.read_bytes()[:40])
    allowed = {"allow_unreadable": 0.1, "on_event": no_one}
    record = measure([model("a"), model("b")], **allowed).record
    (key,) = record.unreadable
    record.unreadable = {key.partition("/")[2]: record.unreadable[key]}
    record.write(measure(model("b"), **allowed).out)
    assert set(measure(model("b"), **allowed).record.unreadable) == {key}


# ------------------------------------------------------------------------------------------------------------ merge


def test_runs_whose_observers_have_not_seen_everything_are_merged_whole(measure: Any, tmp_path: Path) -> None:
    measure(model("a"), BOTH, out="whole")
    whole = measure(model("b", 1), "imagenet_accuracy", out="whole").out
    first = measure(model("a"), BOTH, out="first").out
    measure(model("a"), "cue_conflict", out="second")
    second = measure(model("b", 1), "imagenet_accuracy", out="second").out
    for number, runs in enumerate(([first, second], [second, first])):
        merged = cb.merge(runs, tmp_path / f"merged-{number}")
        assert measured(merged.record) == {("a", "cue_conflict"), ("a", BOTH[1]), ("b", BOTH[1])}
        assert contents(merged.out) == contents(whole)


def test_a_failure_stays_in_a_merge_where_no_run_has_measured_it(measure: Any, tmp_path: Path) -> None:
    first = measure([model("a"), breaking("c"), "recorded:nowhere"], BOTH, out="first", on_event=no_one).out
    second = measure([breaking("a"), breaking("c"), model("b", 1)], BOTH, out="second", on_event=no_one).out
    assert set(failed(cb.load(second).record)) == {(name, protocol) for name in "ac" for protocol in BOTH}
    for number, runs in enumerate(([first, second], [second, first])):
        merged = cb.merge(runs, tmp_path / f"merged-{number}")
        assert measured(merged.record) == {(name, protocol) for name in "ab" for protocol in BOTH}
        left = [(name, protocol) for name in ("c", "recorded:nowhere") for protocol in BOTH]
        assert sorted(failed(merged.record)) == sorted(left)


def test_failures_of_an_earlier_cuebench_are_the_same_on_both_sides_of_a_merge(measure: Any, tmp_path: Path) -> None:
    """It did not say on which protocols something could not be loaded."""
    first, second = (measure([model(n), "ideal:x"], BOTH, out=n, on_event=no_one) for n in "ab")
    for scores in (first, second):
        scores.record.failures = [replace(f, protocol="") for f in scores.record.failures[:1]]
        scores.record.write(scores.out)
    merged = cb.merge([first.out, second.out], tmp_path / "merged")
    assert sorted(failed(merged.record)) == [("ideal:x", protocol) for protocol in BOTH]


def test_a_merge_says_which_runs_were_scored_with_other_options(measure: Any, tmp_path: Path) -> None:
    first, second = (measure(model(name), out=name).out for name in "ab")
    other = measure(model("c"), out="c", resamples=200).out
    cb.score(second, common=True)
    cb.score(other, settings={"cue_conflict.view": "resized"})
    whole = measure([model("a"), model("b"), model("c")], out="whole").out
    with pytest.warns(RuntimeWarning, match="was scored with other options"):
        merged = cb.merge([first, second, other], tmp_path / "merged")
    assert contents(merged.out) == contents(whole)
    told = [text for text in merged.record.notices if "was scored with other options" in text]
    assert [text.partition(" was ")[0] for text in told] == [str(second), str(other)]
    assert "common True, here False;" in told[0]
    assert "resamples 200, here 100; cue_conflict.view 'resized', here 'native'" in told[1]
    with pytest.warns(RuntimeWarning, match="resamples 100, here 200"):
        assert cb.merge([other, first], tmp_path / "turned").record.options.resamples == 200


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
