"""Paired differences: planted ones are found, absent ones are not, whoever decides more often."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cuebench.metrics.triplet_shape_bias import shared_terms, terms
from cuebench.metrics.triplets import count, decide, enumerate_triplets, gram
from cuebench.statistics.clustered import Sums, variances
from cuebench.statistics.paired import SMALLEST, Number, paired
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
    found = [paired(*observers(rng, -1, -1, decided=(0.9, 0.4))) for _ in range(studies)]
    assert 0.015 <= np.mean([d.p <= 0.05 for d in found]) <= 0.09
    assert 0.91 <= np.mean([d.interval.low <= 0 <= d.interval.high for d in found]) <= 0.985
    assert {d.interval.kind for d in found} == {"two_way"}


def test_a_planted_difference_is_found_and_covered():
    rng = np.random.default_rng(2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    sd = math.sqrt(2 * (0.8**2 + 0.4**2))
    rates = [float(np.sum(weights / (1 + np.exp(-m - sd * nodes))) / weights.sum()) for m in (0.2, -1.0)]
    studies = 150
    found = [paired(*observers(rng, 0.2, -1.0)) for _ in range(studies)]
    planted = rates[0] - rates[1]
    assert np.mean([d.p <= 0.05 for d in found]) > 0.8
    assert 0.9 <= np.mean([d.interval.low <= planted <= d.interval.high for d in found]) <= 0.99
    assert np.mean([d.value for d in found]) == pytest.approx(planted, abs=0.02)
    by_images = [next(i for i in d.intervals if i.kind == "images") for d in found]
    assert np.mean([i.width for i in by_images]) < np.mean([d.interval.width for d in found])


def independent_ends(first, second, alpha):
    """The same interval from its formulas, with loops over sources and SciPy's distributions."""
    from scipy.stats import beta, norm, t

    def two_way(psi):
        parts, dfs = {}, {}
        for name, code in (*SOURCES.items(), ("pairs", CELLS)):
            sums = [psi[code == c].sum() for c in np.unique(code)]
            parts[name] = len(sums) / (len(sums) - 1) * sum(s * s for s in sums)
            dfs[name] = len(sums) - 1
        extra = {k: parts[k] - parts["pairs"] for k in SOURCES}
        v = parts["pairs"] + sum(max(0, e) for e in extra.values())
        doubt = parts["pairs"] ** 2 / dfs["pairs"]
        doubt += sum(parts[k] ** 2 / dfs[k] for k in SOURCES if extra[k] > 0)
        return v, max(min(dfs[k] for k in SOURCES), v * v / doubt if doubt else 0)

    numbers = []
    for sums in (first, second):
        hits, decided = sums.values.T
        p, n = hits.sum() / decided.sum(), decided.sum()
        psi = (hits - p * decided) / n
        v, df = two_way(psi)
        if 0 < p < 1:
            worth = p * (1 - p) / max(v, p * (1 - p) / n) * (norm.ppf(alpha / 2) / t.ppf(alpha / 2, df)) ** 2
        else:
            worth = min(n, *(len(np.unique(code[decided > 0])) for code in SOURCES.values()))
        low, high = beta.ppf([alpha / 2, 1 - alpha / 2], worth * p + 0.5, worth * (1 - p) + 0.5)
        numbers.append((p, 0.0 if p == 0 else low, 1.0 if p == 1 else high, psi, v))
    (pa, la, ua, psi_a, va), (pb, lb, ub, psi_b, vb) = numbers
    rho = (va + vb - two_way(psi_a - psi_b)[0]) / (2 * math.sqrt(va * vb)) if va * vb else 0.0
    behind = min(sum(psi**2) ** 2 / sum(psi**4) if any(psi) else 1 for psi in (psi_a, psi_b))
    rho = (1 - 1 / behind) * min(1, max(-1, rho))
    down = math.sqrt((pa - la) ** 2 - 2 * rho * (pa - la) * (ub - pb) + (ub - pb) ** 2)
    up = math.sqrt((ua - pa) ** 2 - 2 * rho * (ua - pa) * (pb - lb) + (pb - lb) ** 2)
    return pa - pb - down, pa - pb + up


@pytest.mark.parametrize(("biases", "decided"), [
    ((0.5, -1), (0.8, 0.8)), ((-3, -1), (0.9, 0.05)), ((-9, -1), (0.9, 0.05)), ((9, -9), (0.05, 0.9)),
])  # fmt: skip
def test_intervals_are_those_of_their_formulas(biases, decided):
    first, second = observers(np.random.default_rng(3), *biases, decided=decided)
    d = paired(first, second)
    assert (d.interval.low, d.interval.high) == pytest.approx(independent_ends(first, second, 0.05), abs=1e-6)
    # p is where an end of the interval of its own level reaches 0.
    low, high = independent_ends(first, second, d.p)
    assert d.p == SMALLEST or min(abs(low), abs(high)) < 1e-4


def of_decisions(hits):
    """The sums of an observer that decided about the first images only, for the shape (1) or the texture (0)."""
    counted = np.arange(len(CELLS)) < len(hits)
    shape = np.zeros(len(CELLS))
    shape[: len(hits)] = hits
    return Sums.of_ratio(Terms(shape, counted), CELLS, SOURCES)


def test_who_hardly_decides_is_not_compared():
    first, _ = observers(np.random.default_rng(4), 0.5, 0)
    for hits in ([1], [1, 1], [0, 1]):
        d = paired(first, of_decisions(hits))
        assert math.isnan(d.p)
        assert d.interval is None
        assert d.note == f"too few decided trials: {len(hits)} decided trial{'s' * (len(hits) > 1)}"
    same_texture = np.flatnonzero(SOURCES["texture_sources"] == 0)[:8]
    counted = np.isin(np.arange(240), same_texture)
    assert "decisions on 1 texture source" in paired(first, Sums.of_ratio(Terms(counted, counted), CELLS, SOURCES)).note
    assert paired(first, of_decisions([1, 0, 1, 1])).interval.width > 0.5


@pytest.mark.parametrize("second", [0, 1, 3, 10, 40])
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_few_decisions_give_no_false_alarms(second, rate):
    """The uncertainty of an observer does not vanish where all of its few decisions are alike."""
    rng = np.random.default_rng(5)
    logit = math.log(rate / (1 - rate))
    found = [paired(*observers(rng, logit, logit, decided=(0.7, second / 240))) for _ in range(250)]
    assert np.mean([d.p <= 0.05 for d in found]) <= 0.08
    compared = [d for d in found if not d.note]
    assert np.mean([d.interval.low <= 0 <= d.interval.high for d in compared] or [1]) >= 0.92


def test_one_decision_about_the_same_image_is_no_correlation():
    """One shape decision each, of 11 and of 171, both about the same image: nothing says that they differ."""
    hit = np.arange(240) == 5
    sums = [Sums.of_ratio(Terms(hit, np.arange(240) < n), CELLS, SOURCES) for n in (11, 171)]
    assert paired(*sums).p > 0.05


def test_p_and_interval_say_the_same_and_keep_their_bounds():
    rng = np.random.default_rng(6)
    for _ in range(150):
        biases, decided = rng.normal(0, 4, 2), rng.uniform(0.02, 1, 2)
        d = paired(*observers(rng, *biases, decided=decided))
        if d.interval:
            assert (d.p > 0.05) == (d.interval.low <= 0 <= d.interval.high)
            assert -1 <= d.interval.low <= d.value <= d.interval.high <= 1
            assert 0 < d.p <= 1


def test_people_who_differ_widen_the_interval():
    """Ten people, each with a bias of their own: another ten would give another mean."""
    rng = np.random.default_rng(7)
    person = np.repeat(np.arange(10), 240)
    bias = 1 / (1 + np.exp(-rng.normal(0, 2, 10)))
    hits = rng.random(2400) < bias[person]
    sources = {kind: np.tile(code, 10) for kind, code in SOURCES.items()}
    alone = Sums.of_ratio(Terms(hits, np.ones(2400)), np.tile(CELLS, 10), sources)
    people = replace(alone, sources={**sources, "subjects": person})
    model, _ = observers(rng, -1, -1)
    fixed, drawn = paired(alone, model), paired(people, model)
    assert (fixed.interval.kind, drawn.interval.kind) == ("two_way", "three_way")
    assert drawn.value == fixed.value
    assert drawn.interval.width > 1.5 * fixed.interval.width
    own = Number.of(people).ends("three_way", 0.05)
    assert own[1] - own[0] == pytest.approx(2 * 2.26 * bias.std(ddof=1) / math.sqrt(10), rel=0.3)
    assert drawn.components.parts()["subjects"] > 0.5 * drawn.variances.by_kind["three_way"]


def test_observers_are_paired_by_image_whatever_the_order():
    first, second = observers(np.random.default_rng(4), 0.5, -0.5)
    order = np.random.default_rng(5).permutation(240)[:200]
    fewer = Sums(second.images[order], second.values[order], second.statistic,
                 {k: v[order] for k, v in second.sources.items()})  # fmt: skip
    d = paired(first, fewer)
    assert d.n == 200
    assert d.second == pytest.approx(fewer.value)
    assert d.first == pytest.approx(first.only(fewer.images).value)
    again = paired(first.only(fewer.images), fewer)
    assert (again.value, again.p, again.intervals) == (d.value, d.p, d.intervals)
    assert "0 images in common" in paired(first, Sums(fewer.images + 9999, fewer.values, fewer.statistic)).note


def test_the_same_answers_differ_in_nothing():
    first, _ = observers(np.random.default_rng(6), 0, 0)
    d = paired(first, first)
    assert (d.value, d.p, d.note) == (0.0, 1.0, "the same answers")
    assert d.needed().times == math.inf


def test_pairing_narrows_what_a_shared_source_widens():
    rng = np.random.default_rng(7)
    first, second = observers(rng, -1, -1, shared=1.5, own=0.05)
    d = paired(first, second)
    alone = [variances(s.influence(), SOURCES).by_kind["two_way"] for s in (first, second)]
    assert d.variances.by_kind["two_way"] < 0.6 * sum(alone)


def test_images_without_sources():
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
    assert (d.interval.low, d.interval.high) == pytest.approx((each.mean() - half, each.mean() + half), abs=2e-3)


def test_p_of_two_accuracies_is_that_of_mcnemar():
    """Images without sources, right or wrong: the mid-p test of the discordant pairs is another implementation."""
    from scipy.stats import binom, binomtest

    rng = np.random.default_rng(12)
    for n, shift in ((60, 0.1), (200, 0.08), (400, 0.02)):
        hard = rng.random(n)
        a, b = (hard + rng.normal(0, 0.2, n) < c for c in (0.6 + shift, 0.6))
        only_a, differ = int((a & ~b).sum()), int((a != b).sum())
        expected = binomtest(only_a, differ).pvalue - binom.pmf(only_a, differ, 0.5)
        found = paired(*(Sums.of_ratio(Terms(x, np.ones(n)), np.arange(n)) for x in (a, b)))
        assert found.p == pytest.approx(expected, abs=0.02)


def test_what_is_needed_is_enough():
    """Without sources, so many more images give the power that was asked for."""
    rng = np.random.default_rng(9)

    def difference(n):
        answers = [rng.random(n) < p for p in (0.58, 0.5)]
        sums = [Sums.of_ratio(Terms(a, np.ones(n)), np.arange(n)) for a in answers]
        return paired(*sums)

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
    by_anchors = [paired(*(replace(sums, shared={}) for sums in pair)) for pair in pairs]
    assert 0.91 <= np.mean([d.interval.low <= 0 <= d.interval.high for d in by_all]) <= 0.99
    assert np.mean([a.interval.width > b.interval.width for a, b in zip(by_all, by_anchors)]) > 0.95
    for d in by_all:
        assert (d.p > 0.05) == (d.interval.low <= 0 <= d.interval.high)
    # Images that only one of them saw leave the comparison with all that they take part in.
    first, second = pairs[0]
    fewer = paired(first, second.only(np.arange(40)))
    assert (fewer.n, fewer.value) == (40, first.only(np.arange(40)).value - second.only(np.arange(40)).value)
