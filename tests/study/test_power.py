"""Power: the simulated widths against closed forms, the number of people, and what a pilot says."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t

from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.statistics.crossed import share
from cuebench.statistics.ratios import Terms
from cuebench.study.power import (
    Assumptions,
    _drawn_images,
    components,
    expected_width,
    marginal_share,
    plan,
    simulate_studies,
    spreads,
)


def drawn(rng, assumed, people):
    """Return hits, people and images of a study in which everybody sees the same images, drawn here anew."""
    level = 0.0
    for _ in range(60):  # the level at which the mean is the wanted share
        nodes, weight = np.polynomial.hermite_e.hermegauss(40)
        values = expit(level + math.hypot(assumed.person_sd, assumed.image_sd) * nodes)
        level += 2 * (assumed.share - weight @ values / weight.sum())
    p, i = (a.ravel() for a in np.meshgrid(np.arange(people), np.arange(assumed.trials), indexing="ij"))
    person, image = rng.normal(0, assumed.person_sd, people), rng.normal(0, assumed.image_sd, assumed.trials)
    return (rng.random(len(p)) < expit(level + person[p] + image[i])).astype(float), p, i


def test_without_any_effects_the_width_is_the_binomial_one():
    assumed = Assumptions(0.8, 0, 0, trials=50)
    step = simulate_studies(assumed, 60, "people", studies=150, seed=1)
    reach = t.ppf(0.975, 59) * math.sqrt(0.8 * 0.2 / 3000) / 0.16
    width = expit(logit(0.8) + reach) - expit(logit(0.8) - reach)
    assert step.width == pytest.approx(width, rel=0.04)
    assert expected_width(assumed, 60, "people") == pytest.approx(width, rel=1e-9)
    assert 0.9 <= step.coverage <= 0.99


def test_with_people_who_differ_it_is_that_of_the_beta_binomial_variance():
    assumed = Assumptions(0.7, 1.0, 0, trials=40)
    nodes, weight = np.polynomial.hermite_e.hermegauss(80)
    level = logit(0.5)
    while abs(gap := 0.7 - weight @ expit(level + nodes) / weight.sum()) > 1e-12:
        level += 3 * gap
    between = weight @ (expit(level + nodes) - 0.7) ** 2 / weight.sum()
    reach = t.ppf(0.975, 29) * math.sqrt(between / 30 + (0.21 - between) / (30 * 40)) / 0.21
    width = expit(logit(0.7) + reach) - expit(logit(0.7) - reach)
    assert expected_width(assumed, 30, "people") == pytest.approx(width, rel=1e-6)
    assert simulate_studies(assumed, 30, "people", studies=200, seed=2).width == pytest.approx(width, rel=0.05)


@pytest.mark.parametrize("images", [0, 300])
def test_with_people_and_images_closed_form_and_simulation_agree(images):
    assumed = Assumptions(0.85, 0.6, 0.8, trials=50, images=images)
    step = simulate_studies(assumed, 40, "both", studies=100, seed=3)
    assert step.width == pytest.approx(expected_width(assumed, 40, "both"), rel=0.1)
    assert step.coverage > 0.88


def test_the_plan_is_the_smallest_number_that_is_narrow_enough():
    found = plan(Assumptions(0.8, 0.5, 0, trials=40), 0.1, over="people", studies=60)
    by_people = {step.people: step.width for step in found.steps}
    assert by_people[found.people] <= 0.1
    assert max(p for p, width in by_people.items() if width > 0.1) == found.people - 1
    assert expected_width(found.assumptions, found.people, "people") == pytest.approx(0.1, rel=0.12)


def test_few_images_cannot_be_made_up_for_by_people_and_the_plan_says_so():
    found = plan(Assumptions(0.8, 0.5, 1.0, trials=20), 0.05, studies=5)
    assert found.people is None
    assert any("20 images" in note for note in found.notes)
    enough = int(next(note for note in found.notes if "different images" in note).split()[3].replace(",", ""))
    assert plan(Assumptions(0.8, 0.5, 1.0, trials=20, images=enough), 0.05, studies=5).people is not None


def test_advice_goes_beyond_what_can_be_simulated_and_says_so():
    found = plan(Assumptions(0.8), 0.002, studies=2)
    (note,) = [note for note in found.notes if "different images" in note]
    assert int(note.split()[3].replace(",", "")) > 10_000
    assert "choose a wider interval: 10,000 is the most here" in note
    assert "choose a wider interval" in plan(Assumptions(0.8), 0.00001, studies=2).notes[-1]
    many = plan(Assumptions(0.8, 0.3, 0.1, trials=6_000), 0.2, studies=2)
    assert many.people is not None
    assert not any("twice as many trials" in note for note in many.notes)


def test_spreads_of_people_and_images_are_found_again_in_a_pilot():
    rng, assumed = np.random.default_rng(4), Assumptions(0.75, 0.8, 1.1, trials=60)
    found = []
    for _ in range(20):
        hits, p, i = drawn(rng, assumed, 40)
        found.append(spreads(share(Terms(hits, np.ones(len(hits))), p, i), hits, p, i))
    person, image = np.mean(found, axis=0)
    assert person == pytest.approx(0.8, abs=0.08)
    assert image == pytest.approx(1.1, abs=0.12)


def test_components_add_up_to_less_than_the_whole_and_vanish_without_spread():
    some = components(Assumptions(0.8, 0.7, 0.9))
    assert 0 < some.people < some.images < some.whole == pytest.approx(0.16)
    assert components(Assumptions(0.8, 0, 0)).people == pytest.approx(0, abs=1e-20)
    assert marginal_share(0.9, 1, 1) < 0.9


def test_who_sees_which_images_is_in_order_so_that_no_cpu_changes_the_simulated_answers():
    """What argpartition returns is in another order on a CPU with AVX-512: other answers, another plan."""
    rows = _drawn_images(np.random.default_rng(0), Assumptions(0.8, trials=60, images=200), 30).reshape(30, 60)
    assert (np.diff(rows, axis=1) > 0).all()
    assert len(np.unique(rows)) == 200


def test_mistakes_are_errors_with_what_to_write():
    with pytest.raises(UserError, match=r"share 1.5: between 0 and 1; trials 0"):
        Assumptions(1.5, trials=0)
    with pytest.raises(UserError, match="at least as many as trials"):
        Assumptions(0.5, trials=50, images=20)
    with pytest.raises(UserError, match="width of 2"):
        plan(Assumptions(0.5), 2.0)
    with pytest.raises(UserError, match="--over"):
        plan(Assumptions(0.5), 0.1, over="images")


def test_the_verb_answers_in_a_sentence_and_as_json(capsys):
    words = ["study", "power", "--width", "0.2", "--share", "0.8", "--over", "people", "--studies", "20"]
    assert invoke(words) == 0
    assert "people for an interval 0.2 wide" in capsys.readouterr().out
    assert invoke([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["people"] == next(s["people"] for s in printed["steps"] if s["width"] <= 0.2)


@pytest.mark.parametrize("share", [1e-9, 0.001, 0.999, 1 - 1e-9])
def test_shares_near_the_ends_and_people_who_differ_widely_have_a_plan(share):
    assumed = Assumptions(share, person_sd=20.0, image_sd=20.0, trials=10)
    assert 0 <= components(assumed).people <= share * (1 - share) * 1.01
    assert plan(assumed, 0.5, studies=2).answer


def test_a_share_that_is_an_end_is_refused():
    with pytest.raises(UserError, match="between 0 and 1"):
        Assumptions(1e-300)
