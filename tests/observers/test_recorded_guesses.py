"""Recorded answers that could be read in two ways: named and refused, or read where both ways agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cuebench.errors import UserError
from cuebench.labels import softmax
from cuebench.observers.adapters.recorded import RecordedObserver, load
from cuebench.observers.base import Batch, LoadOptions, Spec
from cuebench.runs.evaluate import evaluate
from cuebench.stimuli.answered import write_stimuli
from cuebench.types import Stimulus
from small_data import write_cue_conflict

CLASSES = ("bear", "cat", "dog")
STIMULI = [Stimulus(i, shape=i[:3], texture=i[5:8]) for i in ("cat1-dog2", "dog2-cat1")]
SHARES = np.array([[0.123, 0.634, 0.243], [0.05, 0.15, 0.8]])


def observers(path: Path, options: str = "", targets: Sequence[str] = CLASSES) -> list[RecordedObserver]:
    return load(Spec.parse(f"recorded:{path}{options}"), LoadOptions(targets=tuple(targets)))  # type: ignore[return-value]


def text(folder: Path, content: str, name: str = "m.csv") -> Path:
    (folder / name).write_text(content, "utf-8")
    return folder / name


# ------------------------------------------------------------------------------------ kinds of numbers


def numbered(folder: Path, values: np.ndarray, form: str = "{:.6g}") -> Path:
    return _columns(folder, ["logit_0", "logit_1", "logit_2"], values, form)


def numbered_prob(folder: Path, values: np.ndarray, form: str = "{:.6g}") -> Path:
    return _columns(folder, ["prob_0", "prob_1", "prob_2"], values, form)


def classes(folder: Path, values: np.ndarray, form: str = "{:.6g}") -> Path:
    return _columns(folder, list(CLASSES), values, form)


def listed(folder: Path, values: np.ndarray, form: str = "{:.6g}") -> Path:
    rows = [f'{s.id},"[{", ".join(form.format(v) for v in row)}]"' for s, row in zip(STIMULI, values)]
    return text(folder, "\n".join(["image,logits", *rows]) + "\n")


def listed_prob(folder: Path, values: np.ndarray, form: str = "{:.6g}") -> Path:
    file = listed(folder, values, form)
    return text(folder, file.read_text().replace("logits", "probabilities"))


def _columns(folder: Path, names: Sequence[str], values: np.ndarray, form: str) -> Path:
    rows = [",".join([s.id, *map(form.format, row)]) for s, row in zip(STIMULI, values)]
    return text(folder, "\n".join([",".join(["image", *names]), *rows]) + "\n")


def logits_of(file: Path, options: str = "") -> np.ndarray:
    (model,) = observers(file, options)
    return np.asarray(model.respond(Batch(STIMULI), ["logits"])["logits"])


FORMS = [numbered, numbered_prob, classes, listed, listed_prob]
form_of_file = pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)


@form_of_file
@pytest.mark.parametrize("digits", ["{:.6g}", "{:.3f}"])
def test_probabilities_of_every_form_are_turned_back(form, digits, tmp_path):
    found = logits_of(form(tmp_path, SHARES, digits), "?values=probabilities")
    np.testing.assert_allclose(softmax(found), SHARES, atol=1e-6)


@form_of_file
def test_logits_of_every_form_stay_as_they_are(form, tmp_path):
    for values in (SHARES, SHARES * 100, SHARES - 0.5):
        np.testing.assert_allclose(logits_of(form(tmp_path, values), "?values=logits"), values)


@form_of_file
def test_percent_said_to_be_probabilities_are_refused(form, tmp_path):
    with pytest.raises(UserError, match=r"line 2: the probabilities are not in \[0, 1\] with sum 1 .*sum 100"):
        observers(form(tmp_path, SHARES * 100), "?values=probabilities")


@pytest.mark.parametrize(
    ("values", "digits"),
    [
        (SHARES * 100, "{:.6g}"),
        (np.array([[33.4, 33.3, 33.3], [0.4, 1.4, 97.4]]), "{:.0f}"),
        (SHARES * 0.9, "{:.6g}"),
        (SHARES * 0.4, "{:.0f}"),
    ],
    ids=["percent", "whole percent", "a part of all classes", "rounded to nothing"],
)
def test_shares_of_classes_that_do_not_sum_to_1_are_no_logits(values, digits, tmp_path):
    file = classes(tmp_path, values, digits)
    with pytest.raises(UserError, match=r"the probabilities are not in \[0, 1\] with sum 1") as caught:
        observers(file)
    assert "?values=logits" in caught.value.hint
    assert logits_of(file, "?values=logits").shape == (2, 3)


def test_class_columns_say_by_their_numbers_what_they_are(tmp_path):
    np.testing.assert_allclose(softmax(logits_of(classes(tmp_path, SHARES, "{:.3f}"))), SHARES, atol=1e-6)
    np.testing.assert_allclose(logits_of(classes(tmp_path, SHARES - 0.5)), SHARES - 0.5)
    np.testing.assert_allclose(logits_of(classes(tmp_path, SHARES * 9)), SHARES * 9)


# --------------------------------------------------------------------------- numbers that are no class


def test_numbers_beside_the_logits_of_classes_are_named(tmp_path):
    rows = "cat1-dog2,1,-2,3,9,0.5,x\ndog2-cat1,1,-2,3,8,0.5,y\n"
    (model,) = observers(text(tmp_path, f"image,bear,cat,dog,zebra,rt,remark\n{rows}"), "?kind=model")
    assert model.notes == ("1 column of numbers 'zebra' left out: no class of 'targets'",)
    numbers = "cat1-dog2,0,1,-2,3\ndog2-cat1,1,1,-2,3\n"
    (model,) = observers(text(tmp_path, f"image,,bear,cat,dog\n{numbers}"))
    assert not model.notes  # numbers of the rows


def test_numbers_beside_probabilities_are_named_where_these_do_not_sum_to_1(tmp_path):
    header = "image,bear,cat,dog,other,confidence\n"
    with pytest.raises(UserError, match=r"sum 0\.5\); beside them: 2 columns of numbers 'other', 'confidence'"):
        observers(text(tmp_path, f"{header}cat1-dog2,0.1,0.2,0.2,0.5,0.9\n"))
    (model,) = observers(text(tmp_path, f"{header}cat1-dog2,0.1,0.2,0.7,0,0.9\n"))
    assert not model.notes  # whatever they are, they are no probability of a class


# --------------------------------------------------------------------------- two columns for one thing

TWO = {
    "answer and prediction": (
        "image,answer,prediction",
        "cat1-dog2,cat,dog",
        "answer and prediction could be the answer",
    ),
    "response and decision": (
        "image,response,decision",
        "cat1-dog2,cat,dog",
        "decision and response could be the answer",
    ),
    "stimulus and image": (
        "stimulus,image,decision",
        "dog2-cat1,cat1-dog2,cat",
        "stimulus and image could be the stim",
    ),
    "observer and subject": (
        "observer,subject,image,decision",
        "lab,ann,cat1-dog2,cat",
        "observer and subject could be",
    ),
    "other folders": ("image,path,decision", "a/cat1-dog2,b/cat1-dog2.png,cat", "image and path could be the stimulus"),
    "logits and probabilities": ("image,logits,probs", 'cat1-dog2,"[1, 2, 3]","[0.5, 0.2, 0.3]"', "logits and probs"),
    "logits and classes": ("image,logits,bear,cat,dog", 'cat1-dog2,"[1, 2, 3]",3,-2,1', "logits and bear … could both"),
    "decision and classes": (
        "image,decision,bear,cat,dog",
        "cat1-dog2,dog,0.1,0.8,0.1",
        "'dog', and the largest .*'cat'",
    ),
    "decision and logits": ("image,prediction,logits", 'cat1-dog2,bear,"[1, 2, 3]"', "'bear', and the largest .*'dog'"),
    "no class and logits": ("image,prediction,logits", 'cat1-dog2,7,"[1, 2, 3]"', "'7', and the largest .*'dog'"),
    "capitals": ("image,Decision,decision", "cat1-dog2,dog,cat", "could be the answer|occurs twice"),
}


@pytest.mark.parametrize("case", TWO, ids=lambda c: c.replace(" ", "_"))
def test_two_columns_that_differ_are_refused(case, tmp_path):
    header, row, message = TWO[case]
    with pytest.raises(UserError, match=message) as caught:
        observers(text(tmp_path, f"{header}\n{row}\n"))
    assert "m.csv" in caught.value.message
    assert "rename or remove" in caught.value.hint


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("image,decision,prediction", ["cat1-dog2,cat,Cat", "dog2-cat1,dog,dog"]),
        ("stimulus,path,decision", ["cat1-dog2,stimuli/cat/cat1-dog2.png,cat", "dog2-cat1,x/dog2-cat1.png,dog"]),
        ("id,image,decision", ["0,cat1-dog2,cat", "1,dog2-cat1,dog"]),
        ("observer,subject,image,decision", ["ann,ann,cat1-dog2,cat", "ann,,dog2-cat1,dog"]),
        ("image,response,pred_label", ["cat1-dog2,cat,bear", "dog2-cat1,dog,bear"]),
        ("image,decision,bear,cat,dog", ["cat1-dog2,cat,0.1,0.8,0.1", "dog2-cat1,dog,0.1,0.1,0.8"]),
        ("image,prediction,bear,cat,dog", ["cat1-dog2,1,-1,8,1", "dog2-cat1,2,-1,1,8"]),
        ("image,prob_0,prob_1,prob_2,cat", ["cat1-dog2,0.1,0.8,0.1,1", "dog2-cat1,0.1,0.1,0.8,0"]),
    ],
)
def test_two_columns_that_agree_are_read(header, rows, tmp_path):
    (found,) = observers(text(tmp_path, "\n".join([header, *rows]) + "\n"))
    assert found.stimulus_names() == [s.id for s in STIMULI]
    answers = found.respond(Batch(STIMULI), ["logits"] if "logits" in found.capabilities else ["decisions"])
    if "logits" in answers:
        assert answers["logits"].argmax(axis=1).tolist() == [1, 2]
    else:
        assert answers["decisions"].tolist() == ["cat", "dog"]


def test_logits_and_their_softmax_agree(tmp_path):
    logits = np.array([[1.0, -2, 0.5], [0, 1, 2]])
    columns = {"image": [s.id for s in STIMULI], "probs": softmax(logits).tolist(), "logits": logits.tolist()}
    pq.write_table(pa.table(columns), tmp_path / "m.parquet")
    np.testing.assert_allclose(logits_of(tmp_path / "m.parquet"), logits)


def test_decisions_are_compared_when_a_protocol_says_the_classes(tmp_path):
    file = text(tmp_path, 'image,decision,logits\ncat1-dog2,dog,"[1, 2, 3]"\n')
    (model,) = observers(file, targets=(*CLASSES, "lorry"))
    assert model.among(CLASSES).labels.names == CLASSES
    with pytest.raises(UserError, match=r"'dog', and the largest .*'cat'"):
        model.among(("dog", "bear", "cat"))


def test_stimuli_of_a_table_are_named_once(tmp_path):
    file = text(tmp_path, "stimulus,image,shape,texture,decision\na,b,ball,brick,ball\n")
    with pytest.raises(UserError, match="stimulus and image could be the stimulus"):
        write_stimuli(file, tmp_path / "data")


# ------------------------------------------------------------------------------------ the same picture


def test_a_picture_of_two_blocks_is_a_repeated_trial(tmp_path):
    for block, answer in (("block1", "cat"), ("block2", "dog")):
        text(tmp_path, f"subject,image,decision\nann,{block}/cat1-dog2.png,{answer}\n", f"{block}.csv")
    (ann,) = observers(tmp_path)
    ann.check_shown(STIMULI)
    with pytest.raises(UserError, match=r"ann answered 'cat1-dog2' as 'block1/cat1-dog2.png' and as 'block2/cat1-dog2"):
        ann.check_known(STIMULI)
    ann.check_known([Stimulus("1", path="block1/cat1-dog2.png"), Stimulus("2", path="block2/cat1-dog2.png")])


def test_a_name_with_and_without_its_folder_is_a_repeated_trial(tmp_path):
    file = text(tmp_path, "image,decision\ncat1-dog2,cat\nx/cat1-dog2.png,dog\n")
    with pytest.raises(UserError, match="repeated trials"):
        observers(file)[0].check_known(STIMULI)
    observers(file)[0].check_known([Stimulus("cat1-dog2"), Stimulus("x/cat1-dog2")])


def test_a_pool_is_read_as_its_people_are(tmp_path):
    file = text(tmp_path, "subject,image,decision\nann,cat1-dog2,cat\nbob,x/cat1-dog2.png,dog\n")
    *_, pool = observers(file)
    pool.check_known(STIMULI)
    assert pool.respond(Batch(STIMULI), ["decisions"])["decisions"].tolist() == ["cat", "dog"]


def test_repeated_blocks_end_a_run_with_the_reason(tmp_path):
    root = write_cue_conflict(tmp_path / "data", classes=("bear", "cat", "dog"))
    names = sorted(path.stem for path in (root / "cue_conflict/stimuli").glob("*/*.png"))
    rows = [f"ann,block1/{name},cat" for name in names] + [f"ann,block2/{names[0]},dog"]
    file = text(tmp_path, "\n".join(["subject,image,decision", *rows]) + "\n")
    with pytest.raises(UserError, match="repeated trials"):
        evaluate(f"recorded:{file}", "cue_conflict", data_root=root, out=tmp_path / "run", resamples=100, workers=0)


# ------------------------------------------------------------------------ shape and texture of stimuli


def test_another_shape_or_texture_than_was_shown_is_refused(tmp_path):
    file = text(tmp_path, "image,shape,texture,decision\ncat1-dog2,Cat,dog,cat\ndog2-cat1,dog,bear,dog\n")
    (model,) = observers(file)
    model.check_known(STIMULI[:1])
    with pytest.raises(UserError, match="'dog2-cat1' has the texture 'bear', shown is 'cat'"):
        model.check_known(STIMULI)
    model.check_known([Stimulus("dog2-cat1", label="dog"), Stimulus("cat1-dog2", shape="cat", texture="-")])
    people = text(tmp_path, "subject,image,shape,decision\nann,cat1-dog2,cat,cat\nbob,cat1-dog2,dog,cat\n")
    *_, pool = observers(people)
    with pytest.raises(UserError, match="has the shape 'dog', shown is 'cat'"):
        pool.check_known(STIMULI)


# -------------------------------------------------------------------------------------- decimal commas


@pytest.mark.parametrize(
    "cell",
    ["0,5 -0,25 1", "0.5 -0.25 1", "[0.5, -0.25, 1]", '"0,5; -0,25; 1"', "[0.5,-0.25,1.0]", "(0.5, -0.25, 1.0,)"],
)
def test_lists_in_a_file_of_semicolons(cell, tmp_path):
    file = text(tmp_path, f"image;logits\ncat1-dog2;{cell}\n")
    (found,) = observers(file)
    assert found.columns["logits"].tolist() == [[0.5, -0.25, 1]]


@pytest.mark.parametrize("cell", ["0,5,0,1", "1,2,3", "0,5, 0,1", "1,2, 3", "1.234,5 2"])
def test_commas_of_two_meanings_are_refused(cell, tmp_path):
    with pytest.raises(UserError, match="line 2: logits is") as caught:
        observers(text(tmp_path, f"image;logits\ncat1-dog2;{cell}\n"))
    assert "comma" in caught.value.hint


@pytest.mark.parametrize("separator", [",", "\t"])
def test_decimal_commas_elsewhere_are_refused(separator, tmp_path):
    with pytest.raises(UserError, match="line 2: logits is"):
        observers(text(tmp_path, f'image{separator}logits\ncat1-dog2{separator}"0,5 0,25"\n'))
    (found,) = observers(text(tmp_path, f'image{separator}logits\ncat1-dog2{separator}"[1,2, 3]"\n'))
    assert found.columns["logits"].tolist() == [[1, 2, 3]]


# ------------------------------------------------------------------------------------- names of trials


def test_own_names_that_look_like_trials_are_kept(tmp_path):
    names = ["0001_exp1_s1_a_b_10_mug", "0002_exp1_s1_a_b_11_mug"]
    (found,) = observers(text(tmp_path, "\n".join(["image,decision", f"{names[0]},cat", f"{names[1]},dog"]) + "\n"))
    answers = found.respond(Batch([Stimulus(name) for name in names]), ["decisions"])
    assert answers["decisions"].tolist() == ["cat", "dog"]


def test_own_names_of_trials_that_say_their_class_are_shortened(tmp_path):
    (found,) = observers(text(tmp_path, "image,decision\n0001_own_ann_0_mug_10_mug1-brick1.png,cat\n"))
    assert found.respond(Batch([Stimulus("mug1-brick1")]), ["decisions"])["decisions"].tolist() == ["cat"]


def test_raw_data_with_classes_of_its_own_name_trials(tmp_path):
    header = "subj,session,trial,rt,object_response,category,condition,imagename"
    rows = [f"ann,1,{n},0.5,mug,mug,0,000{n}_own_ann_0_mug_10_mug{n}-brick1.png" for n in (1, 2)]
    (ann,) = observers(text(tmp_path, "\n".join([header, *rows]) + "\n"), targets=("mug", "brick"))
    assert ann.respond(Batch([Stimulus("mug2-brick1")]), ["decisions"])["decisions"].tolist() == ["mug"]
    photographs = [row.replace("mug1-brick1", "n03_1").replace("mug2-brick1", "n03_2") for row in rows]
    (ann,) = observers(text(tmp_path, "\n".join([header, *photographs]) + "\n"), targets=("mug", "brick"))
    assert ann.stimulus_names() == ["n03_1", "n03_2"]


def test_repeats_of_trials_say_that_their_names_were_shortened(tmp_path):
    rows = [f"000{n}_exp_s1_0_cat_10_noise.png,cat" for n in (1, 2)]
    with pytest.raises(UserError, match="answered 'noise'") as caught:
        observers(text(tmp_path, "\n".join(["image,decision", *rows]) + "\n"))
    assert "IMAGE its stimulus" in caught.value.hint
