"""Statistics of sums over images: the same as a plain bootstrap, with all versions of an image drawn together."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.statistics.intervals import weights
from cuebench.statistics.resampled import estimates_of_sums, mean_estimate, quotient


def accuracies(correct, resamples=500):
    columns = np.concatenate([correct, np.ones_like(correct)], axis=1)
    number = correct.shape[1]
    return estimates_of_sums(
        columns,
        lambda sums: quotient(sums[:, :number], sums[:, number:]),
        [len(correct)] * number,
        seed=0,
        resamples=resamples,
    )


def test_versions_of_an_image_are_drawn_together():
    """A condition that is correct exactly where the original is has the same accuracy in every resample."""
    correct = np.random.default_rng(0).random(200) < 0.6
    first, second = accuracies(np.column_stack([correct, correct]))
    np.testing.assert_allclose(first.draws["images"], second.draws["images"])
    assert first.draws["images"].std() == pytest.approx(np.sqrt(0.6 * 0.4 / 200), rel=0.15)
    assert first.value == correct.mean()
    assert first.n == 200


def test_draws_are_those_of_repeated_images():
    values = np.random.default_rng(1).random((7, 2, 3))
    estimates = estimates_of_sums(values, lambda sums: sums.max(axis=1) / 7, [7, 7, 7], seed=3, resamples=20)
    counts = weights("images", 7, 3, 20)
    for i, row in enumerate(counts):
        expected = np.repeat(values, row, axis=0).sum(axis=0).max(axis=0) / 7
        np.testing.assert_allclose([e.draws["images"][i] for e in estimates], expected)
    np.testing.assert_allclose([e.value for e in estimates], values.sum(axis=0).max(axis=0) / 7)


@pytest.mark.parametrize(("images", "value"), [(0, None), (1, 1.0)])
def test_fewer_than_two_images_have_no_interval(images, value):
    (estimate,) = accuracies(np.ones((images, 1)))
    assert np.isnan(estimate.value) if value is None else estimate.value == value
    (interval,) = estimate.intervals
    assert np.isnan(interval.low)
    assert "nothing to resample" in interval.note


def test_the_mean_weighs_estimates_equally_and_pairs_their_draws():
    correct = np.random.default_rng(2).random((50, 2)) < [0.9, 0.3]
    first, second = accuracies(correct)
    mean = mean_estimate([first, second])
    assert mean.value == pytest.approx((first.value + second.value) / 2)
    np.testing.assert_allclose(mean.draws["images"], (first.draws["images"] + second.draws["images"]) / 2)
    assert mean.n == 100


def test_quotients():
    assert quotient(3, 4) == 0.75
    assert isinstance(quotient(3, 4), float)
    assert np.isnan(quotient(0.0, 0.0))
    np.testing.assert_array_equal(quotient(np.array([1.0, 2.0]), np.array([2.0, 0.0])), [0.5, np.nan])
