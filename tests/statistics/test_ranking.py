"""Tie groups against an exhaustive search, and what a range of ranks promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.statistics.ranking import rank_ranges, separable_by_draws, separable_by_intervals, tie_groups


def test_groups_equal_an_exhaustive_search():
    rng = np.random.default_rng(0)
    for _ in range(40):
        values = rng.random(7)
        reach = rng.uniform(0.02, 0.3, 7)
        apart = separable_by_intervals(values - reach, values + reach)
        order = np.argsort(-values)
        runs = [tuple(order[a:b]) for a, b in itertools.combinations(range(8), 2)]
        tied = [r for r in runs if not any(apart[i, j] for i, j in itertools.combinations(r, 2))]
        longest = [r for r in tied if not any(set(r) < set(o) for o in tied)]
        assert tie_groups(values, apart) == [tuple(map(int, r)) for r in longest]


def test_groups_cover_everybody():
    values = np.arange(5.0)
    assert tie_groups(values, np.zeros((5, 5), bool)) == [(4, 3, 2, 1, 0)]
    assert tie_groups(values, ~np.eye(5, dtype=bool)) == [(4,), (3,), (2,), (1,), (0,)]


def test_ranges_of_ranks():
    apart = separable_by_intervals([0.8, 0.4, 0.3], [1.0, 0.6, 0.5])
    assert rank_ranges([0.9, 0.5, 0.4], apart) == [(1, 1), (2, 3), (2, 3)]


def test_paired_draws_separate_what_intervals_do_not():
    """Two models that share the noise of the stimuli differ surely although their intervals overlap widely."""
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 0.1, 4000)
    draws = np.column_stack([0.50 + shared, 0.53 + shared + rng.normal(0, 0.005, 4000)])
    assert separable_by_draws(draws)[0, 1]
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    assert not separable_by_intervals(low, high)[0, 1]


def test_equal_models_are_seldom_separated():
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(60):
        truth = rng.normal(0, 1, 6)  # the estimates of six equal models
        draws = truth + rng.normal(0, 1, (500, 6))
        wrong += separable_by_draws(draws).any()
    assert wrong / 60 < 0.15


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: separable_by_intervals([1.0], [0.5]), "end before they begin"),
        (lambda: separable_by_draws(np.zeros(3)), "resamples × models"),
        (lambda: tie_groups([1, 2], np.zeros((3, 3), bool)), "symmetric"),
        (lambda: rank_ranges([1, np.nan], np.zeros((2, 2), bool)), "1 values are missing"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(UserError, match=words):
        call()
