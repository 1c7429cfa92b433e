"""Means with intervals over images and over whole clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cuebench.statistics.means import mean_estimates, mean_or_nan


def test_a_mean_has_students_interval():
    values = np.random.default_rng(0).random(400)
    found = mean_estimates({"v": values}, {"images": np.arange(400)}, "x", bounds=(-np.inf, np.inf))["v"].intervals[0]
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_clusters_are_left_out_whole():
    """All images of a class are equal: the interval over classes is that of five numbers, much wider."""
    classes = np.repeat(np.arange(5), 100)
    clusters = {"images": np.arange(500), "classes": classes}
    estimate = mean_estimates({"v": classes / 4.0}, clusters, "x")["v"]
    images, by_class = estimate.intervals
    assert (images.kind, by_class.kind) == ("images", "classes")
    assert by_class.width > 5 * images.width
    assert estimate.widest == by_class
    assert (estimate.value, estimate.n) == (pytest.approx(0.5), 500)


def test_columns_leave_out_the_same_images():
    values = np.random.default_rng(2).random(50)
    estimates = mean_estimates({"v": values, "twice": 2 * values}, {"images": np.arange(50)}, "x")
    once, twice = (estimates[name].left_out["images"]["x"] for name in ("v", "twice"))
    np.testing.assert_allclose(twice, 2 * once)


def test_nothing_to_leave_out_says_so():
    estimate = mean_estimates({"v": np.ones(3)}, {"classes": np.zeros(3)}, "x")["v"]
    (interval,) = estimate.intervals
    assert (estimate.value, estimate.n) == (1.0, 3)
    assert "1 cluster: nothing to resample" in interval.note
    assert np.isnan(interval.low)


def test_no_images():
    assert np.isnan(mean_or_nan(np.zeros(0)))
    estimate = mean_estimates({"v": np.zeros(0)}, {"images": np.zeros(0)}, "x")["v"]
    assert np.isnan(estimate.value)
    assert estimate.n == 0
    assert mean_estimates({}, {"images": np.arange(3)}, "x") == {}
