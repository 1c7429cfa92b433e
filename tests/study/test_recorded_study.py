"""The export of a study as an observer: people stand beside ideal observers, and the planted value is found again."""

from __future__ import annotations

import csv

import pytest

from cuebench.errors import UserError
from cuebench.observers.adapters.recorded import load
from cuebench.observers.base import LoadOptions, Spec
from cuebench.runs.evaluate import evaluate
from cuebench.study.simulate import population
from cuebench.types import Score
from small_data import write_cue_conflict
from study_data import export, make_study, small_design, take_part, write_refined_bias

IDEAL = "ideal:mixture?shape=0.8"
CLASSES = ("cat", "dog", "car", "clock")
COLUMNS = ("participant", "task", "kind", "stimulus", "shape", "texture", "response", "excluded", "rt_ms")


def observers(path, options="", targets=CLASSES):
    return load(Spec.parse(f"recorded:{path}{options}"), LoadOptions(targets=targets))


def write(path, rows, columns=COLUMNS):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def one(rows, observer, condition, metric, kind=None) -> Score:
    found = [r for r in rows if (r.observer, r.condition, r.metric) == (observer, condition, metric)]
    return next(r for r in found if kind in (None, r.ci_kind))


@pytest.fixture(scope="module")
def conflict(tmp_path_factory):
    """A data root of cue conflict, and the export of a study that twelve people with a shape bias of .8 answered."""
    base = tmp_path_factory.mktemp("conflict")
    data = write_cue_conflict(base / "data", instances=6)
    changes = {"count": "36", "practice": "2", "attention": "2", "pixels": "16"}
    made = make_study(base / "study", small_design("cue_conflict", base / "design", **changes), data)
    take_part(made, population("ideal:mixture?shape=0.8&missing=0.05"), 12, unfinished=1)
    return data, made


@pytest.fixture(scope="module")
def run(conflict, tmp_path_factory):
    data, made = conflict
    folder = tmp_path_factory.mktemp("run")
    answers = export(made, folder / "answers.parquet")
    specs = [f"recorded:{answers}", IDEAL]
    return evaluate(
        specs, ["cue_conflict", "human_alignment"], data_root=data, out=folder / "run", resamples=200, workers=1
    ).rows


def test_people_stand_beside_the_ideal_observer_and_the_planted_bias_is_recovered(run):
    people = one(run, "people", "4-way", "shape_bias", "two_way")
    ideal = one(run, IDEAL, "4-way", "shape_bias")
    assert people.ci_low < 0.8 < people.ci_high
    assert people.value == pytest.approx(0.8, abs=0.06)
    assert ideal.value == pytest.approx(0.8, abs=0.12)
    assert len({r.observer for r in run if r.observer.startswith("p0")}) == 11
    assert one(run, "people", "4-way/mean_of_subjects", "shape_bias").n == 11


def test_who_was_left_out_is_a_note_of_the_pooled_people(run):
    assert "1 of 12 participants excluded: not finished (1)" in one(run, "people", "4-way", "shape_bias").note


def test_human_alignment_takes_them_as_people(run):
    ideal = one(run, IDEAL, "mean", "error_consistency")
    assert "11 people" in ideal.note
    people = one(run, "people", "mean", "accuracy")
    assert people.value == pytest.approx(0.95 * 0.8, abs=0.06)


def test_practice_attention_checks_and_unfinished_people_are_no_trials(conflict, tmp_path):
    _, made = conflict
    found = observers(export(made, tmp_path / "answers.csv"))
    assert found[-1].name == "people"
    assert [len(o.names) for o in found[:-1]] == [36] * 11
    assert all(o.kind == "person" for o in found[:-1])
    assert found[0].stimulus_names()[0].startswith("cue-conflict/")
    assert 0.2 < found[0].columns["rt"][0] < 5 or found[0].columns["decisions"][0] == "na"


@pytest.mark.slow
def test_refined_bias_of_people_is_their_accuracy(tmp_path):
    data = write_refined_bias(tmp_path / "data")
    made = make_study(tmp_path / "study", small_design("refined_bias", tmp_path / "design", pixels="16"), data)
    take_part(made, population("ideal:shape?shape_accuracy=0.95&texture_accuracy=0.7"), 6)
    answers = export(made, tmp_path / "answers.parquet")
    out = tmp_path / "run"
    rows = evaluate(
        [f"recorded:{answers}?only=pooled", "ideal:shape"], ["refined_bias"], data_root=data, out=out, resamples=200,
        workers=1,
    ).rows  # fmt: skip
    assert one(rows, "people", "faithful", "shape_top1").value == pytest.approx(0.95, abs=0.04)
    assert one(rows, "people", "faithful", "texture_top1").value == pytest.approx(0.7, abs=0.09)
    assert one(rows, "ideal:shape", "faithful", "shape_top1").value == 1


def test_triplets_of_people_are_choices_in_the_condition_that_models_have(tmp_path):
    condition = "experiment3/size=1.0/aligned"
    where = f'{{ condition = ["{condition}"], shape = ["dax", "wug"], texture = ["bricks", "foam", "fur"] }}'
    design = small_design("triplets", tmp_path / "design", where=where, count="6", attention="1")
    made = make_study(tmp_path / "study", design)
    take_part(made, population("ideal:mixture?shape=0.75"), 20)
    out = tmp_path / "run"
    rows = evaluate(
        [f"recorded:{export(made, tmp_path / 'a.csv')}"], ["triplets"], out=out, resamples=200, workers=1
    ).rows
    people = one(rows, "people", condition, "triplet_shape_bias", "subjects")
    assert people.n == 120
    assert people.value == pytest.approx(0.75, abs=0.1)
    assert people.ci_low < 0.75 < people.ci_high


# --------------------------------------------------------------------------------------------- files as they may come


def test_two_questions_about_one_image_need_a_choice(tmp_path):
    rows = [
        ("p1", task, "trial", "cat1-dog2", "cat", "dog", word, "", 500)
        for task, word in (("shape", "cat"), ("texture", "dog"))
    ]
    file = write(tmp_path / "both.csv", rows)
    with pytest.raises(UserError, match="asked for shape and for texture of the same image"):
        observers(file)
    (texture,) = observers(file, "?task=texture")
    assert texture.columns["decisions"].tolist() == ["dog"]
    (shape,) = observers(file, "?task=shape")
    assert shape.fingerprint != texture.fingerprint
    with pytest.raises(UserError, match="has no task 'words'"):
        observers(file, "?task=words")


def test_excluded_trials_are_left_out_and_noted(tmp_path):
    rows = [
        ("p1", "category", "trial", "cat1-dog2", "cat", "dog", "cat", "", 500),
        ("p1", "category", "trial", "cat2-dog2", "cat", "dog", "cat", "reaction time below 150 ms", 20),
        ("p1", "category", "practice", "dog2-cat2", "dog", "cat", "cat", "", 500),
        ("p2", "category", "trial", "cat1-dog2", "cat", "dog", "", "", ""),
    ]
    first, second, pooled = observers(write(tmp_path / "a.csv", rows))
    assert first.notes == ("1 of 2 trials excluded: reaction time below 150 ms (1)",)
    assert second.columns["decisions"].tolist() == ["na"]
    assert pooled.notes == ("1 of 3 trials excluded: reaction time below 150 ms (1)",)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("p1", "words", "trial", "x", "", "dotted", "dotted|woven", "", 1), "texture words"),
        (("p1", "category", "trial", "x", "cat", "dog", "cat", "not finished", 1), "no answer is left"),
        (("p1", "same_kind", "trial", "dax-a|wug-b|wug-a", "", "", "wug-b", "", 1), "no anchor|match|match"),
        (("p1", "same_kind", "trial", "dax-a|dax-b|wug-a", "", "", "bim-a", "", 1), "neither match"),
        (("p1", "category", "trial", "x", "cat", "dog", "cat", "", "soon"), "not a number"),
        (("", "category", "trial", "x", "cat", "dog", "cat", "", 1), "participant is empty"),
    ],
)
def test_bad_exports_are_errors_that_name_what_is_wrong(tmp_path, row, message):
    with pytest.raises(UserError) as problem:
        observers(write(tmp_path / "a.csv", [row]))
    assert message in problem.value.message


def test_a_task_is_no_option_of_other_recordings(tmp_path):
    file = write(tmp_path / "a.csv", [("cat1-dog2", "cat")], ("stimulus", "decision"))
    with pytest.raises(UserError, match="no export of a study"):
        observers(file, "?task=shape")


ROW = ("p1", "category", "trial", "cat1-dog2", "cat", "dog", "cat", "", 500)
OTHER = ("p1", "category", "trial", "cat2-dog2", "cat", "dog", "dog", "", 500)


@pytest.mark.parametrize("change", [str.upper, str.title], ids=["capitals", "mixed"])
def test_columns_kinds_and_tasks_may_be_capitalised(tmp_path, change):
    practice = ("p1", "category", "practice", "dog2-cat2", "dog", "cat", "cat", "", 500)
    excluded = ("p1", "category", "trial", "dog2-cat1", "dog", "cat", "cat", "too fast", 500)
    rows = [(r[0], r[1], change(r[2]), *r[3:]) for r in (ROW, practice, excluded, OTHER)]
    (person,) = observers(write(tmp_path / "a.csv", rows, [change(c) for c in COLUMNS]))
    assert person.columns["decisions"].tolist() == ["cat", "dog"]
    assert person.columns["rt"].tolist() == [0.5, 0.5]
    assert person.notes == ("1 of 3 trials excluded: too fast (1)",)


@pytest.mark.parametrize("value", ["", "False", "FALSE", "false", "0", "0.0", "no", "No", "NA", "None"])
def test_a_row_that_is_said_not_to_be_excluded_counts(tmp_path, value):
    (person,) = observers(write(tmp_path / "a.csv", [ROW, (*OTHER[:7], value, 500)]))
    assert person.columns["decisions"].tolist() == ["cat", "dog"]
    assert not person.notes


@pytest.mark.parametrize(
    ("value", "why"),
    [("True", "no reason given"), ("1", "no reason given"), ("YES", "no reason given"), ("Asleep", "Asleep")],
)
def test_a_row_is_excluded_with_or_without_a_reason(tmp_path, value, why):
    (person,) = observers(write(tmp_path / "a.csv", [ROW, (*OTHER[:7], value, 500)]))
    assert person.columns["decisions"].tolist() == ["cat"]
    assert person.notes == (f"1 of 2 trials excluded: {why} (1)",)


@pytest.mark.parametrize("lost", ["participant", "task", "kind", "stimulus", "response", "excluded"])
def test_an_export_that_lost_a_column_is_refused(conflict, tmp_path, lost):
    _, made = conflict
    with export(made, tmp_path / "whole.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for kept in (rows[0].keys() - {lost}, {*COLUMNS} - {lost}):
        names = [name for name in rows[0] if name in kept]
        file = write(tmp_path / "a.csv", [[row[name] for name in names] for row in rows], names)
        with pytest.raises(UserError, match=f"export of a study, and has no column {lost}: ") as error:
            observers(file)
        assert "cuebench study export" in error.value.hint


def test_practice_is_no_trial_whatever_the_other_columns_are_called(tmp_path):
    rows = [("ann", "practice", "cat1-dog2", "cat"), ("ann", "trial", "cat2-dog2", "cat")]
    with pytest.raises(UserError, match="line 2: the column kind says that this row does not count"):
        observers(write(tmp_path / "a.csv", rows, ("subject", "kind", "image", "decision")))


def test_an_unknown_kind_of_row_is_refused(tmp_path):
    with pytest.raises(UserError, match="line 3: column kind is 'test'"):
        observers(write(tmp_path / "a.csv", [ROW, (*OTHER[:2], "test", *OTHER[3:])]))


@pytest.mark.parametrize("name", ["excluded", "Excluded", "exclude"])
def test_a_table_that_is_no_export_and_excludes_rows_is_refused(tmp_path, name):
    columns = ("subject", "image", "decision", name)
    with pytest.raises(UserError, match=rf"line 3: the column {name} says .* \(1 of 2 rows\)") as error:
        observers(write(tmp_path / "a.csv", [("a", "x", "cat", "False"), ("a", "y", "cat", "too slow")], columns))
    assert "remove these rows" in error.value.hint
    (one,) = observers(write(tmp_path / "b.csv", [("a", "x", "cat", "False"), ("a", "y", "cat", "")], columns))
    assert one.columns["decisions"].tolist() == ["cat", "cat"]
