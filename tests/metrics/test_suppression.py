"""Relative accuracy and shape reliance by hand, as numbers and element by element."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.metrics import relative_accuracy, shape_reliance


def test_relative_accuracy_of_pictures():
    assert relative_accuracy(np.array([1, 0, 0, 0]), np.array([1, 1, 0, 0])) == 0.5
    assert relative_accuracy([True, False], [True, True]) == 0.5
    assert np.isnan(relative_accuracy(np.array([1]), np.array([0])))
    assert np.isnan(relative_accuracy([], [True]))


def test_relative_accuracy_of_accuracies_is_the_mean_over_levels():
    assert relative_accuracy([0.2, 0.6], [0.8]) == pytest.approx(0.5)
    levels, original = np.array([[0.2, 0.4], [0.6, 0.0]]), np.array([0.8, 0.0])
    np.testing.assert_allclose(relative_accuracy(list(levels), [original]), [0.5, np.nan])


def test_shape_reliance():
    assert shape_reliance(0.3, 0.7) == pytest.approx(0.7)
    assert shape_reliance(1.2, 0.5) == 0.0
    assert np.isnan(shape_reliance(1.0, 1.0))
    assert np.isnan(shape_reliance(float("nan"), 0.5))
    np.testing.assert_allclose(shape_reliance(np.array([0.3, 1.2]), np.array([0.7, 0.5])), [0.7, 0.0])
