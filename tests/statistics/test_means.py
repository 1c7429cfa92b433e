"""Means with bootstrap intervals: standard errors, whole clusters, independent streams, nothing to resample."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.statistics.means import mean_estimates, mean_or_nan, resampled_means


def test_resampled_means_have_the_standard_error_of_the_mean():
    values = np.random.default_rng(0).random(400)
    draws = resampled_means(values[:, None], np.arange(400), "x", resamples=4000).means[:, 0]
    assert draws.mean() == pytest.approx(values.mean(), abs=0.002)
    assert draws.std() == pytest.approx(values.std() / 20, rel=0.05)


def test_clusters_are_drawn_whole():
    """All images of a class are equal: the interval over classes is that of five numbers, much wider."""
    classes = np.repeat(np.arange(5), 100)
    clusters = {"images": np.arange(500), "classes": classes}
    estimate = mean_estimates({"v": classes / 4.0}, clusters, "x", resamples=2000)["v"]
    images, by_class = estimate.intervals
    assert (images.kind, by_class.kind) == ("images", "classes")
    assert by_class.width > 5 * images.width
    assert estimate.widest == by_class
    assert (estimate.value, estimate.n) == (pytest.approx(0.5), 500)


def test_streams_are_independent_and_repeatable():
    values = np.random.default_rng(1).random((300, 1))
    first, again, other = (
        resampled_means(values, np.arange(300), s, resamples=2000).means[:, 0] for s in ("a", "a", "b")
    )
    np.testing.assert_array_equal(first, again)
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.1


def test_columns_share_their_resamples():
    values = np.random.default_rng(2).random(50)
    columns = {"v": values, "twice": 2 * values}
    estimates = mean_estimates(columns, {"images": np.arange(50)}, "x", resamples=200)
    np.testing.assert_allclose(estimates["twice"].draws["images"], 2 * estimates["v"].draws["images"])


def test_nothing_to_resample_says_so():
    estimate = mean_estimates({"v": np.ones(3)}, {"classes": np.zeros(3)}, "x", resamples=10)["v"]
    (interval,) = estimate.intervals
    assert (estimate.value, estimate.n) == (1.0, 3)
    assert "1 cluster: nothing to resample" in interval.note
    assert np.isnan(interval.low)


def test_no_images():
    assert np.isnan(mean_or_nan(np.zeros(0)))
    estimate = mean_estimates({"v": np.zeros(0)}, {"images": np.zeros(0)}, "x", resamples=10)["v"]
    assert np.isnan(estimate.value)
    assert estimate.n == 0
    assert mean_estimates({}, {"images": np.arange(3)}, "x") == {}
