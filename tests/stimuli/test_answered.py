"""A table of answers to stimuli of one's own, without the pictures, is scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cuebench
from cuebench import cli
from cuebench.errors import UserError
from cuebench.protocols.cue_conflict import read
from cuebench.stimuli.answered import write_stimuli
from cuebench.stimuli.readers.cue_conflict import NO_SOURCES

ROWS = [
    "ann,a.png,ball,brick,ball",
    "ann,b.png,box,brick,brick",
    "bob,a.png,ball,brick,ball",
    "bob,b.png,box,brick,box",
]


def table(folder: Path, rows: list[str], header: str = "Subject,Image,Shape,Texture,Answer") -> Path:
    file = folder / "answers.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def test_answers_alone_give_the_shape_bias(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = table(tmp_path, ROWS)
    assert cli.invoke(["import", "answers", str(file), "--out", str(tmp_path / "data")]) == 0
    assert "2 stimuli of 3 classes" in capsys.readouterr().out
    scores = cuebench.evaluate(f"recorded:{file}", "cue_conflict", data_root=tmp_path / "data", out=tmp_path / "run")
    assert scores.value("people", "shape_bias") == 0.75
    assert scores.value("ann", "shape_bias") == 0.5
    assert read(tmp_path / "data").notes == (NO_SOURCES,)


def test_sources_of_the_table_or_of_the_names_are_kept(tmp_path: Path) -> None:
    header = "subject,image,shape,texture,shape_source,texture_source,answer"
    write_stimuli(table(tmp_path, ["ann,a.png,ball,brick,ball7,wall,ball"], header), tmp_path / "one")
    write_stimuli(table(tmp_path, ["ann,ball1-brick2.png,ball,brick,ball"]), tmp_path / "two")
    ((first,), (second,)) = (read(tmp_path / name).stimuli for name in ("one", "two"))
    assert (first.shape_source, first.texture_source) == ("ball7", "wall")
    assert (second.shape_source, second.texture_source) == ("ball1", "brick2")
    assert not read(tmp_path / "two").notes


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no column texture"):
        write_stimuli(table(tmp_path, ["ann,a,ball,ball"], "subject,image,shape,answer"), tmp_path / "data")
    with pytest.raises(UserError, match=r"line 3: 'a' was .*brick.*fur"):
        write_stimuli(table(tmp_path, [ROWS[0], "bob,a.png,ball,fur,ball"]), tmp_path / "data")
    write_stimuli(table(tmp_path, ROWS), tmp_path / "data")
    with pytest.raises(UserError, match="another set"):
        write_stimuli(table(tmp_path, ROWS[:1]), tmp_path / "data")


def conflict_table(folder: Path, rows: list[str]) -> Path:
    """Write a data root whose table says shape and texture; return the root."""
    home = folder / "data" / "cue_conflict"
    home.mkdir(parents=True)
    (home / "stimuli.csv").write_text("\n".join(["id,shape,texture", *rows]) + "\n")
    return home.parent


def shape_bias(tmp_path: Path, answers: list[str], data: Path | None, **options: int) -> cuebench.Scores:
    file = table(tmp_path, [f"ann,{line}" for line in answers], "subject,image,decision")
    return cuebench.evaluate(f"recorded:{file}", "cue_conflict", data_root=data, out=tmp_path / "run", **options)


def test_the_table_of_a_data_root_counts_more_than_names(tmp_path: Path) -> None:
    data = conflict_table(tmp_path, ["cat1-dog2,dog,cat", "cat2-dog1,cat,dog", "x,cat,dog"])
    answers = ["cat1-dog2.png,dog", "cat2-dog1.png,cat", "some/x.png,cat"]
    scores = shape_bias(tmp_path, answers, data)
    assert scores.value("ann", "shape_bias") == 1  # by the names it would be a half
    note = next(s.note for s in scores if s.metric == "shape_bias")
    assert "stimuli.csv counts: it says another shape or texture than 1 names ('cat1-dog2' …)" in note


def test_a_limit_draws_from_the_table_for_recordings_too(tmp_path: Path) -> None:
    data = conflict_table(tmp_path, [f"p{i},cat,dog" for i in range(6)])
    scores = shape_bias(tmp_path, [f"p{i},cat" for i in range(6)], data, limit=3)
    assert next(s.n for s in scores if s.metric == "shape_bias") == 3


def test_recorded_stimuli_that_the_table_lacks_are_left_out_and_counted(tmp_path: Path) -> None:
    data = conflict_table(tmp_path, ["cat1-dog2,cat,dog"])
    scores = shape_bias(tmp_path, ["cat1-dog2,cat", "dog1-cat1,cat", "dog1-cat2,cat"], data)
    assert scores.value("ann", "shape_bias") == 1
    note = next(s.note for s in scores if s.metric == "shape_bias")
    assert "partial set: " in note
    assert "only the 1 of 3 recorded stimuli that cue_conflict/stimuli.csv lists" in note


def test_a_recording_of_which_the_table_has_nothing_is_refused(tmp_path: Path) -> None:
    data = conflict_table(tmp_path, ["picture01,cat,dog"])
    with pytest.raises(UserError, match=r"none of the 1 recorded stimuli \('cat1-dog2' …\) is in .*stimuli\.csv") as no:
        shape_bias(tmp_path, ["cat1-dog2,cat"], data)
    assert "another --data-root, or none" in no.value.hint


@pytest.mark.parametrize("content", ["", "id,shape\ncat1-dog2,cat\n", None])
def test_names_do_not_stand_in_for_a_table_that_cannot_be_read(tmp_path: Path, content: str | None) -> None:
    data = conflict_table(tmp_path, [])
    file = data / "cue_conflict" / "stimuli.csv"
    file.unlink()
    if content is None:
        file.symlink_to("nowhere")
    else:
        file.write_text(content)
    with pytest.raises(UserError, match=r"stimuli\.csv"):
        shape_bias(tmp_path, ["cat1-dog2,cat"], data)


def test_a_name_that_can_be_two_stimuli_of_the_table_is_refused(tmp_path: Path) -> None:
    data = conflict_table(tmp_path, ["a/x,cat,dog", "b/x,dog,cat", "b/y,dog,cat"])
    with pytest.raises(UserError, match="'x' can be 'a/x' or 'b/x'") as no:
        shape_bias(tmp_path, ["x.png,cat", "y.png,dog"], data)
    assert "with their folders" in no.value.hint
    with pytest.raises(UserError, match="'x' can be 'a/x' or 'b/x'"):  # of the whole set, not of what is drawn
        shape_bias(tmp_path, ["x.png,cat", "y.png,dog"], data, limit=1)
    assert shape_bias(tmp_path, ["y.png,dog"], data).value("ann", "shape_bias") == 1


@pytest.mark.parametrize("column", [2, 3])
def test_classes_that_differ_by_case_are_refused_before_a_set_is_written(column: int, tmp_path: Path) -> None:
    other = ROWS[1].split(",")
    other[column] = {2: "Ball", 3: "Ball"}[column]
    with pytest.raises(UserError, match="'Ball' and 'ball' differ only by case") as no:
        write_stimuli(table(tmp_path, [ROWS[0], ",".join(other)]), tmp_path / "data")
    assert "write each class in one way" in no.value.hint
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "lines",
    [["ID,Shape,TEXTURE", "x,cat,dog"], [",id,shape,texture", "0,x,cat,dog"], [",Id,shape,texture", "1,x,cat,dog"]],
)
def test_a_table_of_stimuli_as_programs_write_it(lines: list[str], tmp_path: Path) -> None:
    file = conflict_table(tmp_path, []) / "cue_conflict" / "stimuli.csv"
    file.write_text("\n".join(lines) + "\n")
    (stimulus,) = read(tmp_path / "data").stimuli
    assert (stimulus.id, stimulus.shape, stimulus.texture) == ("x", "cat", "dog")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["id,Shape,shape,texture", "x,cat,dog,dog"], "'shape' occurs twice"),
        ([",id,shape,texture", "7,x,cat,dog"], "unknown column ''"),
    ],
)
def test_columns_of_a_table_of_stimuli_that_are_unclear(lines: list[str], problem: str, tmp_path: Path) -> None:
    file = conflict_table(tmp_path, []) / "cue_conflict" / "stimuli.csv"
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=problem):
        read(tmp_path / "data")


def test_members_of_a_map_that_a_model_lacks_are_named_beside_its_numbers(tmp_path: Path) -> None:
    data = conflict_table(tmp_path, ["a,cat,dog", "b,dog,cat"])
    maps = {"cat": ["tabby", "Egyptain cat"], "dog": ["golden retriever"]}
    (data / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": maps}))
    file = table(tmp_path, ["a,281", "b,207"], "image,prediction")
    spec = f"recorded:{file}?labels=imagenet1k"
    scores = cuebench.evaluate(spec, "cue_conflict", data_root=data, out=tmp_path / "run", resamples=100)
    assert scores.value("answers", "shape_bias", condition="1000-way") == 1
    notes = {row.note for row in scores if row.observer == "answers" and row.metric == "shape_bias"}
    assert all("1 of 3 members of the label map are no class of 'imagenet1k'" in note for note in notes)
    assert all("('cat' lists 'Egyptain cat')" in note for note in notes)
    (data / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": {**maps, "cat": ["Egyptain cat"]}}))
    with pytest.raises(UserError, match="'cat' is none of its classes by its listed members 'Egyptain cat'"):
        cuebench.evaluate(spec, "cue_conflict", data_root=data, out=tmp_path / "other", resamples=100)
