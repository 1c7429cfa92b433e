"""The bootstrap: exactly against explicit sums, statistically against a plain one, and its edges."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

from brute_force import bootstrap_ratio, quantile
from cuebench.errors import UserError
from cuebench.statistics import intervals
from cuebench.statistics.estimates import mean_of_subjects, ratio_estimates
from cuebench.statistics.intervals import (
    KINDS,
    Clusters,
    percentile,
    ratio_intervals,
    resampled_sums,
    weight_parts,
    weights,
)
from cuebench.statistics.ratios import Terms


def made(seed=0, shapes=14, textures=9, trials=160):
    """Trials whose outcome depends on both sources, so that the kinds of interval differ."""
    rng = np.random.default_rng(seed)
    s, t = rng.integers(shapes, size=trials), rng.integers(textures, size=trials)
    lean = rng.normal(size=shapes)[s] + 1.5 * rng.normal(size=textures)[t] - 0.5
    decided = rng.random(trials) < 0.7
    shape = decided & (rng.random(trials) < 1 / (1 + np.exp(-lean)))
    return Terms(shape, decided), Clusters(np.arange(trials), s, t)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_a_plain_bootstrap(kind):
    terms, clusters = made()
    found = ratio_intervals([terms], clusters, kind, resamples=8000)[0]
    rows = clusters.shape_sources if kind == "two_way" else clusters.of(kind)
    draws = bootstrap_ratio(
        *(t.tolist() for t in terms), rows.tolist(), clusters.texture_sources.tolist(), 1500, 11, kind == "two_way"
    )
    width = found.high - found.low
    assert found.low == pytest.approx(quantile(draws, 0.025), abs=0.1 * width)
    assert found.high == pytest.approx(quantile(draws, 0.975), abs=0.1 * width)


@pytest.mark.parametrize("kind", ["shape_sources", "texture_sources", "two_way"])
def test_sums_equal_an_explicit_loop_over_trials_with_the_same_weights(kind):
    terms, clusters = made(trials=60)
    columns = np.column_stack([*terms, np.random.default_rng(0).normal(size=60)])
    found = resampled_sums(columns, clusters, kind, seed=5, resamples=20)
    ways = ["shape_sources", "texture_sources"] if kind == "two_way" else [kind]
    for b in range(20):
        total = np.zeros(3)
        for i in range(60):
            weight = 1
            for way in ways:
                names = sorted(set(clusters.of(way).tolist()))
                weight *= int(weights(way, len(names), 5, 20)[b, names.index(clusters.of(way)[i])])
            total += weight * columns[i]
        np.testing.assert_allclose(found[b], total, atol=1e-9)


def test_weights_are_multinomial():
    w = weights("shape_sources", 12, 3, 20_000).astype(float)
    assert (w.sum(axis=1) == 12).all()
    # Multinomial(12, 1/12): variance 11/12, covariance −1/12.
    covariance = np.cov(w.T)
    np.testing.assert_allclose(np.diag(covariance), 11 / 12, atol=0.05)
    np.testing.assert_allclose(covariance[0, 1:], -1 / 12, atol=0.03)


def test_streams_are_independent_of_each_other():
    # With as many shapes as textures, one stream for both would give every shape the weight of "its" texture.
    u, v = (weights(stream, 12, 3, 20_000).astype(float) for stream in ("shape_sources", "texture_sources"))
    correlation = [np.corrcoef(u[:, i], v[:, i])[0, 1] for i in range(12)]
    np.testing.assert_allclose(correlation, 0, atol=4 / math.sqrt(20_000))


def test_drawing_outcomes_and_drawing_images_have_the_same_distribution(monkeypatch):
    terms, clusters = made(trials=400)
    few = ratio_intervals([terms], clusters, "images", resamples=20_000)[0]
    monkeypatch.setattr(intervals, "_FEW", 0)
    every = ratio_intervals([terms], clusters, "images", resamples=20_000)[0]
    assert few.low != every.low
    assert few.low == pytest.approx(every.low, abs=0.004)
    assert few.high == pytest.approx(every.high, abs=0.004)


def test_images_interval_of_a_proportion_is_the_binomial_one():
    rng = np.random.default_rng(4)
    hit = rng.random(1200) < 0.3
    found = ratio_intervals([Terms(hit, np.ones(1200, bool))], Clusters(np.arange(1200), hit, hit), "images")[0]
    p, se = hit.mean(), math.sqrt(hit.mean() * (1 - hit.mean()) / 1200)
    assert found.low == pytest.approx(p - 1.96 * se, abs=0.002)
    assert found.high == pytest.approx(p + 1.96 * se, abs=0.002)


def test_several_answers_to_one_image_are_resampled_together():
    rng = np.random.default_rng(5)
    image = np.repeat(np.arange(100), 10)
    hit = np.repeat(rng.random(100) < 0.5, 10)  # ten people who always agree carry the information of one
    terms = Terms(hit, np.ones(1000, bool))
    found = ratio_intervals([terms], Clusters(image, image, image), "images")[0]
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(100), rel=0.1)


def test_same_seed_same_bytes_in_any_order_and_another_seed_differs():
    terms, clusters = made()
    first = {k: ratio_intervals([terms], clusters, k, seed=1, resamples=500) for k in KINDS}
    intervals._kept.clear()
    again = {k: ratio_intervals([terms, terms], clusters, k, seed=1, resamples=500)[1:] for k in reversed(KINDS)}
    assert first == again
    assert all(ratio_intervals([terms], clusters, k, seed=2, resamples=500) != first[k] for k in KINDS)


def test_the_names_of_clusters_do_not_matter_but_their_order_does_not_change_either():
    terms, clusters = made()
    named = Clusters(*(np.char.add("s", np.char.zfill(c.astype(str), 4)) for c in
                       (clusters.images, clusters.shape_sources, clusters.texture_sources)))  # fmt: skip
    for kind in KINDS:
        assert ratio_intervals([terms], clusters, kind) == ratio_intervals([terms], named, kind)


def test_no_decided_trial_is_nan_with_a_reason():
    _, clusters = made(trials=20)
    nothing = Terms(np.zeros(20, bool), np.zeros(20, bool))
    for kind in KINDS:
        found = ratio_intervals([nothing], clusters, kind, resamples=50)[0]
        assert math.isnan(found.low)
        assert found.kind == kind
        assert found.note == "undefined in every resample"
    (estimate,) = ratio_estimates([nothing], clusters, KINDS, resamples=50)
    assert math.isnan(estimate.value)
    assert estimate.n == 0
    assert [i.kind for i in estimate.intervals] == list(KINDS)
    assert {i.note for i in estimate.intervals} == {"no trial in the denominator"}


def test_no_trial_at_all():
    empty = np.zeros(0, bool)
    found = ratio_intervals([Terms(empty, empty)], Clusters(empty, empty, empty), "images")[0]
    assert math.isnan(found.high)
    assert found.note == "0 images: nothing to resample"


def test_one_cluster_is_nan_with_a_reason():
    terms, clusters = made(textures=1)
    notes = {k: ratio_intervals([terms], clusters, k, resamples=50)[0].note for k in KINDS}
    reason = "1 texture source: nothing to resample"
    assert notes == {"images": "", "shape_sources": "", "texture_sources": reason, "two_way": reason}


def test_resamples_without_a_decided_trial_are_left_out_and_counted():
    den = np.array([True, False, False])
    found = ratio_intervals([Terms(den, den)], Clusters(np.arange(3), den, den), "images", resamples=2000)[0]
    assert (found.low, found.high) == (1, 1)
    lost = int(found.note.split()[2])
    assert lost / 2000 == pytest.approx((2 / 3) ** 3, abs=0.05)


def test_certain_observer_has_a_point_interval():
    ones = np.ones(50, bool)
    found = ratio_intervals([Terms(ones, ones)], Clusters(np.arange(50), ones, ones), "images")[0]
    assert (found.low, found.high, found.note) == (1, 1, "")


def test_mean_of_subjects_weighs_everyone_the_same():
    subject = np.repeat(["a", "b", "c", "d"], [10, 30, 20, 5])
    den = np.repeat([True, True, True, False], [10, 30, 20, 5])
    num = den & np.concatenate([np.arange(10) < 5, np.arange(30) < 27, np.arange(20) < 4, np.ones(5, bool)])
    estimate = mean_of_subjects(Terms(num, den), subject)
    assert estimate.value == pytest.approx((0.5 + 0.9 + 0.2) / 3)
    assert (estimate.n, estimate.excluded) == (3, {"subjects without a ratio": 1})
    (interval,) = estimate.intervals
    # Three subjects have 27 equally likely draws: all the same one with probability 1/27 > 2.5 %.
    assert (interval.kind, interval.low, interval.high) == ("subjects", pytest.approx(0.2), pytest.approx(0.9))
    single = mean_of_subjects(Terms(num[:10], den[:10]), subject[:10])
    assert single.intervals[0].note == "1 subject: nothing to resample"


def test_subjects_need_their_column():
    terms, clusters = made()
    with pytest.raises(UserError, match="no subjects to resample"):
        ratio_intervals([terms], clusters, "subjects")


def test_percentile_of_a_level():
    draws = np.arange(101.0)
    found = percentile(draws, "images", 0.9)
    assert (found.low, found.high, found.level) == (pytest.approx(5), pytest.approx(95), 0.9)


@pytest.mark.parametrize("clusters", [7, 1000, 2500])
def test_weights_drawn_in_parts_are_the_same_weights(clusters, monkeypatch):
    whole = weights("images", clusters, 3, 50)
    kept = np.concatenate(list(weight_parts("images", clusters, 3, 50, 20)))
    monkeypatch.setattr(intervals, "KEPT", 0)
    drawn = np.concatenate([part.copy() for part in weight_parts("images", clusters, 3, 50, 20)])
    np.testing.assert_array_equal(kept, whole)
    np.testing.assert_array_equal(drawn, whole)
    assert (whole.sum(axis=1) == clusters).all()


def test_weights_are_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(intervals, "KEPT", 10_000)
    monkeypatch.setattr(intervals, "_kept", OrderedDict())
    for clusters in range(10, 21):
        weights("images", clusters, 0, 100)
    assert sum(kept.nbytes for kept in intervals._kept.values()) <= 10_000
    assert weights("images", 20, 0, 100) is weights("images", 20, 0, 100)
    weights("images", 51, 0, 100)  # more than half
    assert ("images", 51, 0, 100) not in intervals._kept
