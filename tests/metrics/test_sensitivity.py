"""Sensitivity, preference, top-k and distortion: hand-made answers, published values, and intervals that cover."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.metrics.distorted_prediction import distorted, distorted_prediction
from cuebench.metrics.relative_accuracy import relative_accuracy, resampled_accuracies
from cuebench.metrics.sensitivity import mean_estimates, preference, preference_estimate, reciprocal, resampled_means
from cuebench.metrics.shape_preference import shape_preference
from cuebench.metrics.shape_reliance import shape_reliance
from cuebench.metrics.shape_sensitivity import shape_sensitivity
from cuebench.metrics.shape_top1 import shape_top1
from cuebench.metrics.shape_top5 import shape_top5
from cuebench.metrics.texture_preference import texture_preference
from cuebench.metrics.texture_sensitivity import texture_sensitivity
from cuebench.metrics.texture_top1 import texture_top1
from cuebench.metrics.texture_top5 import texture_top5

LOGITS = np.array([[9, 8, 7, 6, 5, 4, 3.0], [1, 2, 3, 4, 5, 6, 7.0], [0, 9, 0, 0, 0, 0, 0.0]])
MEMBERS = [np.array([0]), np.array([1, 2])]


def test_by_hand():
    target = np.array([0, 1, 1])  # ranks 1, 5 (of class 2, the better member), 1
    for metric in (shape_sensitivity, texture_sensitivity):
        assert metric(LOGITS, target, MEMBERS) == pytest.approx((1 + 1 / 5 + 1) / 3)
    for metric in (shape_top1, texture_top1):
        assert metric(LOGITS, target, MEMBERS) == pytest.approx(2 / 3)
    for metric in (shape_top5, texture_top5):
        assert metric(LOGITS, target, MEMBERS) == 1.0


def test_preference_of_the_published_baseline():
    """Kim et al. 2026: ResNet-50 .5630 and .5684; the paper speaks of a texture preference that is not high."""
    assert shape_preference(0.5630, 0.5684) == pytest.approx(0.4976, abs=5e-5)
    assert texture_preference(0.5630, 0.5684) == pytest.approx(1 - 0.4976, abs=5e-5)
    assert np.isnan(preference(0.0, 0.0))


def test_distortion_counts_what_only_the_restriction_makes_right():
    logits = np.array([[5, 1, 9.0], [9, 1, 5.0], [1, 5, 9.0]])
    members = [np.array([0]), np.array([1])]
    assert distorted(logits, np.zeros(3, int), members).tolist() == [True, False, False]
    assert distorted_prediction(logits, np.zeros(3, int), members) == pytest.approx(1 / 3)
    assert np.isnan(distorted_prediction(logits[:0], np.zeros(0, int), members))


def test_ranks_start_at_one():
    with pytest.raises(UserError, match="ranks start at 1"):
        reciprocal(np.array([0, 1]))


def test_resampled_means_have_the_standard_error_of_the_mean():
    values = np.random.default_rng(0).random(400)
    draws = resampled_means(values[:, None], np.arange(400), "x", resamples=4000).means[:, 0]
    assert draws.mean() == pytest.approx(values.mean(), abs=0.002)
    assert draws.std() == pytest.approx(values.std() / 20, rel=0.05)


def test_clusters_are_drawn_whole():
    """All images of a class are equal: the interval over classes is that of five numbers, much wider."""
    classes = np.repeat(np.arange(5), 100)
    values = classes / 4.0
    images, clusters = (
        mean_estimates({"v": values}, resampled_means(values[:, None], c, "x", resamples=2000), kind)["v"]
        for kind, c in (("images", np.arange(500)), ("classes", classes))
    )
    widths = [e.bootstrap.interval.high - e.bootstrap.interval.low for e in (images, clusters)]
    assert widths[1] > 5 * widths[0]
    assert clusters.value == images.value == pytest.approx(0.5)


def test_streams_of_the_two_cues_are_independent_and_repeatable():
    values = np.random.default_rng(1).random((300, 1))
    first, again, other = (
        resampled_means(values, np.arange(300), s, resamples=2000).means[:, 0] for s in ("a", "a", "b")
    )
    np.testing.assert_array_equal(first, again)
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.1


def test_the_interval_of_a_preference_covers():
    """300 experiments with a known truth: .6 against .4 of a binary reciprocal rank."""
    rng, hits = np.random.default_rng(5), 0
    for _ in range(300):
        shape, texture = (rng.random(120) < p for p in (0.6, 0.4))
        draws = [
            resampled_means(v[:, None].astype(float), np.arange(120), n, resamples=500).means[:, 0]
            for n, v in (("s", shape), ("t", texture))
        ]
        found = preference_estimate(shape, texture, *draws, "images").bootstrap.interval
        hits += found.low <= 0.6 <= found.high
    assert 0.90 <= hits / 300 <= 0.985


def test_nothing_to_resample_says_so():
    draws = resampled_means(np.ones((3, 1)), np.zeros(3), "x", resamples=10)
    found = mean_estimates({"v": np.ones(3)}, draws, "classes")["v"]
    assert "nothing to resample" in found.bootstrap.note
    assert np.isnan(found.bootstrap.interval.low)


def test_relative_accuracy_and_reliance():
    assert relative_accuracy(np.array([1, 0, 0, 0]), np.array([1, 1, 0, 0])) == 0.5
    assert np.isnan(relative_accuracy(np.array([1]), np.array([0])))
    assert shape_reliance(0.3, 0.7) == pytest.approx(0.7)
    assert shape_reliance(1.2, 0.5) == 0.0
    assert np.isnan(shape_reliance(1.0, 1.0))


def test_photographs_are_drawn_with_all_their_pictures():
    """A condition that is right exactly where the original is has a ratio of 1 in every resample."""
    right = np.random.default_rng(0).random(200) < 0.6
    both = np.column_stack([right, right])
    draws = resampled_accuracies(both, np.ones_like(both), seed=0, resamples=500)
    np.testing.assert_allclose(draws[:, 0], draws[:, 1])
    assert draws[:, 0].std() == pytest.approx(np.sqrt(0.6 * 0.4 / 200), rel=0.15)
