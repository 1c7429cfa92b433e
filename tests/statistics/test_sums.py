"""Statistics of sums over images, without each image in turn, with all versions of an image left out together."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.statistics.ratios import quotient
from cuebench.statistics.sums import estimates_of_sums, mean_estimate


def accuracies(correct):
    columns = np.concatenate([correct, np.ones_like(correct)], axis=1)
    number = correct.shape[1]
    return estimates_of_sums(
        columns,
        lambda sums: quotient(sums[:, :number], sums[:, number:]),
        [len(correct)] * number,
    )


def of(estimate):
    return estimate.left_out["images"]["images"]


def test_versions_of_an_image_are_left_out_together():
    """A condition that is correct exactly where the original is has the same accuracy without each image."""
    correct = np.random.default_rng(0).random(200) < 0.6
    first, second = accuracies(np.column_stack([correct, correct]))
    np.testing.assert_allclose(of(first), of(second))
    assert of(first).std() * 199 == pytest.approx(np.sqrt(0.6 * 0.4), rel=0.05)
    assert first.value == correct.mean()
    assert first.n == 200


def test_every_image_is_left_out_once(monkeypatch):
    values = np.random.default_rng(1).random((7, 2, 3))
    for chunk in (4_000_000, 13):  # all at once, and two images at a time
        monkeypatch.setattr("cuebench.statistics.sums._CHUNK", chunk)
        estimates = estimates_of_sums(values, lambda sums: sums.max(axis=1) / 7, [7, 7, 7])
        for i in range(7):
            expected = np.delete(values, i, axis=0).sum(axis=0).max(axis=0) / 7
            np.testing.assert_allclose([of(e)[i] for e in estimates], expected)
        np.testing.assert_allclose([e.value for e in estimates], values.sum(axis=0).max(axis=0) / 7)


@pytest.mark.parametrize(("images", "value"), [(0, None), (1, 1.0)])
def test_fewer_than_two_images_have_no_interval(images, value):
    (estimate,) = accuracies(np.ones((images, 1)))
    assert np.isnan(estimate.value) if value is None else estimate.value == value
    (interval,) = estimate.intervals
    assert np.isnan(interval.low)
    assert "nothing to resample" in interval.note


def test_the_mean_weighs_estimates_equally_and_pairs_their_images():
    correct = np.random.default_rng(2).random((50, 2)) < [0.9, 0.3]
    first, second = accuracies(correct)
    mean = mean_estimate([first, second])
    assert mean.value == pytest.approx((first.value + second.value) / 2)
    np.testing.assert_allclose(of(mean), (of(first) + of(second)) / 2)
    assert mean.n == 100


def test_quotients():
    assert quotient(3, 4) == 0.75
    assert isinstance(quotient(3, 4), float)
    assert np.isnan(quotient(0.0, 0.0))
    np.testing.assert_array_equal(quotient(np.array([1.0, 2.0]), np.array([2.0, 0.0])), [0.5, np.nan])
