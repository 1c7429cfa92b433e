"""Confusion by class against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.metrics import confusion
from cuebench.metrics.confusion import count

NAMES = ("cat", "dog", "car")


@pytest.fixture
def trials():
    rng = np.random.default_rng(0)
    answers = rng.choice([*NAMES, "na"], 300)
    return answers, rng.choice(NAMES, 300), rng.choice(NAMES, 300)


@pytest.mark.parametrize(("by", "truth"), [("shape", 1), ("texture", 2)])
def test_equals_counting_by_hand(trials, by, truth):
    pairs = Counter(zip(trials[truth].tolist(), trials[0].tolist()))
    totals = Counter(trials[truth].tolist())
    wanted = [[pairs[c, r] / totals[c] for r in (*NAMES, "na")] for c in NAMES]
    found = confusion(*trials, NAMES, by=by)
    np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_counts_equal_a_loop():
    rng = np.random.default_rng(1)
    response, shape, texture = (rng.integers(low, 3, 90) for low in (-1, 0, 0))
    expected = np.zeros((3, 3, 4), int)
    for r, s, t in zip(response, shape, texture):
        expected[s, t, r] += 1  # −1, no class, is the last column
    np.testing.assert_array_equal(count(response, shape, texture, 3), expected)


def test_a_class_without_trials_is_nan():
    found = confusion(["cat"], ["cat"], ["dog"], ["cat", "dog"])
    assert found[0].tolist() == [1, 0, 0]
    assert np.isnan(found[1]).all()


def test_bad_codes():
    with pytest.raises(UserError, match="shape class out of range"):
        count(np.array([0]), np.array([-1]), np.array([0]), 2)
    with pytest.raises(UserError, match="2 responses, 1 shape classes"):
        count(np.array([0, 0]), np.array([0]), np.array([0]), 2)
