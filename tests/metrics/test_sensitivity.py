"""Metrics of REFINED-BIAS: sensitivity, top-k, preference and distortion, by hand and with published values."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from cuebench import metrics
from cuebench.errors import UserError
from cuebench.metrics.refined_bias import METRICS, distorted, reciprocal
from cuebench.statistics.estimates import derived
from cuebench.statistics.means import mean_estimates

LOGITS = np.array([[9, 8, 7, 6, 5, 4, 3.0], [1, 2, 3, 4, 5, 6, 7.0], [0, 9, 0, 0, 0, 0, 0.0]])
MEMBERS = [np.array([0]), np.array([1, 2])]


@pytest.mark.parametrize("cue", ["shape", "texture"])
def test_by_hand(cue):
    target = np.array([0, 1, 1])  # ranks 1, 5 (of class 2, the better member), 1
    expected = {"sensitivity": (1 + 1 / 5 + 1) / 3, "top1": 2 / 3, "top5": 1.0}
    for measure, value in expected.items():
        assert getattr(metrics, f"{cue}_{measure}")(LOGITS, target, MEMBERS) == pytest.approx(value)
        assert np.isnan(getattr(metrics, f"{cue}_{measure}")(LOGITS[:0], target[:0], MEMBERS))


def test_every_metric_is_public_and_described():
    assert len(METRICS) == 9
    for metric in METRICS:
        assert getattr(metrics, metric.name) is metric
        assert metric.formula in metric.__doc__
    assert list(inspect.signature(metrics.texture_top5).parameters) == ["logits", "target", "members"]
    names = ["shape_sensitivity", "texture_sensitivity"]
    assert list(inspect.signature(metrics.texture_preference).parameters) == names
    assert metrics.texture_preference.formula == "texture sensitivity / (shape sensitivity + texture sensitivity)"


def test_preference_of_the_published_baseline():
    """Kim et al. 2026: ResNet-50 .5630 and .5684; the paper speaks of a texture preference that is not high."""
    assert metrics.shape_preference(0.5630, 0.5684) == 0.5630 / (0.5630 + 0.5684)
    assert metrics.shape_preference(0.5630, 0.5684) == pytest.approx(0.4976, abs=5e-5)
    assert metrics.texture_preference(0.5630, 0.5684) == pytest.approx(1 - 0.4976, abs=5e-5)
    assert np.isnan(metrics.shape_preference(0.0, 0.0))
    assert np.isnan(metrics.texture_preference(float("nan"), 0.5))


def test_preference_of_arrays_is_that_of_their_elements():
    shape, texture = np.array([0.2, 0.0, 0.9]), np.array([0.6, 0.0, 0.1])
    np.testing.assert_array_equal(metrics.shape_preference(shape, texture), [0.2 / 0.8, np.nan, 0.9])
    np.testing.assert_array_equal(metrics.texture_preference(shape, texture), [0.6 / 0.8, np.nan, 0.1])


def test_distortion_counts_what_only_the_restriction_makes_correct():
    logits = np.array([[5, 1, 9.0], [9, 1, 5.0], [1, 5, 9.0]])
    members = [np.array([0]), np.array([1])]
    assert distorted(logits, np.zeros(3, int), members).tolist() == [True, False, False]
    assert metrics.distorted_prediction(logits, np.zeros(3, int), members) == pytest.approx(1 / 3)
    assert np.isnan(metrics.distorted_prediction(logits[:0], np.zeros(0, int), members))


def test_ranks_start_at_one():
    with pytest.raises(UserError, match="ranks start at 1"):
        reciprocal(np.array([0, 1]))


def test_the_interval_of_a_preference_covers():
    """300 experiments with a known truth: .6 against .4 of a binary reciprocal rank."""
    rng, hits = np.random.default_rng(5), 0
    for _ in range(300):
        shape, texture = (
            mean_estimates({"v": rng.random(120) < p}, {"images": np.arange(120)}, cue)["v"]
            for cue, p in (("shape", 0.6), ("texture", 0.4))
        )
        (interval,) = derived(metrics.shape_preference.compute, shape, texture).intervals
        hits += interval.low <= 0.6 <= interval.high
    assert 0.90 <= hits / 300 <= 0.985


def test_a_class_that_the_observer_does_not_have_is_never_the_best_of_the_set():
    """A network with the shown classes only: the other targets of the set have no member among its logits."""
    logits = np.array([[0.2, 0.5, 0.9], [-3.0, -2.0, -1.0]])
    members = [np.array([0]), np.array([], np.intp), np.array([1])]
    assert distorted(logits, np.array([2, 2]), members).tolist() == [True, True]
