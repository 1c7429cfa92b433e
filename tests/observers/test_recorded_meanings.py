"""Who answered, which column is the answer, which rows count, and in which label space: never guessed, never silent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import cuebench
from cuebench.errors import UserError
from cuebench.observers.adapters.recorded import ADAPTER, UNTIMED, RecordedObserver, load
from cuebench.observers.base import LoadOptions, Spec
from cuebench.observers.recorded_columns import says_truth

CLASSES = ("bear", "cat", "dog")
RAW = "subj,session,trial,rt,object_response,category,condition,imagename"


def observers(path: Path, options: str = "", targets: Sequence[str] = CLASSES) -> list[RecordedObserver]:
    return load(Spec.parse(f"recorded:{path}{options}"), LoadOptions(targets=tuple(targets)))  # type: ignore[return-value]


def text(folder: Path, content: str, name: str = "m.csv") -> Path:
    (folder / name).write_text(content, "utf-8")
    return folder / name


def kinds(path: Path, options: str = "") -> list[tuple[str, str]]:
    return [(found.name, found.kind) for found in observers(path, options)]


# ------------------------------------------------------------------------------------------------------ people

TWO_PEOPLE = [("ann", "person"), ("bob", "person"), ("people", "people")]


@pytest.mark.parametrize("times", [("NA", "NA"), ("0.7", "NA"), ("0.7", "0.8")])
@pytest.mark.parametrize("name", ["participant", "subject", "PROLIFIC_PID"])
def test_people_without_response_times_are_people(name, times, tmp_path):
    rows = [f"ann,a,cat,{times[0]}", f"bob,a,dog,{times[1]}"]
    assert kinds(text(tmp_path, "\n".join([f"{name},image,decision,rt", *rows]) + "\n")) == TWO_PEOPLE


def test_choices_of_people_without_response_times(tmp_path):
    header = "participant,anchor,shape_match,texture_match,choice,rt"
    assert (
        kinds(text(tmp_path, f"{header}\nann,dax-a,dax-b,wug-a,shape,0.6\nbob,dax-a,dax-b,wug-a,shape,\n"))
        == TWO_PEOPLE
    )


def test_only_in_raw_data_do_times_tell_models_from_people_and_a_note_says_so(tmp_path):
    rows = ["ann,1,1,0.6,cat,cat,0,cat1-dog2.png", "net,1,1,NaN,cat,cat,0,cat1-dog2.png"]
    file = text(tmp_path, "\n".join([RAW, *rows]) + "\n")
    ann, net = observers(file)
    assert [(ann.kind, ann.notes), (net.kind, net.notes)] == [("person", ()), ("model", (UNTIMED,))]
    assert "?kind=person" in UNTIMED
    assert [found.notes for found in observers(file, "?kind=person")] == [()] * 3
    rows = [f"{row},{kind}" for row, kind in zip(rows, ("person", "model"))]
    said = observers(text(tmp_path, "\n".join([f"{RAW},kind", *rows]) + "\n"))
    assert [(found.kind, found.notes) for found in said] == [("person", ()), ("model", ())]
    assert kinds(text(tmp_path, said[0].file.read_text().replace("model", "person"))) == [  # type: ignore[union-attr]
        *[("ann", "person"), ("net", "person")],
        ("people", "people"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("PROLIFIC_PID", "prolific_id", "Prolific ID", "prolificId", "subject_nr", "Participant Private ID"),
        *("Participant.Private.ID", "PID", "sub", "user", "rater", "VP", "Versuchsperson", "subjectID", "WORKER ID"),
    ],
)
def test_names_of_people_as_programs_write_them(name, tmp_path):
    assert kinds(text(tmp_path, f"{name},image,decision\nann,a,cat\nbob,a,dog\n")) == TWO_PEOPLE


def test_two_columns_that_name_the_same_people_are_one(tmp_path):
    header = "participant,PROLIFIC_PID,image,decision"
    file = text(tmp_path, f"{header}\nann,5f1,a,cat\nbob,5f2,a,dog\nann,5f1,b,dog\n")
    assert kinds(file) == TWO_PEOPLE
    with pytest.raises(UserError, match="could be the subject"):
        observers(text(tmp_path, f"{header}\nann,5f1,a,cat\nbob,5f1,a,dog\n"))


def test_a_column_that_may_say_who_answered_is_named(tmp_path):
    rows = ["ann,x,0.5,a,cat", "bob,y,0.5,b,dog"]
    (one,) = observers(text(tmp_path, "\n".join(["Kandidat,group,confidence,image,decision", *rows]) + "\n"))
    assert one.notes == ("no column says who answered: taken for one observer (not used: 'Kandidat', 'group')",)
    again = text(tmp_path, "Kandidat,image,decision\nann,a,cat\nbob,a,dog\n")
    with pytest.raises(UserError, match="repeated trials") as error:
        observers(again)
    assert (
        "no column says who answered (not used: 'Kandidat'): rename the one that does to participant"
        in error.value.hint
    )
    assert kinds(text(tmp_path, again.read_text().replace("Kandidat", "participant"))) == TWO_PEOPLE


@pytest.mark.parametrize("name", ["Candidate", "name", "code", "second"])
def test_columns_that_may_say_who_answered(name, tmp_path):
    (one,) = observers(text(tmp_path, f"{name},start_date,image,decision\nann,1.1.,a,cat\nbob,2.1.,b,dog\n"))
    assert one.notes == (f"no column says who answered: taken for one observer (not used: {name!r})",)


@pytest.mark.parametrize("content", ["image,decision\na,cat\nb,dog\n", "image,logits,x\na,1 2 3,u\nb,1 2 3,v\n"])
def test_where_nothing_may_say_who_answered_there_is_no_note(content, tmp_path):
    (one,) = observers(text(tmp_path, content))
    assert one.notes == ()


@pytest.mark.parametrize("other", ["ANN", "Ann", "an n"])
def test_subjects_that_differ_by_case_or_blanks_are_refused(other, tmp_path):
    with pytest.raises(UserError, match=rf"'ann' .*and '{other}'"):
        observers(text(tmp_path, f"participant,image,decision\nann,a,cat\n{other},b,dog\n"))
    assert kinds(text(tmp_path, "participant,image,decision\nann,a,cat\nann ,b,dog\n")) == [("ann", "person")]


def test_answers_stored_under_an_earlier_reading_are_not_taken():
    assert ADAPTER.version >= 4


# -------------------------------------------------------------------------------------------------- the answer


@pytest.mark.parametrize("header", ["image,answer,output", "image,prediction,output", "image,answer,label"])
def test_a_second_column_of_classes_is_refused(header, tmp_path):
    file = text(tmp_path, f"{header}\na,cat,cat\nb,dog,bear\n")
    with pytest.raises(UserError, match=r"line 3: .*could both be the answer") as error:
        observers(file)
    assert "rename it to truth" in error.value.hint
    _, first, second = header.split(",")
    followed = header.replace(first, "truth").replace(second, "decision")
    (found,) = observers(text(tmp_path, f"{followed}\na,cat,cat\nb,dog,bear\n"))
    assert found.columns["decisions"].tolist() == ["cat", "bear"]


@pytest.mark.parametrize(
    "name", ["category", "truth", "target", "corrAns", "correct_response", "label", "shape_label", "remark"]
)
def test_what_was_right_and_remarks_are_no_second_answer(name, tmp_path):
    cell = "a blurred one" if name == "remark" else "bear"
    (found,) = observers(text(tmp_path, f"image,prediction,{name}\na,cat,cat\nb,dog,{cell}\n"))
    assert found.columns["decisions"].tolist() == ["cat", "dog"]


def test_names_of_truth():
    assert says_truth("ground_truth", "answer")
    assert says_truth("category", "answer")
    assert not says_truth("predicted_class", "decision")
    assert not says_truth("class", "answer")


# ------------------------------------------------------------------------------------- decisions in a named space


@pytest.mark.parametrize(
    ("labels", "words", "found"),
    [
        ("imagenet1k", ("281", "207"), ("n02123045", "n02099601")),
        ("imagenet1k", ("281.0", "golden retriever"), ("n02123045", "golden retriever")),
        ("in16", ("7", "10"), ("7", "10")),
    ],
)
def test_decisions_are_names_or_positions_in_the_named_space(labels, words, found, tmp_path):
    file = text(tmp_path, f"image,decision\na,{words[0]}\nb,{words[1]}\n")
    (one,) = observers(file, f"?labels={labels}")
    assert one.columns["decisions"].tolist() == list(found)
    assert one.labels is not None
    names = [one.labels.names[one.labels.find(word) or 0] for word in found]
    assert names == (["tabby", "golden retriever"] if labels == "imagenet1k" else ["cat", "dog"])
    assert not one.notes


def test_two_classes_of_one_name_are_told_apart_by_their_positions(tmp_path):
    text(tmp_path, '["tabby", "crane", "crane"]', "space.json")
    (one,) = observers(text(tmp_path, "image,decision\na,1\nb,2\n"), f"?labels={tmp_path / 'space.json'}")
    assert one.labels is not None
    assert [one.labels.find(word) for word in one.columns["decisions"].tolist()] == [1, 2]


@pytest.mark.parametrize("words", [("Katze", "Hund"), ("1000", "2000"), ("-1", "")])
def test_decisions_that_are_nothing_in_the_named_space_are_refused(words, tmp_path):
    with pytest.raises(UserError, match="no response is a class of the label space 'imagenet1k'"):
        observers(text(tmp_path, f"image,decision\na,{words[0]}\nb,{words[1]}\n"), "?labels=imagenet1k")


@pytest.mark.parametrize("word", ["1000", "-1"])
def test_positions_out_of_the_named_space_are_refused(word, tmp_path):
    with pytest.raises(UserError, match=rf"'{word}' is no position .*0 to 999"):
        observers(text(tmp_path, f"image,decision\na,281\nb,{word}\n"), "?labels=imagenet1k")


def test_positions_in_a_named_space_are_scored(tmp_path):
    rows = ["bear1-cat1,1", "bear2-cat2,7", "cat1-dog1,7", "cat2-dog2,0"]
    file = text(tmp_path, "\n".join(["image,decision", *rows]) + "\n")
    with pytest.raises(UserError, match="no response is a class") as error:
        observers(file)
    assert "?labels=NAME" in error.value.hint
    scores = cuebench.evaluate(f"recorded:{file}?labels=in16", "cue_conflict", out=tmp_path / "run", resamples=100)
    assert scores.value("m", "shape_bias") == pytest.approx(2 / 3)


# --------------------------------------------------------------------------------------------- rows that count


@pytest.mark.parametrize("value", ["False", "0", "no", "", "-", "NA"])
def test_a_table_in_which_no_row_is_excluded_is_one_of_its_own(value, tmp_path):
    file = text(tmp_path, f"participant,stimulus,response,rt,excluded\nann,a,cat,0.6,{value}\nbob,a,dog,,{value}\n")
    assert kinds(file) == TWO_PEOPLE


@pytest.mark.parametrize(
    ("column", "value"), [("excluded", "True"), ("excluded", "too fast"), ("kind", "practice"), ("Kind", "attention")]
)
def test_rows_that_do_not_count_are_refused_and_the_hint_can_be_followed(column, value, tmp_path):
    rows = ["ann,a,cat,", f"ann,b,dog,{value}"]
    file = text(tmp_path, "\n".join([f"participant,stimulus,response,{column}", *rows]) + "\n")
    with pytest.raises(UserError, match=f"line 3: the column {column} says that this row does not count") as error:
        observers(file)
    assert error.value.hint == f"remove these rows, and the column {column}"
    assert kinds(text(tmp_path, "participant,stimulus,response\nann,a,cat\n")) == [("ann", "person")]


def test_an_export_that_lost_columns_is_refused(tmp_path):
    file = text(tmp_path, "participant,stimulus,response,rules_sha256\nann,a,cat,1\n")
    with pytest.raises(UserError, match="seems to be the export of a study, and has no column") as error:
        observers(file)
    assert "rename or remove what only an export has: rules_sha256" in error.value.hint


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("participant,task,stimulus,response,excluded", "ann,main,a,cat,False"),
        ("participant,kind,stimulus,response,excluded", "ann,conflict,a,cat,False"),
        ("participant,kind,stimulus,response", "ann,trial,a,cat"),
        ("participant,stimulus,response,excluded", "ann,a,cat,False"),
    ],
)
def test_a_table_with_some_columns_of_an_export_is_none(columns, row, tmp_path):
    assert kinds(text(tmp_path, f"{columns}\n{row}\n")) == [("ann", "person")]


@pytest.mark.parametrize(
    ("columns", "row", "removed"),
    [
        ("participant,task,stimulus,response,excluded", "ann,shape,a,cat,False", "task"),
        ("participant,kind,task,stimulus,response", "ann,trial,main,a,cat", "kind"),
    ],
)
def test_what_one_column_makes_an_export_is_none_without_it(columns, row, removed, tmp_path):
    with pytest.raises(UserError, match="seems to be the export of a study") as error:
        observers(text(tmp_path, f"{columns}\n{row}\n"))
    assert f"what only an export has: {removed}" in error.value.hint
    assert kinds(text(tmp_path, f"{columns.replace(removed, 'own')}\n{row}\n")) == [("ann", "person")]


# ------------------------------------------------------------------------------------------- as programs write it


@pytest.mark.parametrize("names", ["Logit_0,Logit_1,Logit_2", "LOGIT_0,logit_1,Logit_2", "LOGITS_0,LOGITS_1,LOGITS_2"])
def test_capitals_of_numbered_columns_do_not_matter(names, tmp_path):
    (found,) = observers(text(tmp_path, f"image,{names}\na,1,2,-1\n"))
    assert found.columns["logits"].tolist() == [[1, 2, -1]]


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_the_row_names_of_write_table_are_one_line(separator, tmp_path):
    rows = [f'"{row}",ann,picture{row},cat,0.5' for row in range(1, 200)]
    content = "\n".join(["subject,image,decision,rt", *rows]) + "\n"
    with pytest.raises(UserError, match="one cell more than the header") as error:
        observers(text(tmp_path, content.replace(",", separator)))
    assert "row.names=FALSE" in error.value.hint
    assert "\n" not in error.value.message
