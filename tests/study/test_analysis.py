"""The analysis of a study: what was planted is found again, and everything that is left out is counted."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from cuebench.analyses.texture_judgements import read_judgements
from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.observers.study_export import StudyAnswer
from cuebench.reports.figures.study_accuracy import study_accuracy
from cuebench.reports.figures.study_people import study_people
from cuebench.statistics.agreement import counts_of, fleiss_kappa
from cuebench.study.analysis import analyse, read_answers
from cuebench.study.exclusions import Rules
from cuebench.study.power import marginal_share
from cuebench.study.simulate import Population, population
from study_data import TEXTURES, export, make_study, small_design, take_part, write_refined_bias

PLANTED = Population(
    accuracy={"shape": 0.95, "texture": 0.8},
    by_class={("texture", "zebra"): 0.5},
    person_sd=0.5,
    image_sd=0.5,
    missing=0.02,
    rt=800,
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Forty people and two who stop half-way; the first one answers attention checks wrong, the second too fast."""
    base = tmp_path_factory.mktemp("study")
    data = write_refined_bias(base / "data")
    design = small_design("refined_bias", base / "design", pixels="16")
    made = make_study(base / "study", design, data)

    def change(person, trial, answer):
        if person == 0 and trial.kind == "attention":
            wrong = next(option for option in trial.options if option not in trial.correct)
            return replace(answer, response=(wrong,))
        return (
            replace(answer, rt_ms=90.0) if person == 1 and trial.kind == "trial" and trial.position % 4 == 0 else answer
        )

    take_part(made, PLANTED, 42, unfinished=2, change=change)
    return made


@pytest.fixture(scope="module")
def result(study):
    return analyse(study.folder)


def row(task="shape", response="cat", **values):
    usual = {
        "participant": "p0001", "group": "A", "block": task, "kind": "trial", "stimulus": "cat1-dog1", "shape": "cat",
        "texture": "dog", "label": "", "options": ("cat", "dog", "bear"), "right": math.nan, "chosen": "",
        "finished": True, "excluded": "", "rules": "", "rt_ms": 500.0,
    }  # fmt: skip
    return StudyAnswer(row=0, task=task, response=(response,) if response else (), **{**usual, **values})


def test_everybody_who_is_left_out_is_counted_with_a_reason(result):
    assert (result.participants, result.analysed) == (42, 39)
    assert result.excluded_participants == {"not finished": 2, "attention checks: less than 75% right": 1}
    assert list(result.excluded_trials) == ["reaction time below 150 ms"]
    assert 20 <= result.excluded_trials["reaction time below 150 ms"] <= 30
    assert any("have no answer" in note for note in result.notes)


@pytest.mark.parametrize(("task", "level"), [("shape", 0.95), ("texture", 0.8)])
def test_the_planted_accuracy_is_in_the_interval(result, task, level):
    found = result.only("accuracy", task)
    classes = 3 if task == "shape" else 2
    of_class = [marginal_share(level, 0.5, 0.5)] * classes
    of_class += [marginal_share(0.5, 0.5, 0.5)] if task == "texture" else []
    planted = 0.98 * np.mean(of_class)  # two of a hundred gave no answer
    both, people = found.intervals
    assert both.low < planted < both.high
    assert both.low <= people.low < found.value < people.high <= both.high
    assert (found.people, found.images) == (39, 50)


def test_a_hard_class_is_seen(result):
    zebra, tiger = (result.only("accuracy", "texture", f"class={name}") for name in ("zebra", "tiger"))
    assert zebra.intervals[0].high < tiger.intervals[0].low
    assert {r.part for r in result.rows if r.measure == "accuracy" and r.task == "texture" and "class" in r.part} == {
        f"class={name}" for name in TEXTURES
    }


def test_the_gap_is_paired_by_person_and_clear(result):
    gap = result.only("gap", part="shape − texture")
    shape, texture = (result.only("accuracy", cue).value for cue in ("shape", "texture"))
    assert gap.value == pytest.approx(shape - texture, abs=0.005)
    assert gap.intervals[0].low > 0
    assert gap.p < 1e-6


def test_kappa_is_fleiss_of_the_exported_answers(result, study):
    answers = [a for a in read_answers(study.folder) if a.counts and a.task == "texture" and a.response]
    images = sorted({a.stimulus for a in answers})
    table = counts_of([[a.response[0] for a in answers if a.stimulus == image] for image in images])
    assert result.only("kappa", "texture").value == pytest.approx(fleiss_kappa(table, resamples=10).value, abs=1e-12)
    assert result.only("kappa", "shape").value > result.only("kappa", "texture").value


def test_groups_that_do_not_differ_are_not_told_apart(result):
    effects = [r for r in result.rows if r.measure == "order_effect"]
    assert [(r.task, r.part) for r in effects] == [("shape", "A − B"), ("texture", "A − B")]
    assert all(abs(r.value) < 0.1 and r.p > 0.01 for r in effects)


def test_a_planted_order_effect_is_found():
    rng, rows = np.random.default_rng(0), []
    for person in range(24):
        group, level = ("A", 0.9) if person % 2 else ("B", 0.6)
        for image in range(30):
            right = float(rng.random() < level)
            name = f"p{person:04d}"
            rows.append(row(participant=name, group=group, stimulus=f"cat{image}-dog1", right=right))
    effect = analyse(rows).only("order_effect", "shape", "A − B")
    assert effect.intervals[0].low < 0.3 < effect.intervals[0].high
    assert effect.p < 0.001


def test_reaction_times_are_those_that_were_planted(result):
    everything, right, wrong = (result.only("reaction_time", "texture", part) for part in ("", "correct", "wrong"))
    assert right.intervals[0].low < 800 < right.intervals[0].high
    assert wrong.value / right.value == pytest.approx(1.2, abs=0.12)
    assert right.n + wrong.n == everything.n


def test_every_person_is_a_row(result):
    people = [r for r in result.rows if r.part.startswith("person=") and r.task == "shape"]
    assert len(people) == 39
    assert {r.note for r in people} == {"group A", "group B"}
    assert np.mean([r.value for r in people]) == pytest.approx(result.only("accuracy", "shape").value, abs=0.01)


def test_other_rules_are_applied_and_said(result, study):
    again = analyse(study.folder, rules=Rules(finished=True))
    assert again.analysed == 40
    assert not again.excluded_trials
    assert any("rules were changed" in note for note in again.notes)
    assert again.rules_sha256 != result.rules_sha256


# ------------------------------------------------------------------------------------- other questions than accuracy


def answers_of_people(task, people, images, answer):
    return [
        row(task, answer(p, i), participant=f"p{p}", stimulus=f"cat{i}-dog{i}")
        for p in range(people)
        for i in range(images)
    ]


def test_shape_bias_counts_answers_by_shape_among_those_by_shape_or_texture():
    words = ("cat", "cat", "cat", "dog", "bear", "")
    found = analyse(answers_of_people("category", 6, 6, lambda p, i: words[(p + i) % 6]))
    assert found.only("shape_bias").value == pytest.approx(3 / 4)
    assert found.only("decided_fraction").value == pytest.approx(4 / 6)
    assert found.only("shape_bias").n == 24
    assert found.only("shape_bias", part="person=p0").value == pytest.approx(3 / 4)


def test_images_with_shape_and_texture_of_one_class_say_nothing_about_the_bias():
    rows = answers_of_people("category", 3, 4, lambda p, i: "cat")
    aligned = [row("category", "cat", participant=f"p{p}", stimulus="cat9-cat9", texture="cat") for p in range(3)]
    assert analyse([*rows, *aligned]).only("shape_bias").n == 12


def test_triplets_count_shape_matches_whichever_side_they_stood_on():
    rows = []
    for person in range(4):
        for k in range(10):
            sides = ("dax-b/x", "wug-a/x") if (person + k) % 2 else ("wug-a/x", "dax-b/x")
            chosen = "dax-b/x" if k < 7 else "wug-a/x"
            name = "|".join((f"dax-a{k}/x", *sides)).replace("wug-a/", f"wug-a{k}/")
            rows.append(
                row("same_kind", chosen.replace("wug-a/", f"wug-a{k}/"), participant=f"p{person}", stimulus=name)
            )
    found = analyse(rows)
    assert found.only("shape_matches").value == pytest.approx(0.7)
    assert found.only("shape_matches").images == 10
    assert found.only("kappa").value == 1  # everybody chose the same


def test_words_agree_with_the_identified_texture_and_chance_is_said():
    options = ("dotted", "woven", "grid", "flat")
    rows = [
        row("words", "", participant=f"p{p}", stimulus=f"photo{i}", shape="", texture="dotted", options=options)
        for p in range(3)
        for i in range(4)
    ]
    rows = [replace(a, response=("dotted", "woven") if n % 3 else ("grid",)) for n, a in enumerate(rows)]
    found = analyse(rows).only("tid_agreement")
    assert found.value == pytest.approx(8 / 12)
    assert "41.7%" in found.note
    other = analyse(rows, textures={f"photo{i}": "grid" for i in range(4)}).only("tid_agreement")
    assert other.value == pytest.approx(4 / 12)


def test_no_answers_at_all_is_an_error_with_a_reason():
    with pytest.raises(UserError, match="no answer is left"):
        analyse([row(excluded="not finished")])
    with pytest.raises(UserError, match="holds no answer"):
        analyse([])


# ---------------------------------------------------------------------------------------------------- verbs and figures


def test_the_verb_prints_writes_and_its_figures_are_drawn(study, tmp_path, capsys):
    out = tmp_path / "analysis.json"
    assert invoke(["study", "analyse", str(study.folder), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "42 people took part, 39 are analysed" in text
    assert "excluded: 2 people, not finished" in text
    assert "Fleiss' κ" in text
    assert "class=zebra" in text
    assert invoke(["study", "analyse", str(study.folder), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["analysed"] == 39
    assert len(study_accuracy(out).data) == 8  # three classes and all, twice
    assert len(study_people(out).data) == 78
    out.write_text('{"rows": [{"measure": "kappa", "task": "", "part": "", "value": 1.0}]}')
    with pytest.raises(UserError, match="no accuracy"):
        study_accuracy(out)


def test_judgements_of_textures_are_read_from_the_export(tmp_path):
    design = small_design("texture_words", tmp_path / "design", pixels="16", count="8", attention="1")
    made = make_study(tmp_path / "study", design)
    take_part(made, population("ideal:shape?words_accuracy=1"), 2)
    for ending in ("csv", "parquet"):
        found = read_judgements(export(made, tmp_path / f"answers.{ending}"))
        assert len(found) == 16
        assert {j.subject for j in found} == {"p0001", "p0002"}
    assert analyse(made.folder).only("tid_agreement").value == 1
