"""Closed-form clustered variances: against another implementation, against analysis by hand, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.statistics.clustered import Sums, two_way_clustered, variances
from cuebench.statistics.intervals import Clusters
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
    assert found.by_kind["two_way"] == pytest.approx(max(sum(ways) - found.by_kind["images"], *ways))
    assert (found.main, found.df) == ("two_way", TEXTURES - 1)


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


@pytest.mark.parametrize(("sd_shape", "sd_texture"), [(0.0, 0.0), (0.8, 0.8), (0.0, 1.2)])
def test_the_two_way_interval_holds_the_truth_as_often_as_it_says(design, sd_shape, sd_texture):
    rng = np.random.default_rng(3)
    expected = truth(0.25, np.hypot(sd_shape, sd_texture))
    clusters = Clusters(np.arange(len(design[0])), *design)
    studies = 400
    hits = 0
    for _ in range(studies):
        terms = study(rng, design, rate=0.25, sd_shape=sd_shape, sd_texture=sd_texture)
        interval = two_way_clustered(terms, clusters)
        hits += interval.low <= expected <= interval.high
    # .95 ± 3 standard errors; without effects of sources, 16 of them are held for more of a risk than they are.
    assert 0.915 <= hits / studies <= (0.98 if sd_texture else 0.995)


def test_a_ratio_of_0_or_1_has_an_interval(design):
    counted = np.ones(len(design[0]), bool)
    clusters = Clusters(np.arange(len(counted)), *design)
    none, every = (two_way_clustered(Terms(hits, counted), clusters) for hits in (~counted, counted))
    assert none.low == 0
    assert none.high == pytest.approx(1 - 0.025 ** (1 / TEXTURES))
    assert (every.low, every.high) == pytest.approx((1 - none.high, 1))
    assert "16 sources" in none.note
    nothing = two_way_clustered(Terms(~counted, ~counted), clusters)
    assert np.isnan(nothing.low)
    assert nothing.note == "no trial in the denominator"
