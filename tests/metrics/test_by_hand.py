"""Small cases by hand: what damaged formulas showed that no other test looks at."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.metrics.error_consistency import mean_over_pairs
from cuebench.metrics.recognition import METRIC as recognition
from cuebench.metrics.triplets import count, decide, enumerate_triplets, gram


def test_recognition_counts_right_answers():
    assert recognition(["cat", "dog", "cat"], ["cat", "cat", "cat"]) == pytest.approx(2 / 3)


def test_an_undefined_pair_is_outside_the_mean_consistency():
    # κ of the first pair is .5 (3 of 4 agree, 2 of 4 by chance); the second two are right throughout: no κ.
    correct = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]], bool)
    estimate = mean_over_pairs(correct, np.ones_like(correct), [(0, 1), (2, 3)])
    assert estimate.value == pytest.approx(0.5)
    assert any("undefined for 1 of 2 pairs" in note for note in estimate.notes)


def test_decisions_of_several_draws_are_averaged():
    shapes, textures = ["a", "a", "b", "b"], ["x", "y", "x", "y"]
    triplets = enumerate_triplets(shapes, textures)
    decisions = decide(gram(np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]]), triplets))
    rows = np.arange(len(triplets.anchor))
    once, thrice = (count(decisions, triplets, [rows] * number) for number in (1, 3))
    np.testing.assert_allclose(once.trials, thrice.trials)
    assert once.trials.sum() == len(rows)
