"""Simulated participants: what they are planted with, and that they depend on seed, person and trial only."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.study.simulate import Population, person, population
from cuebench.study.types import StudyImage, Trial

CLASSES = ("cat", "dog", "bear", "car")


def image(name, **facts):
    return StudyImage(id=name, file=f"{name}.png", sha256="", size=1, name=name, **facts)


IMAGES = {
    i.id: i
    for i in (
        image("conflict", shape="cat", texture="dog"),
        image("pure", texture="dog", cue="texture"),
        image("anchor", shape="dax", shape_source="dax", texture_source="a"),
        image("shape_match", shape="dax", shape_source="dax", texture_source="b"),
        image("texture_match", shape="wug", shape_source="wug", texture_source="a"),
        image("photo", texture="dotted"),
    )
}


def counts(people, trial, number=1200, seed=0):
    answers = (person(people, 1, seed).answer(replace(trial, position=k), IMAGES).response for k in range(number))
    return {words: n / number for words, n in Counter(answers).items()}


def test_a_mixture_answers_by_shape_as_often_as_planted_and_lapses_at_random():
    trial = Trial(0, "b", "category", "trial", ("conflict",), CLASSES)
    found = counts(population("ideal:mixture?shape=0.7&lapse=0.2"), trial)
    assert found[("cat",)] == pytest.approx(0.8 * 0.7 + 0.05, abs=0.03)
    assert found[("dog",)] == pytest.approx(0.8 * 0.3 + 0.05, abs=0.03)
    assert found[("bear",)] == pytest.approx(0.05, abs=0.02)


def test_an_ideal_observer_guesses_where_its_cue_is_missing_and_accuracies_go_first():
    trial = Trial(0, "b", "texture", "trial", ("pure",), CLASSES, ("dog",))
    assert counts(population("ideal:shape"), trial)[("dog",)] == pytest.approx(0.25, abs=0.03)
    assert counts(population("ideal:texture"), trial) == {("dog",): 1.0}
    planted = population("ideal:shape?texture_accuracy=0.86")
    assert counts(planted, trial)[("dog",)] == pytest.approx(0.86, abs=0.025)
    by_class = Population(accuracy={"texture": 0.86}, by_class={("texture", "dog"): 0.4})
    assert counts(by_class, trial)[("dog",)] == pytest.approx(0.4, abs=0.03)


def test_triplets_and_words_have_their_own_answers():
    pair = ("texture_match", "shape_match")
    triplet = Trial(0, "b", "same_kind", "trial", ("anchor", *pair), pair)
    assert counts(population("ideal:mixture?shape=0.8"), triplet)[("shape_match",)] == pytest.approx(0.8, abs=0.03)
    words = Trial(0, "b", "words", "trial", ("photo",), ("woven", "dotted", "grid", "flat"), several=True)
    found = counts(population("ideal:shape?words_accuracy=0.6"), words)
    assert sum(n for answer, n in found.items() if "dotted" in answer) == pytest.approx(0.6, abs=0.03)
    assert any(len(answer) == 2 for answer in found)


def test_familiarisation_is_passed_attention_is_paid_and_some_give_no_answer():
    people = population("ideal:texture?missing=0.3")
    assert counts(people, Trial(0, "b", "shape", "familiarisation", ("conflict",), ("cat",)), 20) == {(): 1.0}
    check = Trial(0, "b", "shape", "attention", ("conflict",), CLASSES, ("bear",))
    assert counts(people, check, 20) == {("bear",): 1.0}
    trial = Trial(0, "b", "category", "trial", ("conflict",), CLASSES, planned_ms=200)
    assert counts(people, trial)[()] == pytest.approx(0.3, abs=0.03)
    answers = [person(people, 1).answer(replace(trial, position=k), IMAGES) for k in range(50)]
    assert all((a.rt_ms is None) == (not a.response) for a in answers)
    assert all(abs(a.shown_ms - 200) < 6 for a in answers)


def test_people_differ_as_much_as_planted_and_reaction_times_have_their_median():
    people = population("ideal:mixture?shape=0.5&person_sd=0.8&rt=600&rt_sd=0.3&rt_person_sd=0.1")
    shifts = [person(people, number).shift for number in range(2000)]
    assert np.std(shifts) == pytest.approx(0.8, abs=0.04)
    trial = Trial(0, "b", "category", "trial", ("conflict",), CLASSES)
    times = [person(people, number).answer(trial, IMAGES).rt_ms for number in range(800)]
    assert np.median(times) == pytest.approx(600, rel=0.06)


def test_the_same_seed_person_and_trial_give_the_same_answer_in_any_order():
    people = population("ideal:mixture?shape=0.5&person_sd=1&image_sd=1")
    trials = [Trial(k, "b", "category", "trial", ("conflict",), CLASSES) for k in range(20)]
    first = list(person(people, 7, 3).answers(trials, IMAGES))
    again = [person(people, 7, 3).answer(trial, IMAGES) for trial in reversed(trials)][::-1]
    assert first == again
    assert first != list(person(people, 8, 3).answers(trials, IMAGES))
    assert first != list(person(people, 7, 4).answers(trials, IMAGES))


def test_mistakes_in_a_spec_are_errors():
    with pytest.raises(UserError, match="Did you mean 'mixture'"):
        population("ideal:mixtur")
    with pytest.raises(UserError, match="simulated people"):
        population("timm:resnet50")
    with pytest.raises(UserError, match="lapse"):
        population("ideal:mixture?lapse=2")
