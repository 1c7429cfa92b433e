"""Closed-form clustered variances: against another implementation, against analysis by hand, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from brute_force import bootstrap_ratio, quantile
from cuebench.errors import UserError
from cuebench.statistics.clustered import Sums, ratio_intervals, variances
from cuebench.statistics.estimates import mean_of_subjects, ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
from cuebench.statistics.ratios import Terms

SHAPES, TEXTURES = 40, 16


@pytest.fixture(scope="module")
def design():
    """Return (shape source, texture source) of each image: an incomplete crossing, as in the published set."""
    rng = np.random.default_rng(0)
    cells = rng.choice(SHAPES * TEXTURES, 300, replace=False)
    return cells // TEXTURES, cells % TEXTURES


def study(rng, design, *, rate, sd_shape, sd_texture, decided=0.7):
    """Return the terms of one simulated study: decisions by shape among decided trials."""
    shape, texture = design
    logit = np.log(rate / (1 - rate))
    effect = rng.normal(0, sd_shape, SHAPES)[shape] + rng.normal(0, sd_texture, TEXTURES)[texture]
    counted = rng.random(len(shape)) < decided
    return Terms((rng.random(len(shape)) < 1 / (1 + np.exp(-logit - effect))) & counted, counted)


def truth(rate, sd):
    """Return the mean rate over new sources."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return float(np.sum(weights / (1 + np.exp(-np.log(rate / (1 - rate)) - sd * nodes))) / weights.sum())


@pytest.mark.slow
def test_the_variances_are_those_of_another_implementation(design):
    """A mean is a regression on a constant: statsmodels has the same two-way sandwich."""
    sandwich = pytest.importorskip("statsmodels.stats.sandwich_covariance")
    from statsmodels.regression.linear_model import OLS

    values = study(np.random.default_rng(1), design, rate=0.3, sd_shape=1, sd_texture=1).numerator.astype(float)
    fitted = OLS(values, np.ones(len(values))).fit()
    found = variances(Sums.of_ratio(Terms(values, np.ones(len(values))), np.arange(len(values))).influence(),
                      {"shape_sources": design[0], "texture_sources": design[1]})  # fmt: skip
    for kind, groups in (("shape_sources", design[0]), ("texture_sources", design[1])):
        expected = sandwich.cov_cluster(fitted, groups, use_correction=False)[0, 0]
        number = len(np.unique(groups))
        assert found.by_kind[kind] == pytest.approx(expected * number / (number - 1), rel=1e-6)
    images = sandwich.cov_cluster(fitted, np.arange(len(values)), use_correction=False)[0, 0]
    assert found.by_kind["images"] == pytest.approx(images * len(values) / (len(values) - 1), rel=1e-6)
    ways = [found.by_kind[k] for k in ("shape_sources", "texture_sources")]
    base = found.by_kind["images"]  # every pair of a shape and a texture has one image
    assert found.by_kind["two_way"] == pytest.approx(base + sum(max(0, way - base) for way in ways))
    assert found.main == "two_way"
    assert [found.df[k] for k in ("shape_sources", "texture_sources")] == [SHAPES - 1, TEXTURES - 1]
    assert found.df["two_way"] >= TEXTURES - 1


def test_the_influence_is_what_leaving_an_image_out_shows():
    rng = np.random.default_rng(2)
    values = np.column_stack([rng.random(200), rng.integers(1, 4, 200), rng.random(200), rng.integers(1, 3, 200)])

    def preference(sums):
        first, second = sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]
        return first / (first + second)

    sums = Sums(np.arange(200), values, preference)
    left_out = np.array([preference((values.sum(0) - row)[None])[0] for row in values])
    assert np.abs(sums.influence() - (sums.value - left_out)).max() < 2e-5
    assert sums.influence().sum() == pytest.approx(0, abs=1e-12)


def test_a_kind_with_one_source_is_left_out():
    found = variances(np.array([0.1, -0.1]), {"classes": np.array(["a", "a"])})
    assert set(found.by_kind) == {"images"}
    assert variances(np.zeros(1), {}).by_kind == {}


def two_way(terms, clusters):
    ((interval,),) = ratio_intervals([terms], clusters, ["two_way"])
    return interval


@pytest.mark.parametrize(("sd_shape", "sd_texture"), [(0.0, 0.0), (0.8, 0.8), (0.0, 1.2)])
def test_the_two_way_interval_holds_the_truth_as_often_as_it_says(design, sd_shape, sd_texture):
    rng = np.random.default_rng(3)
    expected = truth(0.25, np.hypot(sd_shape, sd_texture))
    clusters = Clusters(np.arange(len(design[0])), *design)
    studies = 400
    hits = 0
    for _ in range(studies):
        terms = study(rng, design, rate=0.25, sd_shape=sd_shape, sd_texture=sd_texture)
        interval = two_way(terms, clusters)
        hits += interval.low <= expected <= interval.high
    # .95 ± 3 standard errors; without effects of sources, 16 of them are held for more of a risk than they are.
    assert 0.917 <= hits / studies <= (0.983 if sd_texture else 0.99)


def people_study(rng, design, people, sd):
    """Return trials and clusters of people who all see the same images; effects of shapes, textures and people."""
    shape, texture = (np.tile(part, people) for part in design)
    person = np.repeat(np.arange(people), len(design[0]))
    effects = [
        rng.normal(0, s, n)[code] for s, n, code in zip(sd, (SHAPES, TEXTURES, people), (shape, texture, person))
    ]
    hits = rng.random(len(person)) < 1 / (1 + np.exp(-sum(effects)))
    images = np.tile(np.arange(len(design[0])), people)
    return Terms(hits, np.ones(len(hits), bool)), Clusters(images, shape, texture, person)


def test_the_three_way_interval_holds_for_other_people_too(design):
    rng = np.random.default_rng(4)
    studies = 200
    hits = dict.fromkeys(("subjects", "two_way", "three_way"), 0)
    for _ in range(studies):
        terms, clusters = people_study(rng, design, 12, (0.6, 0.6, 0.8))
        for interval in ratio_intervals([terms], clusters, list(hits))[0]:
            hits[interval.kind] += interval.low <= 0.5 <= interval.high
    share = {kind: number / studies for kind, number in hits.items()}
    assert 0.90 <= share["three_way"] <= 0.985
    assert max(share["subjects"], share["two_way"]) < 0.90


def test_more_answers_to_the_same_images_do_not_shrink_what_images_differ_by():
    rng = np.random.default_rng(5)
    image = np.repeat(np.arange(100), 10)
    hit = np.repeat(rng.random(100) < 0.5, 10)  # ten people who always agree carry the information of one
    ((found,),) = ratio_intervals([Terms(hit, np.ones(1000, bool))], Clusters(image, image, image), ["images"])
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(100), rel=0.1)


@pytest.mark.parametrize("kind", ["images", "shape_sources", "texture_sources"])
def test_one_way_is_near_a_plain_bootstrap(design, kind):
    terms = study(np.random.default_rng(6), design, rate=0.4, sd_shape=1, sd_texture=1)
    clusters = Clusters(np.arange(len(design[0])), *design)
    ((found,),) = ratio_intervals([terms], clusters, [kind])
    rows = clusters.of(kind).tolist()
    draws = bootstrap_ratio(*(t.tolist() for t in terms), rows, rows, 1500, 11, False)
    # Student's t and G/(G − 1): wider than percentiles, by 12 % for 16 sources.
    width = found.high - found.low
    assert found.low == pytest.approx(quantile(draws, 0.025), abs=0.12 * width)
    assert found.high == pytest.approx(quantile(draws, 0.975), abs=0.12 * width)


def test_a_ratio_of_0_or_1_has_an_interval(design):
    counted = np.ones(len(design[0]), bool)
    clusters = Clusters(np.arange(len(counted)), *design)
    none, every = (two_way(Terms(hits, counted), clusters) for hits in (~counted, counted))
    assert none.low == 0
    assert none.high == pytest.approx(1 - 0.025 ** (1 / TEXTURES))
    assert (every.low, every.high) == pytest.approx((1 - none.high, 1))
    assert none.note == "every decision alike: exact for 16 texture sources"
    few = counted & (design[1] < 3)  # decided about three textures only
    assert two_way(Terms(few, few), clusters).low == pytest.approx(0.025 ** (1 / 3))


def test_an_interval_that_cannot_be_had_says_why(design):
    nothing = np.zeros(len(design[0]), bool)
    clusters = Clusters(np.arange(len(nothing)), design[0], np.zeros(len(nothing)))
    (estimate,) = ratio_estimates([Terms(nothing, nothing)], clusters, KINDS)
    assert np.isnan(estimate.value)
    assert estimate.n == 0
    one = "1 texture source: nothing to resample"
    assert [i.kind for i in estimate.intervals] == list(KINDS)
    assert [i.note for i in estimate.intervals] == ["no trial in the denominator"] * 2 + [one] * 2
    with pytest.raises(UserError, match="no subjects to resample"):
        ratio_intervals([Terms(~nothing, ~nothing)], clusters, ["subjects"])


def test_the_names_of_sources_do_not_matter(design):
    terms = study(np.random.default_rng(7), design, rate=0.4, sd_shape=1, sd_texture=1)
    numbers = Clusters(np.arange(len(design[0])), *design)
    names = Clusters(*(np.char.add("s", c.astype(str)) for c in (numbers.images, *design)))
    found, named = (ratio_intervals([terms], c, KINDS)[0] for c in (numbers, names))
    assert [i.low for i in found] == pytest.approx([i.low for i in named], abs=1e-12)


def test_mean_of_subjects_weighs_everyone_the_same():
    subject = np.repeat(["a", "b", "c", "d"], [10, 30, 20, 5])
    den = np.repeat([True, True, True, False], [10, 30, 20, 5])
    num = den & np.concatenate([np.arange(10) < 5, np.arange(30) < 27, np.arange(20) < 4, np.ones(5, bool)])
    estimate = mean_of_subjects(Terms(num, den), subject)
    assert estimate.value == pytest.approx((0.5 + 0.9 + 0.2) / 3)
    assert (estimate.n, estimate.excluded) == (3, {"subjects without a ratio": 1})
    (interval,) = estimate.intervals
    # Three people say little: Student's t with two degrees of freedom, inside [0, 1].
    assert interval.kind == "subjects"
    assert 0 < interval.low < 0.1
    assert 0.95 < interval.high < 1
    single = mean_of_subjects(Terms(num[:10], den[:10]), subject[:10])
    assert single.intervals[0].note == "1 subject: nothing to resample"
