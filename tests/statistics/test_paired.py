"""Paired differences: planted ones are found, absent ones are not, whoever decides more often."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cuebench.metrics.triplet_shape_bias import shared_terms, terms
from cuebench.metrics.triplets import count, decide, enumerate_triplets, gram
from cuebench.statistics.clustered import Sums, variances
from cuebench.statistics.paired import paired, sign_flip_p
from cuebench.statistics.ratios import Terms

SHAPES, TEXTURES = 30, 14
RNG = np.random.default_rng(0)
CELLS = RNG.choice(SHAPES * TEXTURES, 240, replace=False)
SOURCES = {"shape_sources": CELLS // TEXTURES, "texture_sources": CELLS % TEXTURES}


def observers(rng, first, second, *, decided=(0.8, 0.8), shared=0.8, own=0.4):
    """Return the sums of two observers with these logits, and random effects of sources, shared and their own."""
    common = [rng.normal(0, shared, n) for n in (SHAPES, TEXTURES)]
    made = []
    for logit, share in zip((first, second), decided):
        effects = [c + rng.normal(0, own, len(c)) for c in common]
        p = 1 / (1 + np.exp(-logit - effects[0][SOURCES["shape_sources"]] - effects[1][SOURCES["texture_sources"]]))
        counted = rng.random(len(p)) < share
        made.append(Sums.of_ratio(Terms((rng.random(len(p)) < p) & counted, counted), CELLS, SOURCES))
    return made


def test_type_one_errors_are_as_rare_as_they_should_be():
    """Equal biases, but one observer decides twice as often: what breaks tests that only exchange answers."""
    rng = np.random.default_rng(1)
    studies = 300
    found = [paired(*observers(rng, -1, -1, decided=(0.9, 0.4)), flips=299) for _ in range(studies)]
    assert 0.015 <= np.mean([d.p <= 0.05 for d in found]) <= 0.09
    assert 0.91 <= np.mean([d.interval.low <= 0 <= d.interval.high for d in found]) <= 0.985
    assert {d.interval.kind for d in found} == {"two_way"}


def test_a_planted_difference_is_found_and_covered():
    rng = np.random.default_rng(2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    sd = math.sqrt(2 * (0.8**2 + 0.4**2))
    rates = [float(np.sum(weights / (1 + np.exp(-m - sd * nodes))) / weights.sum()) for m in (0.2, -1.0)]
    studies = 150
    found = [paired(*observers(rng, 0.2, -1.0), flips=199) for _ in range(studies)]
    planted = rates[0] - rates[1]
    assert np.mean([d.p <= 0.05 for d in found]) > 0.8
    assert 0.9 <= np.mean([d.interval.low <= planted <= d.interval.high for d in found]) <= 0.99
    assert np.mean([d.value for d in found]) == pytest.approx(planted, abs=0.02)
    by_images = [next(i for i in d.intervals if i.kind == "images") for d in found]
    assert np.mean([i.width for i in by_images]) < np.mean([d.interval.width for d in found])


def test_all_assignments_of_signs_are_counted_where_there_are_few():
    """The same p from a loop over all signs that recomputes every variance from its definition."""
    rng = np.random.default_rng(3)
    shape, texture = rng.integers(0, 9, 60), rng.integers(0, 6, 60)
    sources = {"shape_sources": shape, "texture_sources": texture}
    difference = rng.normal(0, 1, 60)
    difference -= difference.mean()
    value = 6.0
    part = difference + value / 60

    def statistic(signs):
        moved = part * signs
        total = moved.sum()
        return total**2 / variances(moved - total / 60, sources).by_kind["two_way"]

    observed = value**2 / variances(difference, sources).by_kind["two_way"]
    all_signs = [np.array(signs)[texture] for signs in product((1, -1), repeat=6)]
    expected = np.mean([statistic(signs) >= observed * (1 - 1e-9) for signs in all_signs])
    assert sign_flip_p(difference, value, sources, "texture_sources") == pytest.approx(expected)
    assert 0 < expected < 1


def test_observers_are_paired_by_image_whatever_the_order():
    first, second = observers(np.random.default_rng(4), 0.5, -0.5)
    order = np.random.default_rng(5).permutation(240)[:200]
    fewer = Sums(second.images[order], second.values[order], second.statistic,
                 {k: v[order] for k, v in second.sources.items()})  # fmt: skip
    d = paired(first, fewer, flips=99)
    assert d.n == 200
    assert d.second == pytest.approx(fewer.value)
    assert d.first == pytest.approx(first.only(fewer.images).value)
    again = paired(first.only(fewer.images), fewer, flips=99)
    assert (again.value, again.p, again.intervals) == (d.value, d.p, d.intervals)
    assert "0 images in common" in paired(first, Sums(fewer.images + 9999, fewer.values, fewer.statistic)).note


def test_the_same_answers_differ_in_nothing():
    first, _ = observers(np.random.default_rng(6), 0, 0)
    d = paired(first, first, flips=99)
    assert (d.value, d.p, d.note) == (0.0, 1.0, "the same answers")
    assert d.needed().times == math.inf


def test_pairing_narrows_what_a_shared_source_widens():
    rng = np.random.default_rng(7)
    first, second = observers(rng, -1, -1, shared=1.5, own=0.05)
    d = paired(first, second, flips=99)
    alone = [variances(s.influence(), SOURCES).by_kind["two_way"] for s in (first, second)]
    assert d.variances.by_kind["two_way"] < 0.6 * sum(alone)


def test_many_images_without_sources_are_exchanged_in_groups():
    rng = np.random.default_rng(8)
    n = 5_000
    base = rng.random(n)
    make = lambda p: Sums.of_ratio(Terms(base < p, np.ones(n)), np.arange(n))  # noqa: E731
    assert paired(make(0.51), make(0.50)).p < 0.01, "the same images: 50 answers more and none fewer"
    first, second = (Sums.of_ratio(Terms(rng.random(n) < 0.5, np.ones(n)), np.arange(n)) for _ in range(2))
    assert paired(first, second).p > 0.01


def test_the_difference_of_proportions_has_the_textbook_error():
    rng = np.random.default_rng(11)
    a, b = rng.random(800) < 0.6, rng.random(800) < 0.4
    d = paired(*(Sums.of_ratio(Terms(x, np.ones(800)), np.arange(800)) for x in (a, b)))
    each = a.astype(int) - b.astype(int)
    half = 1.963 * each.std(ddof=1) / math.sqrt(800)
    assert (d.interval.low, d.interval.high) == pytest.approx((each.mean() - half, each.mean() + half), abs=1e-5)


def test_p_of_two_accuracies_is_that_of_mcnemar():
    """Images without sources, right or wrong: the exact test of the discordant pairs is another implementation."""
    from scipy.stats import binomtest

    rng = np.random.default_rng(12)
    for n, shift in ((60, 0.1), (200, 0.08), (400, 0.02)):
        hard = rng.random(n)
        a, b = (hard + rng.normal(0, 0.2, n) < c for c in (0.6 + shift, 0.6))
        expected = binomtest(int((a & ~b).sum()), int((a != b).sum())).pvalue
        found = paired(*(Sums.of_ratio(Terms(x, np.ones(n)), np.arange(n)) for x in (a, b)))
        assert found.p == pytest.approx(expected, abs=0.02)


def test_what_is_needed_is_enough():
    """Without sources, so many more images give the power that was asked for."""
    rng = np.random.default_rng(9)

    def difference(n):
        answers = [rng.random(n) < p for p in (0.58, 0.5)]
        sums = [Sums.of_ratio(Terms(a, np.ones(n)), np.arange(n)) for a in answers]
        return paired(*sums, flips=499)

    d = difference(200)
    variance = (0.58 * 0.42 + 0.25) / 200
    exact = 200 * variance * ((1.96 + 0.8416) / 0.08) ** 2
    total = d.n + d.needed().images
    assert total == pytest.approx(exact * (0.08 / d.value) ** 2, rel=0.15)
    assert d.needed().times == pytest.approx(total / d.n, rel=1e-6)
    power = np.mean([difference(round(exact)).p <= 0.05 for _ in range(120)])
    assert 0.68 <= power <= 0.92
    assert d.needed(comparisons=10).images > d.needed().images


def test_more_images_do_not_help_where_the_sources_differ():
    """Every image of a texture is answered alike: the textures are all there is."""
    rng = np.random.default_rng(10)
    by_texture = rng.random(TEXTURES)
    texture = SOURCES["texture_sources"]
    first, second = (Sums.of_ratio(Terms((by_texture < p)[texture], np.ones(240)), CELLS, SOURCES) for p in (0.7, 0.5))
    d = paired(first, second)
    assert d.needed().images == math.inf
    assert 1 < d.needed().times < math.inf


def test_sources_of_triplets_count_with_all_trials_in_which_they_appear():
    """Two networks with features of the same size: the interval holds 0, and p is small where it does not."""
    shape, texture = (a.ravel() for a in np.meshgrid(np.arange(8), np.arange(8), indexing="ij"))
    found = enumerate_triplets(shape, texture)
    rng, sources = np.random.default_rng(0), {"shape_sources": shape, "texture_sources": texture}

    def network():
        features = rng.normal(size=(8, 30))[shape] + rng.normal(size=(8, 30))[texture] + rng.normal(size=(64, 30))
        tally = count(decide(gram(features, found)), found)
        return Sums.of_ratio(terms(tally), np.arange(64), sources, shared_terms(tally))

    pairs = [(network(), network()) for _ in range(150)]
    by_all = [paired(*pair) for pair in pairs]
    by_anchors = [paired(*(replace(sums, shared={}) for sums in pair), flips=99) for pair in pairs]
    assert 0.91 <= np.mean([d.interval.low <= 0 <= d.interval.high for d in by_all]) <= 0.985
    assert np.mean([a.interval.width > b.interval.width for a, b in zip(by_all, by_anchors)]) > 0.95
    for d in by_all:
        assert (d.p > 0.05) == (d.interval.low <= 0 <= d.interval.high)
        assert d.by == "two_way"
    # Images that only one of them saw leave the comparison with all that they take part in.
    first, second = pairs[0]
    fewer = paired(first, second.only(np.arange(40)))
    assert (fewer.n, fewer.value) == (40, first.only(np.arange(40)).value - second.only(np.arange(40)).value)
