"""Estimates against scipy's intervals, and what derived numbers inherit from the draws of others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuebench.statistics.estimates import (
    derived,
    difference_of_means,
    from_draws,
    mean,
    missing,
    ratio_estimates,
    resampled_mean,
    share,
)
from cuebench.statistics.intervals import KINDS, Clusters, ratio_intervals, weights
from cuebench.statistics.ratios import Terms
from cuebench.types import Estimate


def ends(estimate, kind="images"):
    (interval,) = [i for i in estimate.intervals if i.kind == kind]
    return interval.low, interval.high


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (5, 5), (1, 3), (30, 100), (999, 1000)])
def test_a_share_has_wilsons_interval(hits, n):
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    found = share(hits, n)
    assert (found.value, found.n) == (hits / n, n)
    assert ends(found) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 40])
def test_a_mean_has_students_interval(n):
    values = np.random.default_rng(n).normal(2, 3, n)
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    found = mean(values, "classes")
    assert (found.value, found.n) == (pytest.approx(values.mean()), n)
    assert ends(found, "classes") == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("sizes", [(2, 2), (5, 40), (30, 31)])
def test_a_difference_of_means_has_welchs_interval(sizes):
    rng = np.random.default_rng(1)
    first, second = rng.normal(1, 1, sizes[0]), rng.normal(0, 4, sizes[1])
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    found = difference_of_means(first, second)
    assert (found.value, found.n) == (pytest.approx(first.mean() - second.mean()), sum(sizes))
    assert ends(found) == pytest.approx((expected.low, expected.high))


def test_too_little_to_measure_has_a_reason_instead_of_an_interval():
    cases = [share(0, 0), mean(np.array([])), mean(np.array([1.0])), difference_of_means(np.ones(1), np.ones(9))]
    cases += [resampled_mean(np.ones(1), "classes"), resampled_mean(np.array([]), "seeds")]
    assert all(math.isnan(e.intervals[0].low) and e.intervals[0].note for e in cases)
    assert [e.value for e in cases[1:3]] == [pytest.approx(math.nan, nan_ok=True), 1.0]
    assert [e.intervals[0].note for e in cases[-2:]] == ["1 class: nothing to resample", "0 seeds: nothing to resample"]


def test_a_ratio_has_one_estimate_with_the_intervals_of_all_kinds():
    rng = np.random.default_rng(0)
    terms = Terms(rng.random(80) < 0.4, np.ones(80, bool))
    clusters = Clusters(np.arange(80), rng.integers(9, size=80), rng.integers(7, size=80))
    (found,) = ratio_estimates([terms], clusters, KINDS, resamples=300)
    assert (found.value, found.n) == (terms.numerator.mean(), 80)
    assert list(found.intervals) == [ratio_intervals([terms], clusters, k, resamples=300)[0] for k in KINDS]
    assert found.widest == max(found.intervals, key=lambda i: i.high - i.low)


def test_a_resampled_mean_equals_a_loop_over_the_same_draws():
    values = np.array([0.1, 0.5, 0.6, 0.9])
    draws = [np.repeat(values, counts).mean() for counts in weights("seeds", 4, 3, 500)]
    found = resampled_mean(values, "seeds", seed=3, resamples=500)
    assert found.value == pytest.approx(0.525)
    assert ends(found, "seeds") == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))


def test_draws_become_intervals_and_are_kept():
    draws = {"images": np.arange(101.0), "two_way": np.full(101, 7.0)}
    found = from_draws(50, 9, draws)
    assert (found.value, found.n) == (50, 9)
    assert ends(found) == (pytest.approx(2.5), pytest.approx(97.5))
    assert ends(found, "two_way") == (7, 7)
    assert found.draws is draws


def test_draws_without_resamples_say_why():
    found = from_draws(0.5, 1, {"images": np.empty(0), "two_way": np.ones(9)}, {"two_way": "one texture"})
    assert [i.note for i in found.intervals] == ["1 image: nothing to resample", "one texture"]
    assert all(math.isnan(i.low) for i in found.intervals)
    plural = from_draws(0.5, 0, {"images": np.empty(0)})
    assert plural.intervals[0].note == "0 images: nothing to resample"


def test_a_derived_number_is_the_function_of_each_draw():
    rng = np.random.default_rng(0)
    first, second = (from_draws(v, 10, {"images": rng.normal(v, 1, 400)}) for v in (5.0, 2.0))
    found = derived(lambda a, b: a / (a + b), first, second)
    loop = [a / (a + b) for a, b in zip(first.draws["images"], second.draws["images"])]
    assert (found.value, found.n) == (5 / 7, 20)
    assert ends(found) == pytest.approx(tuple(np.quantile(loop, [0.025, 0.975])))
    again = derived(np.negative, found, n=3)  # derived numbers can be derived from
    assert again.n == 3
    assert ends(again) == pytest.approx((-ends(found)[1], -ends(found)[0]))


def test_what_two_estimates_share_cancels_in_their_difference():
    draws = {"images": np.random.default_rng(0).normal(size=200)}
    found = derived(np.subtract, from_draws(0.7, 5, draws), from_draws(0.7, 5, draws))
    assert ends(found) == (0, 0)


def test_an_estimate_without_draws_is_a_constant():
    draws = np.linspace(0, 1, 101)
    found = derived(np.multiply, from_draws(0.5, 5, {"images": draws}), Estimate(2.0, 1))
    assert ends(found) == (pytest.approx(0.05), pytest.approx(1.95))


def test_draws_that_do_not_belong_together_give_no_interval():
    found = derived(np.add, from_draws(1, 5, {"images": np.ones(9)}), from_draws(1, 5, {"images": np.ones(8)}))
    assert found.value == 2
    assert math.isnan(ends(found)[0])


def test_a_missing_number_carries_its_reason_and_what_it_excludes():
    found = missing("needs logits", excluded={"without logits": 9})
    assert math.isnan(found.value)
    assert (found.n, found.intervals[0].note, found.excluded) == (0, "needs logits", {"without logits": 9})
