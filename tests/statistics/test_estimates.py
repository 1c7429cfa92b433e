"""Estimates against scipy's intervals, and what derived numbers inherit from others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuebench.statistics.clustered import ratio_intervals
from cuebench.statistics.estimates import (
    derived,
    difference_of_means,
    freedom,
    jackknife_interval,
    jackknifed,
    mean,
    mean_of_shares,
    missing,
    part_of,
    ratio_estimates,
    share,
)
from cuebench.statistics.intervals import KINDS, Clusters
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
    cases += [mean_of_shares(np.ones(1), "subjects"), mean_of_shares(np.array([]), "seeds")]
    assert all(math.isnan(e.intervals[0].low) and e.intervals[0].note for e in cases)
    assert [e.value for e in cases[1:3]] == [pytest.approx(math.nan, nan_ok=True), 1.0]
    notes = ["1 subject: nothing to resample", "0 seeds: nothing to resample"]
    assert [e.intervals[0].note for e in cases[-2:]] == notes


def test_a_ratio_has_one_estimate_with_the_intervals_of_all_kinds():
    rng = np.random.default_rng(0)
    terms = Terms(rng.random(80) < 0.4, np.ones(80, bool))
    clusters = Clusters(np.arange(80), rng.integers(9, size=80), rng.integers(7, size=80))
    (found,) = ratio_estimates([terms], clusters, KINDS)
    assert (found.value, found.n) == (terms.numerator.mean(), 80)
    assert found.intervals == ratio_intervals([terms], clusters, KINDS)[0]
    assert found.widest == max(found.intervals, key=lambda i: i.high - i.low)


def test_a_mean_of_shares_has_students_interval_on_the_logit_scale():
    values = np.array([0.1, 0.5, 0.6, 0.9])
    found = mean_of_shares(values, "seeds")
    assert (found.value, found.n) == (pytest.approx(0.525), 4)
    reach = stats.t.ppf(0.975, 3) * values.std(ddof=1) / 2 / (0.525 * 0.475)
    centre = math.log(0.525 / 0.475)
    expected = [1 / (1 + math.exp(-(centre + side * reach))) for side in (-1, 1)]
    assert ends(found, "seeds") == pytest.approx(tuple(expected))


def without(values):
    """Return the mean without each value."""
    return (values.sum() - values) / (len(values) - 1)


def test_the_jackknife_of_a_mean_is_students_interval():
    values = np.random.default_rng(1).uniform(1, 5, 30)
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    found = jackknifed(values.mean(), 30, {"images": {"a": without(values)}})
    assert ends(found) == pytest.approx((expected.low, expected.high))


def test_the_jackknife_of_two_parts_is_welchs_interval():
    rng = np.random.default_rng(2)
    first, second = rng.uniform(1, 5, 12), rng.uniform(-4, 6, 40)
    a, b = (jackknifed(v.mean(), len(v), {"images": {part: without(v)}}) for v, part in ((first, "a"), (second, "b")))
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    assert ends(derived(np.subtract, a, b)) == pytest.approx((expected.low, expected.high))


def test_the_jackknife_takes_the_bias_out_of_the_interval_and_holds_the_value():
    values = np.random.default_rng(3).normal(0, 1, 40)
    # The plug-in variance is too small by 1/n; its jackknife is the unbiased one.
    plug_in = values.var()
    left = np.array([np.delete(values, i).var() for i in range(40)])
    interval = jackknife_interval(plug_in, {"": left}, "images")
    assert (interval.low + interval.high) / 2 == pytest.approx(values.var(ddof=1))
    far = jackknife_interval(0.5, {"": 0.5 + np.array([0.01, 0.010001, 0.0100005])}, "images")
    assert far.low < far.high == 0.5


def test_few_clusters_that_make_the_variance_leave_few_degrees_of_freedom():
    even = np.tile([-1.0, 1.0], 50)
    assert freedom(even) == 99
    rare = np.zeros(100)
    rare[:4] = 1
    assert 3 < freedom(rare - rare.mean()) < 9
    # The variance of normal numbers has about n − 1: the formula is that of its sampling variance.
    rng = np.random.default_rng(5)
    samples = rng.standard_t(9, (4000, 40))
    spread = samples.var(axis=1, ddof=1)
    found = np.mean([1 / freedom(x - x.mean()) for x in samples])
    assert found == pytest.approx(spread.var() / spread.mean() ** 2 / 2, rel=0.35)


def test_above_a_single_bound_intervals_are_symmetric_on_the_logarithmic_scale():
    values = np.random.default_rng(6).uniform(0, 0.2, 40)
    found = jackknifed(values.mean(), 40, {"images": {"": without(values)}}, bounds=(0.0, math.inf))
    low, high = ends(found)
    reach = stats.t.ppf(0.975, 39) * values.std(ddof=1) / math.sqrt(40) / values.mean()
    assert (math.log(low), math.log(high)) == pytest.approx(tuple(math.log(values.mean()) + s * reach for s in (-1, 1)))


def test_what_never_varies_says_that_its_interval_is_none():
    found = jackknifed(1.3, 20, {"images": {"": np.full(20, 1.3)}}, bounds=(0.0, math.inf))
    assert np.isnan(ends(found)).all()
    assert found.intervals[0].note == "the same without any of the 20 images: no 95 % interval"


def test_a_share_that_never_varies_has_the_interval_of_so_many_trials():
    """Two of three decisions of every person; half of the images of every source: no interval has width 0."""
    person = np.repeat(np.arange(10), 30)
    decided = np.tile([1, 1, 0], 100)
    trials = np.arange(300)
    (found,) = ratio_estimates(
        [Terms(decided, np.ones(300))], Clusters(trials, trials % 30, trials % 3, person), ["subjects", "shape_sources"]
    )
    low, high = ends(found, "subjects")
    worth = 300 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 9)) ** 2
    assert (low, high) == pytest.approx(stats.beta.ppf([0.025, 0.975], worth * 2 / 3 + 0.5, worth / 3 + 0.5))
    assert found.intervals[0].note == "people do not vary: as of 300 independent trials"
    (pooled,) = jackknifed(0.5, 20, {"images": {"": np.full(20, 0.5)}}, bounds=(0.0, 1.0)).intervals
    assert 0.2 < pooled.low < 0.3
    assert (mean_of_shares(np.full(4, 0.5), "subjects").intervals[0].width) > 0.5


def share_lost(s, t):
    """Return the share of the first loss in both, where losses below 0 count as none."""
    lost = np.maximum(0, 1 - s), np.maximum(0, 1 - t)
    return lost[0] / (lost[0] + lost[1])


def test_a_share_of_two_losses_holds_the_truth_near_its_end():
    rng, held = np.random.default_rng(7), []
    for _ in range(400):
        # Relative to an accuracy of .5 that is as uncertain: the second loss is often below 0.
        hits = rng.random((200, 3)) < (0.1, 0.47, 0.5)
        s, t, original = (jackknifed(h.mean(), 200, {"images": {"": without(h)}}) for h in hits.T)
        left = derived(np.divide, s, original), derived(np.divide, t, original)
        found = part_of(share_lost, lambda s, t: 1 - s, lambda s, t: 2 - s - t, *left)
        held.append(ends(found)[0] <= 0.8 / 0.86 <= ends(found)[1])
    assert 0.925 <= np.mean(held) <= 0.975


def test_a_share_of_nothing_can_be_anything():
    values = np.array([1.0, 1.2, 0.8, 1.1, 0.9, 1.05])
    e = jackknifed(values.mean(), 6, {"images": {"": without(values)}})
    half = jackknifed(0.999, 6, {"images": {"": 0.999 + 0 * values}})
    found = part_of(share_lost, lambda s, t: 1 - s, lambda s, t: 2 - s - t, e, half)
    assert ends(found) == (0.0, 1.0)


@pytest.mark.parametrize("rounding", [0, 1e-16, 1e-15])
def test_a_share_that_is_1_without_any_image_has_the_exact_interval_and_not_one_of_rounding(rounding):
    """Only shape loses anything: the interval was [1 − 1e-8, 1] on one CPU, and [1 − 5e-8, 1] on another."""
    values = np.array([0.2, 0.3, 0.1, 0.4, 0.3, 0.2])
    e = jackknifed(values.mean(), 6, {"images": {"": without(values)}})
    other = jackknifed(1.0, 6, {"images": {"": 1 + rounding * np.array([1, -1, 0, 2, -2, 1])}})
    found = part_of(share_lost, lambda s, t: 1 - s, lambda s, t: 2 - s - t, e, other)
    assert (found.value, *ends(found)) == (1.0, pytest.approx(0.025 ** (1 / 6)), 1.0)


def test_bounds_are_kept():
    hits = np.random.default_rng(4).random(40) < 0.97
    found = jackknifed(hits.mean(), 40, {"images": {"": without(hits)}}, bounds=(0.0, 1.0))
    assert 0 < ends(found)[0] < hits.mean() < ends(found)[1] < 1
    every = jackknifed(1.0, 20, {"images": {"": np.ones(20)}}, bounds=(0.0, 1.0))
    assert ends(every) == pytest.approx((0.025 ** (1 / 20), 1.0))
    assert every.intervals[0].note == "every decision alike: exact for 20 images"


def test_what_cannot_be_left_out_says_why():
    left = {"images": {"": np.empty(0)}, "classes": {"": np.ones(9)}}
    found = jackknifed(0.5, 1, left, {"classes": "one texture"})
    assert [i.note for i in found.intervals] == ["1 image: nothing to resample", "one texture"]
    assert all(math.isnan(i.low) for i in found.intervals)
    plural = jackknifed(0.5, 0, {"images": {"": np.empty(0)}})
    assert plural.intervals[0].note == "0 images: nothing to resample"
    some = jackknifed(0.5, 4, {"images": {"": np.array([0.4, 0.5, 0.6, np.nan])}})
    assert some.intervals[0].note == "undefined without 1 of 4"


def test_a_derived_number_is_the_function_of_each_value():
    rng = np.random.default_rng(0)
    columns = [rng.normal(v, 1, 50) for v in (5.0, 2.0)]
    first, second = (jackknifed(c.mean(), 50, {"images": {"": without(c)}}) for c in columns)
    found = derived(lambda a, b: a / (a + b), first, second)
    a, b = (e.left_out["images"][""] for e in (first, second))
    np.testing.assert_allclose(found.left_out["images"][""], a / (a + b))
    assert (found.value, found.n) == (pytest.approx(first.value / (first.value + second.value)), 100)
    again = derived(np.negative, found, n=3)  # derived numbers can be derived from
    assert again.n == 3
    assert ends(again) == pytest.approx((-ends(found)[1], -ends(found)[0]))


def test_what_two_estimates_share_cancels_in_their_difference():
    left = {"images": {"": np.random.default_rng(0).normal(0.7, 0.1, 20)}}
    found = derived(np.subtract, jackknifed(0.7, 5, left), jackknifed(0.7, 5, left))
    assert np.isnan(ends(found)).all()
    assert "the same without any of the 20 images" in found.intervals[0].note


def test_an_estimate_without_clusters_is_a_constant():
    values = np.random.default_rng(5).normal(1, 1, 30)
    one = jackknifed(values.mean(), 5, {"images": {"": without(values)}})
    found = derived(np.multiply, one, Estimate(2.0, 1))
    assert ends(found) == pytest.approx(tuple(2 * end for end in ends(one)))


def test_clusters_that_do_not_belong_together_give_no_interval():
    nine, eight = (jackknifed(1, 5, {"images": {"": np.linspace(0, 1, n)}}) for n in (9, 8))
    found = derived(np.add, nine, eight)
    assert found.value == 2
    assert math.isnan(ends(found)[0])


def test_a_missing_number_carries_its_reason_and_what_it_excludes():
    found = missing("needs logits", excluded={"without logits": 9})
    assert math.isnan(found.value)
    assert (found.n, found.intervals[0].note, found.excluded) == (0, "needs logits", {"without logits": 9})
