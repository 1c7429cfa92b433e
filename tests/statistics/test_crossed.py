"""Shares and κ of people × images: against other implementations, and how often their intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from statsmodels.stats.inter_rater import fleiss_kappa as other_kappa

from cuebench.statistics.agreement import counts_of, fleiss_kappa
from cuebench.statistics.clustered import Sums, variances
from cuebench.statistics.crossed import kappa, share
from cuebench.statistics.ratios import Terms

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def drawn(rng, people, images, level, person_sd, image_sd, trials=None):
    """Return hits, people and images of a simulated study, and the mean over all people of these images."""
    effect = rng.normal(0, image_sd, images)
    p, i = np.meshgrid(np.arange(people), np.arange(images), indexing="ij")
    if trials:
        chosen = np.argsort(rng.random((people, images)), axis=1)[:, :trials]
        p, i = np.repeat(np.arange(people), trials), chosen
    p, i = p.ravel(), i.ravel()
    hits = rng.random(len(p)) < expit(level + rng.normal(0, person_sd, people)[p] + effect[i])
    of_images = (expit(level + effect[:, None] + person_sd * NODES) @ (WEIGHTS / WEIGHTS.sum())).mean()
    return hits.astype(float), p, i, of_images


def marginal(level, person_sd, image_sd):
    return float(expit(level + math.hypot(person_sd, image_sd) * NODES) @ (WEIGHTS / WEIGHTS.sum()))


def ratings(rng, people=9, images=40, classes=5, level=1.0):
    hits, p, i, _ = drawn(rng, people, images, level, 0.5, 0.5)
    wrong = (i % classes + rng.integers(1, classes, len(i))) % classes
    return np.where(hits > 0, i % classes, wrong).astype(str), p, i


def table_of(answers, items):
    return counts_of([[str(a) for a in answers[items == k]] for k in np.unique(items)])


# ------------------------------------------------------------------------------------------------------- shares


def test_the_variances_are_those_of_clustered_sums():
    hits, p, i, _ = drawn(np.random.default_rng(0), 8, 20, 0.5, 0.8, 0.8)
    found = share(Terms(hits, np.ones(len(hits))), p, i)
    psi = Sums.of_ratio(Terms(hits, np.ones(len(hits))), i.astype(str)).influence()
    by_kind = variances(psi, {"subjects": p, "classes": i}).by_kind
    z = (
        math.log(found.people.high / (1 - found.people.high)) - math.log(found.people.low / (1 - found.people.low))
    ) / 2
    se = z * found.value * (1 - found.value) / 2.364624  # t of 7 degrees of freedom
    assert se == pytest.approx(math.sqrt(by_kind["subjects"]), rel=1e-4)
    assert found.value == pytest.approx(hits.mean())
    assert (found.n, found.n_people, found.n_images) == (160, 8, 20)
    assert found.both.high - found.both.low > found.people.high - found.people.low


def test_without_effects_of_people_the_interval_is_about_the_binomial_one():
    rng = np.random.default_rng(1)
    widths = []
    for _ in range(200):
        hits, p, i, _ = drawn(rng, 100, 50, 1.0, 0, 0)
        found = share(Terms(hits, np.ones(len(hits))), p, i)
        widths.append(found.people.high - found.people.low)
    value = expit(1.0)
    assert np.mean(widths) == pytest.approx(2 * 1.984 * math.sqrt(value * (1 - value) / 5000), rel=0.03)


@pytest.mark.parametrize(
    ("people", "images", "trials", "level", "person_sd", "image_sd"),
    [(12, 40, None, 0.0, 0.8, 0.0), (20, 50, None, 2.0, 0.6, 0.8), (20, 200, 30, 3.0, 0.8, 0.8)],
)
def test_intervals_hold_the_truth_as_often_as_they_say(people, images, trials, level, person_sd, image_sd):
    rng, studies = np.random.default_rng(2), 500
    truth = marginal(level, person_sd, image_sd)
    over_people = over_both = 0
    for _ in range(studies):
        hits, p, i, of_images = drawn(rng, people, images, level, person_sd, image_sd, trials)
        found = share(Terms(hits, np.ones(len(hits))), p, i)
        over_people += found.people.low <= (truth if trials else of_images) <= found.people.high
        over_both += found.both.low <= truth <= found.both.high
    assert 0.93 <= over_people / studies <= 0.975
    assert 0.93 <= over_both / studies <= 0.98


def test_all_answers_alike_give_the_exact_open_end():
    found = share(Terms(np.ones(40), np.ones(40)), np.repeat(np.arange(10), 4), np.tile(np.arange(4), 10))
    assert found.people.high == 1
    assert found.people.low == pytest.approx(0.025 ** (1 / 10))
    assert found.both.low == pytest.approx(0.025 ** (1 / 4))


def test_too_few_people_or_images_have_no_interval_but_a_reason():
    one = share(Terms(np.array([1.0, 0.0]), np.ones(2)), np.array(["a", "a"]), np.array([1, 2]))
    assert math.isnan(one.people.low)
    assert "1 person" in one.people.note
    picture = share(Terms(np.array([1.0, 0.0, 1.0]), np.ones(3)), np.arange(3), np.zeros(3))
    assert math.isfinite(picture.people.low)
    assert "1 image" in picture.both.note
    assert share(Terms(np.zeros(2), np.zeros(2)), np.arange(2), np.arange(2)).n == 0


def test_rows_without_a_denominator_count_neither_as_answers_nor_as_people():
    terms = Terms(np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    found = share(terms, np.array(["a", "b", "c", "d"]), np.array([1, 2, 3, 4]))
    assert (found.value, found.n, found.n_people) == (pytest.approx(2 / 3), 3, 3)


# ------------------------------------------------------------------------------------------------------- Fleiss' κ


def test_kappa_is_that_of_statsmodels():
    answers, p, i = ratings(np.random.default_rng(3))
    assert kappa(answers, p, i).value == pytest.approx(other_kappa(table_of(answers, i)), abs=1e-12)


def test_missing_answers_are_handled_as_by_the_general_formula():
    rng = np.random.default_rng(4)
    answers, p, i = ratings(rng)
    keep = rng.random(len(answers)) < 0.4
    answers, p, i = answers[keep], p[keep], i[keep]
    found = kappa(answers, p, i)
    assert found.value == pytest.approx(fleiss_kappa(table_of(answers, i), resamples=10).value, abs=1e-12)
    assert found.n_images == sum(np.sum(i == k) >= 2 for k in np.unique(i))


def test_the_jackknife_leaves_out_people_images_and_answers_as_if_they_were_never_there():
    from cuebench.statistics import crossed

    rng = np.random.default_rng(5)
    answers, p, i = ratings(rng, people=5, images=12)
    keep = rng.random(len(answers)) < 0.6
    answers, p, i = answers[keep], p[keep], i[keep]
    kept = np.isin(i, [k for k in np.unique(i) if np.sum(i == k) >= 2])
    answers, p, i = answers[kept], p[kept], i[kept]
    code, item = np.unique(answers, return_inverse=True)[1], np.unique(i, return_inverse=True)[1]
    table = crossed._counts(item, code, (item.max() + 1, code.max() + 1))
    one_less = [kappa(np.delete(answers, k), np.delete(p, k), np.delete(i, k)).value for k in range(len(answers))]
    assert crossed._without_answers(table, item, code) == pytest.approx(one_less, abs=1e-12)
    no_image = [kappa(answers[i != k], p[i != k], i[i != k]).value for k in np.unique(i)]
    assert crossed._without_images(table) == pytest.approx(no_image, abs=1e-12)


def test_intervals_of_kappa_hold_the_truth_as_often_as_they_say():
    rng, studies = np.random.default_rng(6), 300
    large = [ratings(rng, 200, 200, 5, 1.5) for _ in range(5)]
    truth = np.mean([other_kappa(table_of(answers, i)) for answers, _, i in large])
    held = sum(
        k.both.low <= truth <= k.both.high for k in (kappa(*ratings(rng, 12, 40, 5, 1.5)) for _ in range(studies))
    )
    assert 0.92 <= held / studies <= 0.98


def test_perfect_agreement_and_a_single_class_are_said_in_words():
    p, i = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    perfect = kappa(i.astype(str), p, i)
    assert perfect.value == 1
    assert "perfect" in perfect.both.note
    single = kappa(np.full(12, "a"), p, i)
    assert math.isnan(single.value)
    assert "only one class" in single.both.note
    alone = kappa(np.array(["a", "b"]), np.array([0, 1]), np.array([0, 1]))
    assert "2 images" in alone.note
