"""Recorded responses: both formats, people and models, and every kind of bad input with its message."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.labels import LabelMap, label_space, softmax
from cuebench.observers.adapters.recorded import load
from cuebench.observers.base import Batch, LoadOptions, Observer, Spec
from cuebench.observers.recorded_names import stimulus_key
from cuebench.runs.evaluate import evaluate
from cuebench.types import Stimulus
from small_data import write_cue_conflict

RAW = ["subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename"]
CLASSES = ("bear", "cat", "dog")
STIMULI = [Stimulus(i, shape="cat", texture="dog") for i in ("cat1-dog2", "cat2-dog1", "dog1-cat1")]


def raw_row(subject, trial, response, image, rt="NaN"):
    return [subject, 1, trial, rt, response, "cat", 0, f"{trial:04d}_s5n_{subject}_0_cat_00_{image}.png"]


def write(path: Path, header, rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def observers(path, options="", targets=CLASSES):
    return load(Spec.parse(f"recorded:{path}{options}"), LoadOptions(targets=targets))


def answers(observer, needs=("decisions",)):
    return observer.respond(Batch(STIMULI), needs)


@pytest.fixture
def people(tmp_path):
    """Two people and one model, in three files, answered in different orders; one person gave no answer once."""
    folder = tmp_path / "humans"
    folder.mkdir()
    write(folder / "a.csv", RAW, [raw_row("s1", 1, "cat", "cat1-dog2", 0.5), raw_row("s1", 2, "na", "cat2-dog1")])
    write(folder / "b.csv", RAW, [raw_row("s2", 1, "dog", "cat2-dog1", 0.7), raw_row("s2", 2, "cat", "cat1-dog2", 1)])
    write(folder / "c.csv", RAW, [raw_row("net", 1, "bear", "cat1-dog2"), raw_row("net", 2, "dog", "dog1-cat1")])
    (folder / "README.md").write_text("not a recording")
    return folder


def test_raw_data_gives_one_observer_for_each_subject_and_the_pooled_people(people):
    found = observers(people)
    assert [(o.name, o.kind) for o in found] == [
        ("net", "model"),
        ("s1", "person"),
        ("s2", "person"),
        ("people", "people"),
    ]
    assert all(isinstance(o, Observer) and o.stimulus_names() for o in found)
    assert all(o.preprocess is None and o.labels is None and o.capabilities == {"decisions"} for o in found)


@pytest.mark.parametrize(
    "text",
    [
        "subject,stimulus,decision,rt\ns1,cat1-dog2,cat,0.5\ns2,cat1-dog2,dog,1.5\n",
        "Participant,Image,Answer,RT\ns1,cat1-dog2.png,cat,0.5\ns2,cat1-dog2.png,dog,1.5\n",
        "participant;filename;response;rt\ns1;x/cat1-dog2.png;cat;0,5\ns2;x/cat1-dog2.png;dog;1,5\n",
        "subject\timage_name\tanswer\trt\ns1\tcat1-dog2\tcat\t0.5\ns2\tcat1-dog2\tdog\t1.5\n",
    ],
    ids=["plain", "capitals", "semicolons", "tabs"],
)
def test_a_table_of_ones_own_is_read_as_programs_write_it(tmp_path, text):
    (tmp_path / "mine.csv").write_text(text)
    one, two, pooled = observers(tmp_path / "mine.csv")
    assert [o.name for o in (one, two, pooled)] == ["s1", "s2", "people"]
    assert answers(one)["decisions"].tolist() == ["cat"]
    assert answers(pooled)["rt"].tolist() == [0.5, 1.5]


def test_answers_are_matched_by_stimulus_and_unseen_stimuli_have_no_row(people):
    net, s1, _, pooled = observers(people)
    assert answers(net)["decisions"].tolist() == ["bear", "dog"]
    assert answers(net)["stimulus"].tolist() == [0, 2]
    assert answers(s1)["decisions"].tolist() == ["cat", "na"]  # no answer is kept: it counts as undecided
    both = answers(pooled)
    assert both["stimulus"].tolist() == [0, 0, 1, 1]
    assert both["subject"].tolist() == ["s1", "s2", "s1", "s2"]
    assert both["decisions"].tolist() == ["cat", "cat", "na", "dog"]
    assert both["rt"][0] == 0.5
    assert np.isnan(both["rt"][2])


def test_a_batch_without_recorded_stimuli_has_no_rows(people):
    empty = observers(people)[0].respond(Batch([Stimulus("bear1-cat1")]), ["decisions"])
    assert all(len(v) == 0 for v in empty.values())


def test_stimulus_names_are_as_recorded(people):
    assert observers(people)[0].stimulus_names() == [
        "0001_s5n_net_0_cat_00_cat1-dog2.png",
        "0002_s5n_net_0_cat_00_dog1-cat1.png",
    ]


def test_kind_can_be_forced(people):
    assert [o.kind for o in observers(people, "?kind=model")] == ["model"] * 3
    assert [o.kind for o in observers(people, "?kind=person")] == ["person"] * 3 + ["people"]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("0001_s5n_dnn_0_airplane_00_airplane1-bicycle2.png", "airplane1-bicycle2"),
        ("0012_cop_s01_1_knife_10_n03041632_32377.JPEG", "n03041632_32377"),
        ("airplane/airplane1-bicycle2.png", "airplane/airplane1-bicycle2"),
        (r"airplane\airplane1-bicycle2.png", "airplane/airplane1-bicycle2"),
        ("airplane1-bicycle2", "airplane1-bicycle2"),
        ("v1.5-photo", "v1.5-photo"),
    ],
)
def test_stimulus_key(name, key):
    assert stimulus_key(name) == key


def test_recorded_folders_match_by_file_name_only_where_that_is_unambiguous(tmp_path):
    file = write(
        tmp_path / "p.csv", ["image", "decision"], [["a/x.png", "cat"], ["b/x.png", "dog"], ["a/y.png", "cat"]]
    )
    found = observers(file)[0].respond(Batch([Stimulus("x"), Stimulus("y"), Stimulus("1", path="b/x.png")]), [])
    assert found["stimulus"].tolist() == [1, 2]
    assert found["decisions"].tolist() == ["cat", "dog"]


LOGITS = np.array([[1.5, -2.0, 0.25], [0.0, 3.0, -1.0]])
NAMES = ["cat1-dog2.png", "cat2-dog1.png"]


def as_csv_numbered(folder):
    return write(
        folder / "m.csv", ["image", "logit_2", "logit_0", "logit_1"], [[n, c, a, b] for n, (a, b, c) in rows()]
    )


def as_csv_classes(folder):
    return write(folder / "m.csv", ["id", "dog", "bear", "cat"], [[n, c, a, b] for n, (a, b, c) in rows()])


def as_csv_list(folder):
    return write(folder / "m.csv", ["stimulus", "logits"], [[n, str(list(map(float, v)))] for n, v in rows()])


def as_csv_probabilities(folder):
    return write(
        folder / "m.csv", ["image", "prob_0", "prob_1", "prob_2"], [[n, *p] for n, p in zip(NAMES, softmax(LOGITS))]
    )


def as_csv_class_probabilities(folder):
    return write(folder / "m.csv", ["image", *CLASSES], [[n, *p] for n, p in zip(NAMES, softmax(LOGITS))])


def as_parquet_list(folder):
    pq.write_table(pa.table({"stimulus": NAMES, "logits": LOGITS.tolist()}), folder / "m.parquet")
    return folder / "m.parquet"


def as_parquet_numbered(folder):
    columns = {f"logit_{i}": LOGITS[:, i].astype(np.float32) for i in range(3)}
    pq.write_table(pa.table({"id": NAMES, **columns}), folder / "m.parquet")
    return folder / "m.parquet"


def rows():
    return list(zip(NAMES, LOGITS))


FORMS = [
    as_csv_numbered,
    as_csv_classes,
    as_csv_list,
    as_csv_probabilities,
    as_csv_class_probabilities,
    as_parquet_list,
    as_parquet_numbered,
]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_predictions_in_every_form_give_the_same_probabilities(form, tmp_path):
    (model,) = observers(form(tmp_path))
    assert (model.name, model.kind, model.capabilities) == ("m", "model", {"logits"})
    assert model.labels.names == CLASSES
    np.testing.assert_allclose(softmax(answers(model, ["logits"])["logits"]), softmax(LOGITS), atol=1e-6)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3), pa.large_list(pa.float16())])
def test_parquet_lists_of_every_type(kind, tmp_path):
    pq.write_table(pa.table({"id": NAMES, "logits": pa.array(LOGITS.tolist(), kind)}), tmp_path / "m.parquet")
    np.testing.assert_allclose(answers(observers(tmp_path / "m.parquet")[0], ["logits"])["logits"], LOGITS)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1.0, 2, 3], [1.0, 2]], "row 2: 2 logits instead of 3"),
        ([[1.0, 2, 3], None], "row 2: 0 logits instead of 3"),
        ([[1.0, 2, 3], [1, None, 3]], r"row 2: logits\[1\] is nan"),
        ([1.0, 2.0], "column logits has type double"),
    ],
)
def test_bad_parquet_lists(lists, message, tmp_path):
    pq.write_table(pa.table({"id": NAMES, "logits": lists}), tmp_path / "m.parquet")
    with pytest.raises(UserError, match=message):
        observers(tmp_path / "m.parquet")


def test_predictions_may_share_column_names_with_the_raw_data(tmp_path):
    header = ["imagename", "subj", "condition", "category", "decision"]
    (model,) = observers(write(tmp_path / "p.csv", header, [["cat1-dog2", "net", 0, "cat", "dog"]]))
    assert (model.name, answers(model)["decisions"].tolist()) == ("net", ["dog"])


def test_a_probability_of_zero_stays_a_finite_logit(tmp_path):
    file = write(tmp_path / "m.csv", ["image", "prob_0", "prob_1", "prob_2"], [["cat1-dog2", 1, 0, 0]])
    logits = answers(observers(file)[0], ["logits"])["logits"]
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(softmax(logits), [[1, 0, 0]], atol=1e-30)


def test_a_thousand_logits_are_imagenet(tmp_path):
    table = pa.table({"image": NAMES, "logits": np.random.default_rng(0).normal(size=(2, 1000)).tolist()})
    pq.write_table(table, tmp_path / "m.parquet")
    assert observers(tmp_path / "m.parquet")[0].labels is label_space("imagenet1k")


def test_several_observers_in_one_file_and_a_chosen_name(tmp_path):
    file = write(tmp_path / "p.csv", ["observer", "image", "decision"], [["a", "x", "cat"], ["b", "x", "dog"]])
    assert [o.name for o in observers(file)] == ["a", "b"]
    one = write(tmp_path / "q.csv", ["image", "decision"], [["x", "cat"]])
    assert observers(one, "?name=mine")[0].name == "mine"
    with pytest.raises(UserError, match="2 subjects"):
        observers(file, "?name=mine")


def test_sessions_of_one_subject_are_joined(tmp_path):
    write(tmp_path / "s1.csv", RAW, [raw_row("s1", 1, "cat", "cat1-dog2", 0.5)])
    write(tmp_path / "s2.csv", RAW, [raw_row("s1", 1, "dog", "cat2-dog1", 0.5)])
    (person,) = observers(tmp_path)
    assert answers(person)["decisions"].tolist() == ["cat", "dog"]


def test_fingerprint_is_of_contents_and_options(people, tmp_path):
    first = {o.name: o.fingerprint for o in observers(people)}
    assert first == {o.name: o.fingerprint for o in observers(people)}
    assert len(set(first.values())) == len(first)
    assert first["net"] != observers(people, "?kind=person")[0].fingerprint
    write(people / "c.csv", RAW, [raw_row("net", 1, "cat", "cat1-dog2")])
    after = {o.name: o.fingerprint for o in observers(people)}
    assert after["net"] != first["net"]
    assert after["s1"] == first["s1"]


def test_asking_for_what_was_not_recorded(people):
    with pytest.raises(UserError, match="no logits"):
        answers(observers(people)[0], ["logits"])


GOOD = ["image", "logit_0", "logit_1", "logit_2"]
BAD = {
    "missing raw column": (RAW[:4] + RAW[5:], [["s", 1, 1, 0.5, "cat", 0, "x.png"]], r"missing column object_response"),
    "two missing raw columns": (["subj", "session", "trial", "object_response"], [["s", 1, 1, "cat"]], "rt, imagename"),
    "no stimulus column": (["photo", "decision"], [["x", "cat"]], r"no stimulus column .*found photo, decision"),
    "no answers": (["image", "colour"], [["x", "red"]], r"no logits, probabilities or decision; found image, colour"),
    "NaN logit": (GOOD, [["x", 1, 2, 3], ["y", 1, "NaN", 3]], r"b\.csv line 3: logit_1 is nan, not a finite"),
    "empty logit": (GOOD, [["x", 1, "", 3]], r"line 2: logit_1 is nan"),
    "infinite logit": (GOOD, [["x", 1, "inf", 3]], r"line 2: logit_1 is inf"),
    "word for a logit": (GOOD, [["x", 1, "two", 3]], r"line 2: column logit_1 is 'two', not a number"),
    "gap in logits": (["image", "logit_0", "logit_2"], [["x", 1, 2]], r"logit_1 is missing"),
    "too many logits": ([*GOOD, "logit_3"], [["x", 1, 2, 3, 4]], r"4 logits, but nothing says which classes"),
    "ragged list": (["image", "logits"], [["x", "[1,2,3]"], ["y", "[1,2]"]], r"line 3: 2 logits instead of 3"),
    "not a list": (["image", "logits"], [["x", "[1,two,3]"]], r"line 2: logits is '\[1,two,3\]'"),
    "NaN in a list": (["image", "logits"], [["x", "[1,nan,3]"]], r"line 2: logits\[1\] is nan"),
    "no probabilities": (["image", "prob_0", "prob_1", "prob_2"], [["x", 1, 2, 3]], r"line 2: .*sum 6"),
    "both kinds": (["image", "logit_0", "prob_0"], [["x", 1, 1]], "both logit and prob columns"),
    "repeated stimulus": (
        ["image", "decision"],
        [["x", "cat"], ["y", "cat"], ["x.png", "dog"]],
        r"line 2 and .*line 4",
    ),
    "empty stimulus": (["image", "decision"], [["", "cat"]], r"line 2: column image is empty"),
    "only a header": (["image", "decision"], [], "holds no trial"),
    "unknown responses": (["image", "decision"], [["x", "Katze"], ["y", "na"]], r"no response is a class .*Katze"),
    "column twice": (["image", "decision", "decision"], [["x", "cat", "dog"]], r"'decision' occurs twice"),
    "rt is a word": (RAW, [raw_row("s", 1, "cat", "x", "fast")], r"line 2: column rt is 'fast'"),
}


@pytest.mark.parametrize("case", BAD, ids=lambda c: c.replace(" ", "_"))
def test_bad_file_is_one_clear_error(case, tmp_path):
    header, content, message = BAD[case]
    file = write(tmp_path / "b.csv", header, content)
    with pytest.raises(UserError, match=message) as caught:
        observers(file)
    assert "b.csv" in str(caught.value)
    assert caught.value.hint


MORE = (*CLASSES, "lorry", "violin")
"""The targets of a run of two protocols."""


class TestRunOfSeveralProtocols:
    """Targets are those of all protocols together; ``among`` tells those of each."""

    @pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
    def test_logits_stand_for_the_classes_of_their_own_protocol(self, form, tmp_path):
        (model,) = observers(form(tmp_path), targets=MORE)
        told = model.among(CLASSES)
        assert told.labels.names == CLASSES
        np.testing.assert_allclose(softmax(answers(told, ["logits"])["logits"]), softmax(LOGITS), atol=1e-6)

    def test_another_protocol_is_refused_with_its_reason(self, tmp_path):
        (columns,) = observers(as_csv_classes(tmp_path), targets=MORE)
        with pytest.raises(UserError, match=r"m\.csv: columns for 0 of the 2 classes .*missing lorry, violin"):
            columns.among(("lorry", "violin"))
        (numbered,) = observers(as_csv_numbered(tmp_path), targets=MORE)
        with pytest.raises(UserError, match=r"m\.csv: 3 logits, but nothing says which classes they are") as error:
            numbered.among(("lorry", "violin"))
        assert "?labels=" in error.value.hint

    def test_as_many_classes_as_all_protocols_have_are_not_those_of_one(self, tmp_path):
        (model,) = observers(as_csv_numbered(tmp_path), targets=("bear", "cat", "lorry"))
        with pytest.raises(UserError, match="nothing says which classes"):
            model.among(("bear", "cat"))

    def test_some_classes_of_the_only_protocol_are_missing(self, tmp_path):
        (model,) = observers(write(tmp_path / "b.csv", ["image", "cat", "dog"], [["x", 0.5, 0.5]]))
        with pytest.raises(UserError, match=r"columns for 2 of the 3 classes .*missing bear"):
            model.among(CLASSES)

    def test_a_larger_label_space_answers_by_its_members(self, tmp_path):
        (model,) = observers(write(tmp_path / "b.csv", ["image", *CLASSES], [["x", 1, 2, 3]]))
        pets = LabelMap("pets", {"pet": ("cat", "dog"), "wild": ("bear",)})
        assert model.among(("pet", "wild"), pets) is model

    def test_named_label_spaces_and_decisions_stay_as_they_are(self, tmp_path, people):
        file = write(tmp_path / "classes.json", ["x"], [])
        file.write_text('["cat", "dog", "bear"]')
        (named,) = observers(as_csv_numbered(tmp_path), f"?labels={file}", targets=MORE)
        assert named.among(("lorry", "violin")) is named
        assert all(o.among(("lorry",)) is o for o in observers(people))

    def test_files_of_one_folder_with_other_columns(self, tmp_path):
        write(tmp_path / "a.csv", ["image", "cat", "dog"], [["x", 1, 2]])
        write(tmp_path / "b.csv", ["image", "lorry", "violin"], [["y", 1, 2]])
        with pytest.raises(UserError, match=r"a\.csv has 2 logits, .*b\.csv has 2 of other classes"):
            observers(tmp_path, targets=MORE)


def test_a_recording_of_other_stimuli_says_so(people):
    net = observers(people)[0]
    net.check_shown(STIMULI)
    net.check_shown([])
    with pytest.raises(UserError, match=r"net has answered none of the 1 stimuli: it was shown .*these are 'lorry1'"):
        net.check_shown([Stimulus("lorry1")])


def test_single_unknown_responses_are_kept(tmp_path):
    file = write(tmp_path / "b.csv", ["image", "decision"], [["cat1-dog2", "zebra"], ["cat2-dog1", "cat"]])
    assert answers(observers(file)[0])["decisions"].tolist() == ["zebra", "cat"]


def test_label_space_of_another_size(tmp_path):
    file = write(tmp_path / "b.csv", GOOD, [["x", 1, 2, 3]])
    with pytest.raises(UserError, match=r"3 logits in each row, but the label space 'imagenet1k' has 1000 classes"):
        observers(file, "?labels=imagenet1k")


def test_ragged_csv_names_the_row(tmp_path):
    (tmp_path / "b.csv").write_text("image,decision\nx,cat\ny\n")
    with pytest.raises(UserError, match=r"b\.csv cannot be read: .*Expected 2 columns, got 1"):
        observers(tmp_path / "b.csv")


def test_truncated_parquet(tmp_path):
    file = as_parquet_list(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"m\.parquet cannot be read"):
        observers(file)


@pytest.mark.parametrize("content", ["", "\n", "  \n\n"])
def test_empty_file(tmp_path, content):
    (tmp_path / "b.csv").write_text(content)
    with pytest.raises(UserError, match=r"b\.csv is empty"):
        observers(tmp_path / "b.csv")


def test_empty_folder_missing_path_and_other_files(tmp_path):
    with pytest.raises(UserError, match=r"holds no \.csv, \.tsv or \.parquet"):
        observers(tmp_path)
    with pytest.raises(UserError, match="no such file or folder"):
        observers(tmp_path / "nothing")
    (tmp_path / "x.xlsx").write_text("?")
    with pytest.raises(UserError, match=r"not a \.csv, \.tsv or \.parquet"):
        observers(tmp_path / "x.xlsx")


def test_mixed_formats_in_one_folder(tmp_path):
    write(tmp_path / "a.csv", RAW, [raw_row("s1", 1, "cat", "cat1-dog2", 0.5)])
    write(tmp_path / "b.csv", GOOD, [["x", 1, 2, 3]])
    with pytest.raises(UserError, match=r"mixes formats(.|\n)*a\.csv: raw data(.|\n)*b\.csv: predictions with logits"):
        observers(tmp_path)


def test_repeated_trials_over_files_name_both_places(tmp_path):
    write(tmp_path / "a.csv", RAW, [raw_row("s1", 1, "cat", "cat1-dog2", 0.5)])
    write(tmp_path / "b.csv", RAW, [raw_row("s1", 9, "cat", "cat1-dog2", 0.5)])
    with pytest.raises(UserError, match=r"s1 answered 'cat1-dog2' at .*a\.csv line 2 and again at .*b\.csv line 2"):
        observers(tmp_path)


@pytest.mark.parametrize("option", ["?kind=robot", "?values=ranks", "?colour=red"])
def test_unknown_options(people, option):
    with pytest.raises(UserError, match=r"robot|ranks|colour"):
        observers(people, option)


def test_subjects_of_a_file_without_response_times_are_people(tmp_path):
    from cuebench.observers.base import LoadOptions
    from cuebench.observers.load import load

    file = tmp_path / "people.csv"
    file.write_text("subject,stimulus,decision\nanna,cat1-dog2,cat\nbert,cat1-dog2,dgo\nbert,cat2-dog2,na\n")
    found = load(f"recorded:{file}", LoadOptions(targets=("cat", "dog")))
    assert [(o.name, o.kind) for o in found] == [("anna", "person"), ("bert", "person"), ("people", "people")]
    assert found[0].notes == ()
    assert found[1].notes == ("1 answers are no class of the stimuli ('dgo'): undecided",)
    models = load(f"recorded:{file}?kind=model", LoadOptions(targets=("cat", "dog")))
    assert {o.kind for o in models} == {"model"}


def test_people_answer_pictures_with_classes_of_their_own(tmp_path):
    root = write_cue_conflict(tmp_path / "data", classes=("mug", "brick", "lamp"))
    names = sorted(path.stem for path in (root / "cue_conflict/stimuli").glob("*/*.png"))
    rows = [f"{who},{name},{name.partition('1')[0].partition('2')[0]}" for who in ("anna", "bert") for name in names]
    (tmp_path / "people.csv").write_text("\n".join(["subject,stimulus,decision", *rows]), "utf-8")
    spec = f"recorded:{tmp_path / 'people.csv'}"
    scores = evaluate(spec, "cue_conflict", data_root=root, out=tmp_path / "run", resamples=100, workers=0)
    assert scores.value("people", "shape_bias", "3-way") == 1


def class_folders(folder, answers):
    """Write photographs of two classes, and answers to them; return what `evaluate` is given."""
    for name in ("cat/a", "cat/b", "dog/b"):
        (folder / "imagenet_val" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (len(name), ord(name[0]), ord(name[-1]))).save(folder / f"imagenet_val/{name}.png")
    (folder / "answers.csv").write_text("\n".join(["image,cat,dog", *answers]))
    (folder / "labels.json").write_text('["cat", "dog"]')
    observers = f"recorded:{folder / 'answers.csv'}?labels={folder / 'labels.json'}"
    return {"observers": observers, "protocols": "imagenet_accuracy", "data_root": folder}


def test_a_name_without_its_class_folder_is_that_of_the_only_stimulus_that_ends_so(tmp_path):
    call = class_folders(tmp_path, ["a.png,0.9,0.1", "cat/b.png,0.9,0.1", "dog/b.png,0.9,0.1"])
    told = []
    scores = evaluate(**call, out=tmp_path / "run", on_event=told.append)
    assert scores.value("answers", "accuracy", "top1") == pytest.approx(2 / 3)
    assert any("('a': 'cat/a')" in event.message for event in told)


def test_a_name_that_several_class_folders_hold_is_refused(tmp_path):
    with pytest.raises(UserError, match="'b' can be 'cat/b' or 'dog/b'") as caught:
        evaluate(**class_folders(tmp_path, ["b.png,0.9,0.1"]), out=tmp_path / "run")
    assert "folders" in caught.value.hint
    with pytest.raises(UserError, match="'a' and 'cat/a' can be one"):
        evaluate(**class_folders(tmp_path, ["a.png,0.9,0.1", "cat/a.png,0.1,0.9"]), out=tmp_path / "run")
    settings = {"imagenet_accuracy.classes": "cat"}
    with pytest.raises(UserError, match="write it as 'cat/a'"):
        evaluate(**class_folders(tmp_path, ["a.png,0.9,0.1"]), out=tmp_path / "run", settings=settings)
