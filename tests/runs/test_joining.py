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
from cuebench.observers.load import with_distinct_names
from cuebench.observers.spec_files import meant
from cuebench.protocols.cue_conflict import PROTOCOL
from cuebench.registry import protocols
from cuebench.responses.events import Event
from cuebench.responses.job import JobRecord
from cuebench.runs.joining import _check_code, check_observers, with_unreadable
from cuebench.runs.loading import Loaded, _name_clashes
from cuebench.runs.people import is_brought
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
        ({"background": "black"}, "background was 'white', now 'black'"),
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


# ------------------------------------------------------------------------------------- the same name, another model


MODULE = """import numpy as np
import cuebench as cb

def made(winner):
    return cb.wrap(lambda x: np.eye(4, dtype=np.float32)[[winner] * len(x)], preprocess=cb.Preprocess(size=32),
                   labels=("cat", "dog", "car", "clock"), name=NAME, fingerprint=f"{winner}")

def a(): return made(0)
def b(): return made(1)
"""


def write_module(folder: Path, name: str = "net") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "m.py").write_text(MODULE.replace("NAME", repr(name)))


def test_another_model_of_the_same_name_replaces_nothing(
    measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(tmp_path)
    monkeypatch.chdir(tmp_path)
    measure(["python:m.py:a", "ideal:shape"])
    match = r"(?s)two observers are called 'net'.*-o 'python:m.py:b\?name=NAME'"
    with pytest.raises(UserError, match=match):
        measure("python:m.py:b")
    assert measure(f"python:{tmp_path / 'm.py'}:a").observers == ["net", "ideal:shape"]  # the same, named absolutely
    assert measure("python:m.py:a").record.arguments["observers"] == ["python:m.py:a", "ideal:shape"]
    (tmp_path / "m.py").write_text(MODULE.replace("NAME", "'net'").replace("made(0)", "made(2)"))
    assert measure("python:m.py:a").observers == ["net", "ideal:shape"]  # updated in place: asked anew, as ever


def test_the_hint_for_two_observers_of_one_name_replaces_the_name(tmp_path: Path) -> None:
    entries = [Loaded(model("net"), f"python:m.py:{name}?name=net&seed=1", "") for name in "ab"]
    ((_, clash),) = _name_clashes(entries, {})
    assert clash.hint == "name one of them: python:m.py:b?seed=1&name=NAME"


def test_files_of_one_name_keep_the_names_that_the_folder_knows() -> None:
    one, two = ("checkpoint:e1/m.pt?arch=x:y", "checkpoint:e2/m.pt?arch=x:y")
    alone = [meant(one, "/w")]
    assert with_distinct_names([two], alone, "/w") == [f"{two}&name=checkpoint:e2/m"]
    assert with_distinct_names([one, two], alone, "/w") == [one, f"{two}&name=checkpoint:e2/m"]
    assert with_distinct_names(["checkpoint:m.pt?arch=x:y"], alone, "/w/e1") == ["checkpoint:m.pt?arch=x:y"]
    assert with_distinct_names(["checkpoint:m.pt?arch=x:y"], alone, "/w/e2")[0].endswith("&name=checkpoint:e2/m")
    both = [meant(str(spec), "/w") for spec in with_distinct_names([one, two], (), "/w")]
    assert with_distinct_names([two], both, "/w") == [f"{two}&name=checkpoint:e2/m"]
    mine = [meant(f"{one}&name=mine", "/w")]
    assert with_distinct_names([one], mine, "/w") == [one]  # a name that somebody chose is not guessed


def test_specs_of_another_folder_stay_what_they_are(
    measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        write_module(tmp_path / name, name)
    monkeypatch.chdir(tmp_path / "here")
    measure("python:m.py:a")
    monkeypatch.chdir(tmp_path / "there")
    scores = measure("python:m.py:a")
    here = f"python:{tmp_path.resolve() / 'here' / 'm.py'}:a?name=python:m.py:a"
    assert scores.record.arguments["observers"] == [here, "python:m.py:a"]
    assert {job.observer: job.spec for job in scores.record.jobs} == {"here": here, "there": "python:m.py:a"}
    monkeypatch.chdir(tmp_path / "here")
    scores = measure("python:m.py:a")
    assert [job.observer for job in scores.record.jobs] == ["here", "there"]
    assert scores.record.arguments["observers"][0] == "python:m.py:a"


def test_the_folder_of_a_command_may_have_been_moved(
    measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(tmp_path / "one")
    monkeypatch.chdir(tmp_path / "one")
    measure("python:m.py:a")
    (tmp_path / "one").rename(tmp_path / "two")
    monkeypatch.chdir(tmp_path / "two")
    assert measure("python:m.py:a").record.arguments["observers"] == ["python:m.py:a"]


# ------------------------------------------------------------------------- pictures and summaries made by other code


CUE = '''"""Dim."""
from cuebench.cues.base import CueInfo, on_images

CUE = CueInfo(kind="corruption", reference="x", levels={"steps": (2, 4)})

@CUE
def dim(image, *, steps=4):
    """Dim.

    Parameters
    ----------
    image : array
        x.
    steps : int
        x.

    Returns
    -------
    array
        x.
    """
    return on_images(lambda p: p * FACTOR, image)

FACTOR = 1.0
'''


def dimmed(file: Path) -> Any:
    cb.allow_code(file)

    def read(root: Path) -> Any:
        stimuli = PROTOCOL.read(root)
        return replace(stimuli, stimuli=tuple(replace(s, recipe=f"python:{file}:dim?steps=4") for s in stimuli))

    return replace(PROTOCOL, name="dimmed", title="Dimmed", read=read)


def test_pictures_that_other_code_makes_are_not_put_side_by_side(measure: Any, tmp_path: Path) -> None:
    file = tmp_path / "dim.py"
    file.write_text(CUE)
    protocol = dimmed(file)
    first = measure([model("a"), "ideal:shape"], protocol, out="first").out
    measure([model("a"), "ideal:shape"], protocol)
    assert measure(model("b"), protocol).observers == ["a", "ideal:shape", "b"]
    file.write_text(CUE.replace("FACTOR = 1.0", "FACTOR = 0.25"))
    match = r"(?s)a, b on 'dimmed': the pictures are made by other code now \(dim\).*asked anew: -o a -o b;"
    with pytest.raises(UserError, match=match):
        measure(model("c"), protocol)
    assert measure("ideal:texture", protocol).observers[-1] == "ideal:texture"  # it looks at no pictures
    scores = measure([model("a"), model("b"), model("c")], protocol)  # as the hint says
    versions = {str(job.key["preprocess"]) for job in scores.record.jobs if job.key["preprocess"]}
    assert len(versions) == 1
    second = measure(model("b"), protocol, out="second").out
    with pytest.raises(UserError, match=r"(?s)a on 'dimmed'.*leave one of the runs out"):
        cb.merge([first, second], tmp_path / "merged", protocols=[protocol])


def test_summaries_of_other_code_are_not_put_side_by_side() -> None:
    def job(name: str, needs: tuple[str, ...], recipes: dict[str, str]) -> JobRecord:
        key = {"needs": needs, "preprocess": {"size": 32, "recipes": recipes}}
        return JobRecord("p", "", name, "model", f"s:{name}", ("logits",), "p-0.parquet", name, None, key)

    old = job("a", ("logits", "summary of p/1 classes old"), {"dim": "1 on cuda"})
    same = job("b", ("logits", "summary of p/1 other old"), {"dim": "1"})
    _check_code([old], [same], "here", "", merging=False)
    with pytest.raises(UserError, match="a on 'p': the summary that is kept of answers is made by other code now"):
        _check_code([old], [job("b", ("logits", "summary of p/1 classes new"), {"dim": "1"})], "here", "", merging=True)


# ------------------------------------------------------------------------------------------------------------ people


HEADER = "subj,session,trial,rt,object_response,category,condition,imagename\n"


def write_people(folder: Path, *names: str) -> str:
    folder.mkdir()
    for name in names:
        (folder / f"{name}.csv").write_text(f"{HEADER}{name},1,1,1,cat,cat,0,cat1-dog2.png\n")
    return f"recorded:{folder}"


@pytest.mark.parametrize("first", ["named", "brought"])
def test_people_who_are_brought_along_give_way_to_those_that_are_named(
    measure: Any, tmp_path: Path, first: str
) -> None:
    """Both groups have a pooled observer of the same name."""
    mine, theirs = write_people(tmp_path / "mine", "ann", "bob"), write_people(tmp_path / "theirs", "cleo", "dora")
    bringing = replace(PROTOCOL, name="bringing", people=lambda root: theirs)
    commands = [mine, model("a")] if first == "named" else [model("a"), mine]
    for command in commands:
        out = measure(command, bringing).out
    whole = measure(commands, bringing, out="whole").out
    assert contents(out) == contents(whole)
    assert not [job for job in cb.load(out).record.jobs if job.brought]
    assert contents(measure(model("a"), bringing).out) == contents(whole)


def test_people_who_are_brought_along_are_marked_and_give_way_in_a_merge(measure: Any, tmp_path: Path) -> None:
    mine, theirs = write_people(tmp_path / "mine", "ann", "bob"), write_people(tmp_path / "theirs", "cleo", "dora")
    bringing = replace(PROTOCOL, name="bringing", people=lambda root: theirs)
    brought = measure(model("a"), bringing, out="brought")
    assert {job.observer for job in brought.record.jobs if job.brought} == {"cleo", "dora", "people"}
    named = measure(mine, bringing, out="named").out
    whole = measure([model("a"), mine], bringing, out="whole").out
    assert contents(cb.merge([brought.out, named], tmp_path / "merged").out) == contents(whole)
    turned = cb.merge([named, brought.out], tmp_path / "turned")
    assert set(turned.observers) == {"a", "ann", "bob", "people"}
    for job in brought.record.jobs:  # as an earlier cuebench wrote it
        job.brought = False
    assert {job.observer for job in brought.record.jobs if is_brought(job, brought.record)} == {
        "cleo",
        "dora",
        "people",
    }


# ----------------------------------------------------------------------------------------------------------- scoring


def test_a_run_says_which_scores_it_makes_otherwise_than_they_were_made_again(measure: Any) -> None:
    out = measure("ideal:shape", "triplets", settings=SMALL).out
    cb.score(out, common=True, seed=5, settings={"triplets.similarity": "cosine"})
    events: list[Event] = []
    scores = measure("ideal:shape", on_event=events.append)
    (told,) = [e.message for e in events if "had been scored again" in e.message]
    assert "seed 5, here 0; common True, here False; triplets.similarity ('cosine',)" in told
    assert told.endswith(f"cuebench score {out} --seed 5 --common --set triplets.similarity=cosine")
    assert told in scores.record.notices
    events.clear()
    measure("ideal:texture", on_event=events.append)
    assert not [e for e in events if "had been scored again" in e.message]


def test_other_conditions_are_refused_with_those_that_fit(measure: Any) -> None:
    measure("ideal:shape", "triplets", settings=SMALL)
    with pytest.raises(UserError, match=r"(?s)\nrun it with --seed 0, --set triplets\.draw=50, no --set triplets\.bas"):
        measure("ideal:texture", "triplets", seed=1, settings={**SMALL, "triplets.draw": 60, "triplets.baselines": 1})


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
    cb.score(other, seed=7)
    whole = measure([model("a"), model("b"), model("c")], out="whole").out
    with pytest.warns(RuntimeWarning, match="was scored with other options"):
        merged = cb.merge([first, second, other], tmp_path / "merged")
    assert contents(merged.out) == contents(whole)
    told = [text for text in merged.record.notices if "was scored with other options" in text]
    assert [text.partition(" was ")[0] for text in told] == [str(second), str(other)]
    assert "common True, here False;" in told[0]
    assert "seed 7, here 0; resamples 200, here 100" in told[1]
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


def test_runs_of_a_protocol_that_is_in_a_file_are_merged(measure: Any, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from dataclasses import replace\nfrom cuebench.protocols.cue_conflict import PROTOCOL as base\n"
        "PROTOCOL = replace(base, name='in_a_file')\n"
    )
    first, second = (measure(model(name), f"python:{file}:PROTOCOL", out=name).out for name in "ab")
    protocols.added.clear()  # as in another process
    cb.allow_code(file)
    assert cb.merge([first, second], tmp_path / "merged").observers == ["a", "b"]


def test_runs_of_two_machines_name_the_same_observer_once(
    measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for number, name in enumerate(("here", "there", "nowhere")):
        write_module(tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        runs.append(measure(["python:m.py:a", model(name)], BOTH[number % 2], out=f"run-{name}").out)
    merged = cb.merge(runs, tmp_path / "merged")
    assert measured(merged.record) >= {("net", protocol) for protocol in BOTH}
    assert [spec for spec in merged.record.arguments["observers"] if "m.py" in spec] == ["python:m.py:a"]
