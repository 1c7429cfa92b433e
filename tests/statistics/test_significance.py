"""Tests against textbook data, scipy's own permutation test, and their own level by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuebench.errors import UserError
from cuebench.statistics.significance import bootstrap_mean, one_sample_t, paired_t, sign_flip, two_sample_permutation

# Student 1908: additional hours of sleep by two drugs in ten people.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Fisher 1935, The Design of Experiments: Darwin's maize, differences of 15 pairs; 1,726 of 32,768 sums are as extreme.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_paired_t_of_student():
    found = paired_t(DRUG_1, DRUG_2)
    assert round(found.statistic, 4) == -4.0621
    assert round(found.p, 6) == 0.002833
    assert (round(found.low, 4), round(found.high, 4)) == (-2.4599, -0.7001)
    assert (found.n, found.df) == (10, 9)


def test_one_sample_t_by_its_formula():
    found = one_sample_t(DRUG_2, 1.0)
    x = np.array(DRUG_2)
    t = (x.mean() - 1) / (x.std(ddof=1) / math.sqrt(10))
    assert found.statistic == pytest.approx(t)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), 9))
    assert found.estimate == pytest.approx(x.mean() - 1)
    assert found.low < found.estimate < found.high


def test_sign_flip_of_darwin_counts_what_fisher_counted():
    found = sign_flip(DARWIN)
    assert found.p == pytest.approx(1726 / 32768)
    assert found.note == "all 32,768 rearrangements"


def test_sign_flip_draws_where_there_are_too_many():
    x = np.random.default_rng(0).normal(0.3, 1, 25)
    found = sign_flip(x, resamples=20_000)
    expected = stats.permutation_test((x,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1).pvalue
    assert found.p == pytest.approx(expected, abs=0.02)
    assert found.note == "20,000 random rearrangements"


def test_smallest_p_of_few_values_is_not_small():
    assert sign_flip([1.0, 2.0, 3.0, 4.0, 5.0]).p == 2 / 32


def test_two_samples_equal_scipy_exactly():
    a, b = [4.1, 5.0, 6.2, 5.5], [3.9, 4.0, 4.4, 5.1, 3.0]
    found = two_sample_permutation(a, b)
    expected = stats.permutation_test((a, b), lambda x, y: abs(np.mean(x) - np.mean(y)), alternative="greater")
    assert found.p == pytest.approx(expected.pvalue)


def test_two_samples_drawn():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.6, 1, 20), rng.normal(0, 1, 22)
    assert two_sample_permutation(a, b, resamples=20_000).p == pytest.approx(stats.ttest_ind(a, b).pvalue, abs=0.02)


def test_levels_hold_by_simulation():
    rng = np.random.default_rng(2)
    alarms = {"t": 0, "flip": 0}
    for _ in range(400):
        x = rng.normal(size=12)
        alarms["t"] += one_sample_t(x).p <= 0.05
        alarms["flip"] += sign_flip(x).p <= 0.05
    assert all(0.02 <= n / 400 <= 0.085 for n in alarms.values())


def test_bootstrap_interval_of_the_mean_is_near_the_normal_one():
    x = np.random.default_rng(3).normal(2, 1, 200)
    low, high = bootstrap_mean(x)
    reach = 1.96 * x.std() / math.sqrt(200)
    assert low == pytest.approx(x.mean() - reach, abs=0.02)
    assert high == pytest.approx(x.mean() + reach, abs=0.02)


def test_equal_values_have_no_t():
    found = one_sample_t([0.5, 0.5, 0.5], 0.4)
    assert math.isnan(found.p)
    assert "all values are equal" in found.note


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: one_sample_t([1.0]), "at least 2 numbers"),
        (lambda: paired_t([1, 2, 3], [1, 2]), "pairs of 3 and 2"),
        (lambda: sign_flip([1.0, math.nan]), "1 of 2 are not numbers"),
        (lambda: two_sample_permutation([], [1, 2]), "at least 2 numbers"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(UserError, match=words):
        call()
