"""Tables of answers as programs and people write them: what could be read in two ways is refused with what to do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.labels import label_space
from cuebench.observers.adapters.recorded import RecordedObserver, load
from cuebench.observers.base import LoadOptions, Spec
from cuebench.observers.raw_data import read_raw_data
from cuebench.reading import separator_of

CLASSES = ("bear", "cat", "dog")


def observers(path: Path, options: str = "", targets: Sequence[str] = CLASSES) -> list[RecordedObserver]:
    return load(Spec.parse(f"recorded:{path}{options}"), LoadOptions(targets=tuple(targets)))  # type: ignore[return-value]


def text(folder: Path, content: str, name: str = "m.csv") -> Path:
    (folder / name).write_text(content, "utf-8")
    return folder / name


def decisions(file: Path, options: str = "") -> list[str]:
    (found,) = observers(file, options)
    return found.columns["decisions"].tolist()


# ------------------------------------------------------------------------------------- answers and who gave them


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("image,decision,response", ["a,cat,cat", "b,,dog"], "line 3: .*decision is '' and response is 'dog'"),
        ("image,decision,answer", ["a,cat,cat", "b,na,dog"], "line 3: .*decision is '' and answer is 'dog'"),
        ("image,decision,answer", ["a,cat,cat", "b,dog,"], "line 3: .*decision is 'dog' and answer is ''"),
        ("image,decision,answer", ["a,,cat", "b,,dog"], "line 2: .*decision is '' and answer is 'cat'"),
    ],
)
def test_an_answer_in_one_of_two_columns_is_refused(header, rows, message, tmp_path):
    with pytest.raises(UserError, match=message) as error:
        observers(text(tmp_path, "\n".join([header, *rows]) + "\n"))
    assert "rename or remove" in error.value.hint


def test_no_answer_in_both_columns_is_no_answer(tmp_path):
    assert decisions(text(tmp_path, "image,decision,answer\na,cat,cat\nb,na,\nc,,\n")) == ["cat", "na", "na"]
    assert decisions(text(tmp_path, "image,decision,answer\na,cat,\nb,,\n")) == ["cat", "na"]  # an unused column


@pytest.mark.parametrize(
    "name", ["participant_id", "Subject_ID", "worker_id", "Participant ID", "WorkerId", "participant-id"]
)
def test_columns_of_people_are_people(name, tmp_path):
    found = observers(text(tmp_path, f"{name},image,decision\nann,a,cat\nbob,b,dog\n"))
    assert [(o.name, o.kind) for o in found] == [("ann", "person"), ("bob", "person"), ("people", "people")]


def test_a_column_model_names_models(tmp_path):
    found = observers(text(tmp_path, "model,image,decision\nvit,a,cat\nresnet,a,dog\n"))
    assert [(o.name, o.kind) for o in found] == [("resnet", "model"), ("vit", "model")]


@pytest.mark.parametrize("other", ["participant", "worker_id", "model", "observer"])
def test_two_columns_of_subjects_that_differ_are_refused(other, tmp_path):
    with pytest.raises(UserError, match="could be the subject"):
        observers(text(tmp_path, f"participant_id,{other},image,decision\nann,x,a,cat\nbob,x,b,dog\n"))
    found = observers(text(tmp_path, f"participant_id,{other},image,decision\nann,ann,a,cat\nbob,bob,b,dog\n"))
    assert {o.name for o in found} == {"ann", "bob", "people"} - ({"people"} if other == "observer" else set())


# ------------------------------------------------------------------------------------------------ response times


@pytest.mark.parametrize(
    "header", ["subject,image,decision,rt", "subj,imagename,object_response,RT", "subject,image,answer,Rt"]
)
def test_milliseconds_are_refused(header, tmp_path):
    rows = ["ann,a,cat,643", "ann,b,dog,812", "ann,c,dog,na"]
    with pytest.raises(UserError, match="column rt has the median 728, which looks like milliseconds") as error:
        observers(text(tmp_path, "\n".join([header, *rows]) + "\n"))
    assert "divide it by 1000" in error.value.hint


def test_choices_and_raw_data_in_milliseconds_are_refused(tmp_path):
    header = "subject,anchor,shape_match,texture_match,choice,rt"
    with pytest.raises(UserError, match="milliseconds"):
        observers(text(tmp_path, f"{header}\nann,dax-a,dax-b,wug-a,shape,643\n"))
    (tmp_path / "raw-data/edge").mkdir(parents=True)
    header = "subj,session,trial,rt,object_response,category,condition,imagename"
    text(tmp_path / "raw-data/edge", f"{header}\nsubject-01,1,1,643,cat,cat,0,cat1.png\n")
    with pytest.raises(UserError, match="milliseconds"):
        read_raw_data(tmp_path)


def test_one_slow_answer_is_none_in_milliseconds(tmp_path):
    (found,) = observers(text(tmp_path, "subject,image,decision,rt\nann,a,cat,643\nann,b,dog,0.8\nann,c,dog,0.7\n"))
    assert found.columns["rt"].tolist() == [643, 0.8, 0.7]


# ------------------------------------------------------------------------------------------------------- folders


@pytest.mark.parametrize("name", ["b.tsv", "b.TSV", "b.CSV", "b.Csv"])
def test_a_folder_is_read_whole(name, tmp_path):
    text(tmp_path, "subject,image,decision\nann,a,cat\n", "a.csv")
    content = "subject,image,decision\nann,b,dog\n"
    text(tmp_path, content.replace(",", "\t") if "tsv" in name.lower() else content, name)
    text(tmp_path, "about these answers", "README.txt")
    text(tmp_path, "[]", "labels.json")
    text(tmp_path, "", ".hidden.json")
    (tmp_path / "pictures").mkdir()
    text(tmp_path / "pictures", "", "a.png")
    assert decisions(tmp_path) == ["cat", "dog"]


@pytest.mark.parametrize(
    "name",
    ["b.xlsx", "b.json", "b.XLS", "b.jsonl", "b.csv.gz", "b.txt", "2025/b.csv", "2025/deep/b.xlsx", "edge/b.json"],
)
def test_tables_that_are_not_read_are_named(name, tmp_path):
    text(tmp_path, "subject,image,decision\nann,a,cat\n", "a.csv")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    text(tmp_path, "subject,image,decision\nann,b,dog\n", name)
    named = name if name.startswith("edge/") else name.partition("/")[0] + "/" * ("/" in name)
    with pytest.raises(UserError, match="tables that are not read") as error:
        observers(tmp_path)
    assert f" {named}\n" in f" {error.value.message}\n".replace(";", "\n")
    assert ".csv" in error.value.hint


def test_raw_data_in_capitals_are_raw_data(tmp_path):
    header = "subj,session,trial,rt,object_response,category,condition,imagename"
    (tmp_path / "edge").mkdir()
    text(tmp_path / "edge", f"{header}\nsubject-01,1,1,0.6,cat,cat,0,cat1.png\n", "A.CSV")
    assert read_raw_data(tmp_path).table.num_rows == 1


@pytest.mark.parametrize("name", ["labels.JSON", "labels.CSV"])
def test_label_files_in_capitals(name, tmp_path):
    text(tmp_path, '["bear", "cat", "dog"]' if "JSON" in name else "name\nbear\ncat\ndog\n", name)
    assert label_space(tmp_path / name).names == CLASSES


# ------------------------------------------------------------------------------------- separators, decimal commas


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ('"image";"decision";"remark, if any"', 'a;"cat";"1, 2"'),
        ('image\tdecision\t"a, b; c"', "a\tcat\tx"),
        ('image,decision,"a; b\tc"', "a,cat,x"),
        ('image;decision;"two, \nlines"', "a;cat;x"),
    ],
)
def test_separators_within_quotes_separate_nothing(header, row, tmp_path):
    assert decisions(text(tmp_path, f"{header}\n{row}\n")) == ["cat"]


def test_the_separator_of_a_hostile_header_is_found_quickly():
    start = time.monotonic()
    for header in ('"' * 1_000_001, '"a' * 1_000_000, "a;" * 1_000_000, '"' + "\n" * 1_000_000):
        separator_of(header)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("cell", ["0,39", ",39", "39,", "1,000,5", "-,5"])
@pytest.mark.parametrize("separator", ["\t", ",", ";"])
def test_decimal_commas_are_never_other_numbers(separator, cell, tmp_path):
    file = text(tmp_path, f"subject;image;decision;rt\nann;a;cat;{cell}\n".replace(";", separator))
    if (separator, cell) == (";", "0,39"):
        (found,) = observers(file)
        assert found.columns["rt"].tolist() == [0.39]
    else:
        with pytest.raises(UserError):
            observers(file)


@pytest.mark.parametrize("cell", ["0,39,0,61", ",39 ,61", "0,39, ,61", ",39, ,61", "1,,2"])
def test_lists_with_decimal_commas_in_files_of_tabs_are_refused(cell, tmp_path):
    with pytest.raises(UserError, match="line 2: logits is"):
        observers(text(tmp_path, f"image\tlogits\na\t{cell}\n"))
    if cell != "0,39,0,61":  # in a file of commas these are four numbers
        with pytest.raises(UserError, match="line 2: logits is"):
            observers(text(tmp_path, f'image,logits\na,"{cell}"\n'))


def test_the_half_of_a_number_in_a_column_without_a_name_is_refused(tmp_path):
    with pytest.raises(UserError, match="column 5 has values and no name"):
        observers(text(tmp_path, "subject,image,decision,rt,\nann,a,cat,0,39\nann,b,dog,0,41\n"))
    assert decisions(text(tmp_path, "subject,image,decision,\nann,a,cat,\nann,b,dog,\n")) == ["cat", "dog"]


# ------------------------------------------------------------------------------------- the published raw data

RAW_LINES = "subj,session,trial,rt,object_response,category,condition,imagename\n{who},1,1,0.6,cat,cat,0,cat1.png\n"


def published(folder, **others):
    """The folder raw-data as it is published: beside its data sets, accuracies of models."""
    for where, content in {"edge/edge_subject-01_session_1.csv": RAW_LINES.format(who="subject-01"), **others}.items():
        (folder / where).parent.mkdir(parents=True, exist_ok=True)
        text(folder, content, where)
    return folder


def test_tables_that_are_no_answers_are_left_out_of_published_raw_data_and_named(tmp_path):
    folder = published(
        tmp_path / "raw-data",
        **{"performances/imagenet.csv": "model,top1\nresnet50,0.76\n", "performances/ood/all.csv": "model,mean\nx,1\n"},
    )
    (person,) = observers(folder, targets=())
    assert person.names == ("edge/cat/cat1",)
    assert "left out of raw-data: performances/ (tables that are no answers)" in person.notes
    assert read_raw_data(folder).table.num_rows == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("edges/edges_subject-02_session_1.csv", RAW_LINES.format(who="subject-02")),
        ("mine/answers.csv", "image,answer\ncat1,cat\n"),
        ("mine/choices.csv", "anchor,shape_match,texture_match,choice\na,b,c,shape\n"),
        ("performances/table.xlsx", "?"),
        ("performances/broken.csv", '"a\nb'),
        ("performances/empty.csv", ""),
        ("table.json", "[]"),
    ],
)
def test_tables_that_may_be_answers_are_never_left_out_of_published_raw_data(name, content, tmp_path):
    with pytest.raises(UserError, match="tables that are not read"):
        observers(published(tmp_path / "raw-data", **{name: content}), targets=())
