"""Error consistency against Cohen's κ from a confusion matrix, and its interval against a plain bootstrap."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_force import cohen_kappa, quantile
from cuebench.errors import UserError
from cuebench.metrics import error_consistency
from cuebench.metrics.error_consistency import mean_over_pairs

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(PAIRS)
def test_kappa_equals_cohens(pairs):
    first, second = ([p[i] for p in pairs] for i in (0, 1))
    found, wanted = error_consistency(first, second), cohen_kappa(first, second)
    assert (math.isnan(found) and math.isnan(wanted)) or found == pytest.approx(wanted, abs=1e-12)


def test_the_sign_is_kept():
    assert error_consistency([True, False] * 10, [False, True] * 10) == -1
    assert error_consistency.bounds == (-1.0, 1.0)


@pytest.mark.parametrize("value", [True, False])
def test_expected_agreement_of_one_is_nan(value):
    assert math.isnan(error_consistency([value] * 7, [value] * 7))
    assert math.isnan(error_consistency([], []))
    assert error_consistency([True, True], [False, False]) == 0  # one always right, one always wrong: as chance has it


def test_mean_over_pairs_uses_only_what_both_saw():
    rng = np.random.default_rng(1)
    correct, seen = rng.random((4, 80)) < 0.6, rng.random((4, 80)) < 0.7
    pairs = [(0, 1), (0, 2), (0, 3)]
    wanted = [cohen_kappa(correct[0, b], correct[i, b]) for i in (1, 2, 3) for b in [seen[0] & seen[i]]]
    found = mean_over_pairs(correct, seen, pairs)
    assert found.value == pytest.approx(np.mean(wanted))
    assert found.n == (seen[0] & seen[1:].any(axis=0)).sum()
    assert not found.notes


def test_an_undefined_pair_leaves_the_mean_and_is_counted():
    correct = np.array([[True] * 4, [True] * 4, [True, False, True, False]])
    found = mean_over_pairs(correct, np.ones_like(correct), [(0, 1), (0, 2)])
    assert found.value == 0.0
    assert found.notes == ("κ is undefined for 1 of 2 pairs: expected agreement is 1",)
    none = mean_over_pairs(correct, np.ones_like(correct), [(0, 1)])
    assert math.isnan(none.value)
    unseen = mean_over_pairs(correct, np.zeros_like(correct), [(0, 1)])
    assert unseen.notes == ("κ is undefined for 1 of 1 pairs: no image was seen by both",)
    assert unseen.n == 0


@pytest.mark.parametrize("people", [1, 9])
def test_interval_is_near_a_plain_bootstrap_over_images(people):
    rng = np.random.default_rng(2)
    easy = rng.random(150)
    correct = rng.random((people + 1, 150)) < easy
    seen = np.ones_like(correct)
    pairs = [(0, i) for i in range(1, people + 1)]
    (found,) = mean_over_pairs(correct, seen, pairs).intervals
    plain, draws = random.Random(3), []
    for _ in range(600):
        pick = [plain.randrange(150) for _ in range(150)]
        draws.append(np.mean([cohen_kappa(correct[0, pick], correct[i, pick]) for _, i in pairs]))
    draws.sort()
    width = found.high - found.low
    assert found.low == pytest.approx(quantile(draws, 0.025), abs=0.12 * width)
    assert found.high == pytest.approx(quantile(draws, 0.975), abs=0.12 * width)


def test_interval_without_images_or_pairs():
    one = np.ones((2, 1), bool)
    assert mean_over_pairs(one, one, [(0, 1)]).intervals[0].note == "1 image: nothing to resample"
    alone = mean_over_pairs(np.ones((1, 5), bool), np.ones((1, 5), bool), [])
    assert alone.intervals[0].note == "no pair of observers"


def test_unequal_lengths():
    with pytest.raises(UserError, match="same trials"):
        error_consistency([True], [True, False])
