"""TAV and TID: the golden values, an independent implementation, every degenerate case, and counts that add up."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import softmax
from cuebench.metrics.texture_association import (
    associated_texture,
    association_intervals,
    count,
    resampled,
    texture_association,
    texture_identity,
    top_pairs,
)
from cuebench.metrics.texture_confidence import ConfidenceHistogram, texture_confidence, top1
from cuebench.metrics.texturedness import (
    similarity_with_other_pictures,
    texturedness_difference,
    texturedness_estimate,
)
from cuebench.protocols.texture_association.measure import TextureAnswers

CLASSES = ("zebra", "tiger", "window_screen", "crossword", "maze", "bib", "ladybug", "envelope", "never")
TEXTURES = ("striped", "grid", "dotted", "flat")
ANSWERS = (
    {"zebra": 8, "tiger": 2},
    {"window_screen": 5, "crossword": 3, "zebra": 1, "maze": 1},
    {"bib": 4, "ladybug": 4, "window_screen": 2},
    {"envelope": 10},
)
COUNTS = np.array([[row.get(c, 0) for c in CLASSES] for row in ANSWERS])
GOLDEN = {
    ("striped", "zebra"): 0.404111,
    ("striped", "tiger"): 0.151871,
    ("grid", "zebra"): 0.003644,
    ("grid", "window_screen"): 0.088956,
    ("dotted", "window_screen"): 0.016004,
    ("grid", "crossword"): 0.131452,
    ("grid", "maze"): 0.043817,
    ("dotted", "bib"): 0.197076,
    ("dotted", "ladybug"): 0.197076,
    ("flat", "envelope"): 1.0,
}


def slow(counts):
    """Follow equations 1 and 2 of the paper with dictionaries and loops."""
    rows = {i: {j: n for j, n in enumerate(row) if n} for i, row in enumerate(counts.tolist())}
    classes = sorted({j for row in rows.values() for j in row})
    k, c = sum(bool(row) for row in rows.values()), len(classes)
    columns = {j: {i: row[j] for i, row in rows.items() if j in row} for j in classes}

    def certainty(cells, ways):
        total = sum(cells.values())
        return 1 + sum(n / total * math.log(n / total, ways) for n in cells.values()) if ways > 1 else 1.0

    out = np.zeros(counts.shape)
    for i, row in rows.items():
        for j, n in row.items():
            pt, po = n / sum(row.values()), n / sum(columns[j].values())
            out[i, j] = pt * certainty(row, c) * po * certainty(columns[j], k)
    return out


def answer(**shares):
    return np.array([shares.get(c, 0.0) for c in CLASSES])


def test_golden_values_of_the_tav():
    tav = texture_association(COUNTS)
    for (texture, label), value in GOLDEN.items():
        assert tav[TEXTURES.index(texture), CLASSES.index(label)] == pytest.approx(value, abs=1e-6)
    assert np.count_nonzero(tav) == len(GOLDEN)
    assert tav.shape == COUNTS.shape


def test_golden_values_of_the_tid():
    tav = texture_association(COUNTS)
    index, similarity = texture_identity(np.stack([answer(zebra=0.7, maze=0.3), answer(bib=0.5, envelope=0.5)]), tav)
    assert [TEXTURES[i] for i in index] == ["striped", "flat"]
    assert similarity == pytest.approx([0.860391, 0.707107], abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_tav_agrees_with_an_independent_implementation(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 3, (7, 19)))
    counts[rng.integers(7)] = 0
    assert np.allclose(texture_association(counts), slow(counts), atol=1e-12)


def test_tav_of_many_tables_at_once():
    tables = np.random.default_rng(0).poisson(1.0, (5, 4, 6))
    assert np.allclose(texture_association(tables), [texture_association(t) for t in tables])


def test_tid_agrees_with_an_independent_implementation():
    rng = np.random.default_rng(1)
    tav = rng.random((5, 12)) * (rng.random((5, 12)) < 0.4)
    p = rng.dirichlet(np.full(12, 0.3), 40)
    index, similarity = texture_identity(p, tav)
    for row, i, s in zip(p, index, similarity):
        cosines = [np.dot(row, t) / (np.linalg.norm(row) * np.linalg.norm(t)) if t.any() else -1 for t in tav]
        assert (i, s) == (int(np.argmax(cosines)), pytest.approx(max(cosines)))


def test_pieces_of_a_large_table_agree_with_the_whole():
    rng = np.random.default_rng(2)
    p, tav = rng.dirichlet(np.ones(6), 9000), rng.random((3, 6))
    whole, parts = texture_identity(p, tav), [texture_identity(p[i : i + 977], tav) for i in range(0, 9000, 977)]
    assert np.array_equal(whole.texture, np.concatenate([q.texture for q in parts]))
    assert np.allclose(whole.similarity, np.concatenate([q.similarity for q in parts]), atol=1e-12)


# ------------------------------------------------------------------------------------------------- degenerate cases


def test_one_texture():
    """Nothing is uncertain about which texture a class belongs to: OH = 0; TH counts as ever."""
    tav = texture_association(np.array([[3, 1, 0]]))
    certainty = 1 + 0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)
    assert tav[0] == pytest.approx([0.75 * certainty, 0.25 * certainty, 0])


def test_one_class():
    """Nothing is uncertain about the answer: TH = 0; with equal textures OH = 1, so nothing is tied to the class."""
    assert texture_association(np.array([[4], [4]])).ravel() == pytest.approx([0, 0])
    assert texture_association(np.array([[6], [2]])).ravel() == pytest.approx(slow(np.array([[6], [2]])).ravel())
    assert texture_association(np.array([[5]])).tolist() == [[1.0]]


@pytest.mark.parametrize("k", range(2, 70))
def test_a_class_that_all_textures_are_equally_often_answered_with_has_no_association(k):
    """1 − k·(1/k)·log k / log k is ±1e-16 for most k: rounding made associations, negative ones too."""
    for counts in (np.full((k, 1), 1), np.full((k, 3), 7)):
        assert not texture_association(counts).any()
        assert set(associated_texture(texture_association(counts)).tolist()) == {-1}


def test_equal_textures_are_told_apart_by_their_order_not_by_rounding():
    """The second is larger by 1e-13 of itself, more than any CPU rounds by, then by 1e-11, which is a difference."""
    for less, chosen in ((1e-13, 0), (1e-11, 1)):
        answers = np.array([[0.5 - less / 4, 0.5 + less / 4]])
        assert texture_identity(answers, np.eye(2)).texture.tolist() == [chosen]
        matrix = np.array([[0.5 - less / 2, 0.3], [0.5, 0.2]])
        assert associated_texture(matrix).tolist() == [chosen, 0]
        assert [p.texture for p in top_pairs(matrix, 1)] == [chosen]


def test_a_texture_never_answered_and_an_empty_class():
    counts = np.array([[4, 0, 0], [0, 0, 0], [1, 3, 0]])
    tav = texture_association(counts)
    assert not tav[1].any()
    assert not tav[:, 2].any()
    assert np.allclose(tav[[0, 2]], texture_association(counts[[0, 2]])), "an empty texture must not dilute the others"
    assert texture_identity(np.array([[0.2, 0.2, 0.6]]), tav).texture.tolist() == [2]


def test_nothing_at_all():
    assert not texture_association(np.zeros((3, 4))).any()
    index, similarity = texture_identity(np.full((2, 4), 0.25), np.zeros((3, 4)))
    assert (index.tolist(), similarity.tolist()) == ([-1, -1], [0, 0])
    assert texture_association(np.zeros((0, 4))).shape == (0, 4)
    assert texture_identity(np.full((1, 4), 0.25), np.zeros((0, 4))).texture.tolist() == [-1]
    assert len(texture_identity(np.zeros((0, 4)), np.ones((2, 4))).texture) == 0


def test_an_answer_without_a_class_of_any_texture():
    tav = texture_association(COUNTS)
    assert texture_identity(answer(never=1.0), tav).texture.tolist() == [-1]


def test_values_stay_between_0_and_1():
    tables = np.random.default_rng(3).poisson(0.4, (200, 5, 8))
    tav = texture_association(tables)
    assert tav.min() >= -1e-12
    assert tav.max() <= 1


# ------------------------------------------------------------------------------------------------------- bad input


def test_logits_are_recognised():
    logits = np.random.default_rng(0).normal(0, 3, (5, len(CLASSES)))
    with pytest.raises(UserError, match="look like logits") as error:
        texture_identity(logits, texture_association(COUNTS))
    assert "softmax" in error.value.hint
    with pytest.raises(UserError, match="sums to"):
        texture_identity(np.full((1, 9), 0.5), texture_association(COUNTS))
    texture_identity(softmax(logits).astype(np.float16), texture_association(COUNTS))


def test_other_mistakes():
    with pytest.raises(UserError, match="different classes"):
        texture_identity(np.full((2, 3), 1 / 3), np.ones((2, 4)))
    with pytest.raises(UserError, match="not negative"):
        texture_association(np.array([[1.0, -1.0]]))
    with pytest.raises(UserError, match="matrix"):
        texture_association(np.array([1, 2]))
    with pytest.raises(UserError, match="NaN"):
        texture_identity(np.array([[np.nan, 1.0]]), np.ones((1, 2)))
    with pytest.raises(UserError, match="below 2 and 3"):
        count(np.array([0]), np.array([3]), 2, 3)


# ------------------------------------------------------------------------------------------- counting and intervals


def test_counts_of_pieces_add_up():
    rng = np.random.default_rng(4)
    textures, logits = rng.integers(0, 4, 500), rng.normal(0, 2, (500, 9))
    whole, pieces = TextureAnswers.empty(4, 9), TextureAnswers.empty(4, 9)
    whole.add(textures, logits)
    for part in (slice(0, 123), slice(123, 500)):
        pieces.add(textures[part], logits[part])
    assert np.array_equal(pieces.counts, whole.counts)
    assert np.array_equal(pieces.overall.counts, whole.overall.counts)
    assert pieces.overall.total == pytest.approx(whole.overall.total)
    assert whole.counts.sum() == 500
    assert np.array_equal(whole.counts[2], np.bincount(logits[textures == 2].argmax(1), minlength=9))


def test_a_million_answers_need_no_more_memory_than_a_few():
    rng = np.random.default_rng(5)
    piece, textures = rng.normal(size=(5000, 40)).astype(np.float32), rng.integers(0, 20, 5000)

    def peak(pieces):
        answers = TextureAnswers.empty(20, 40)
        tracemalloc.start()
        for _ in range(pieces):
            answers.add(textures, piece)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used, answers.counts.sum()

    few, _ = peak(2)
    many, counted = peak(200)
    assert counted == 1_000_000
    assert many < 1.2 * few


def test_confidence():
    logits = np.log(np.array([[0.72, 0.18, 0.1], [0.01, 0.97, 0.02]]))
    classes, confidence = top1(logits)
    assert classes.tolist() == [0, 1]
    assert confidence == pytest.approx([0.72, 0.97])
    histogram = ConfidenceHistogram.empty(10)
    histogram.add(confidence)
    histogram.add(np.array([1.0]))
    assert histogram.counts.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0, 2]
    assert (histogram.n, histogram.sure) == (3, 2)
    values = np.array([0.72, 0.97, 1.0])
    assert histogram.mean == pytest.approx(values.mean())
    assert histogram.variance_of_mean == pytest.approx(values.var(ddof=1) / 3)
    assert texture_confidence(confidence) == pytest.approx(0.845)
    assert math.isnan(texture_confidence(np.zeros(0)))
    with pytest.raises(UserError, match="0 … 1"):
        histogram.add(np.array([1.7]))


def test_top_pairs_are_sorted_and_leave_out_what_is_not_tied():
    pairs = top_pairs(texture_association(COUNTS), 50)
    assert len(pairs) == len(GOLDEN)
    assert [TEXTURES[p.texture] for p in pairs[:2]] == ["flat", "striped"]
    assert [p.value for p in pairs] == sorted((p.value for p in pairs), reverse=True)


def test_resamples_keep_the_pictures_of_each_texture_and_follow_the_seed():
    first, again, other = (np.concatenate(list(resampled(COUNTS, seed=s, resamples=60))) for s in (0, 0, 1))
    assert first.shape == (60, *COUNTS.shape)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (first[:, 3, 7] == 1).all(), "a texture with one answer cannot vary"
    assert 0.2 < np.median(first[:, 0, 0]) < 0.6


@pytest.mark.parametrize("pictures", [20, 100])
def test_intervals_cover_what_as_many_other_pictures_give(pictures):
    """Of pairs that are named beforehand; half of the textures are answered with few classes, half with all."""
    rng = np.random.default_rng(6)
    shares = np.stack([rng.dirichlet(np.full(60, 0.06 if i % 2 else 0.5)) for i in range(16)])
    drawn = np.stack([rng.multinomial(pictures, s, size=600) for s in shares], axis=1)
    tavs = texture_association(drawn)
    expected = tavs.mean(axis=0)
    at = tuple(zip(*[(p.texture, p.label) for p in top_pairs(expected, 8)], strict=True))
    hits = []
    for k in range(60):
        draws = np.concatenate([t[:, at[0], at[1]] for t in resampled(drawn[k], seed=k, resamples=200)])
        found = association_intervals(tavs[k][at], draws, np.full(8, pictures))
        hits += [i.low <= value <= i.high for i, value in zip(found, expected[at])]
    assert 0.92 < np.mean(hits) < 0.99


def test_pictures_that_are_all_alike_leave_an_interval_open():
    (alike,) = association_intervals(np.array([1.0]), np.ones((50, 1)), np.array([10]))
    assert math.isnan(alike.low)
    assert "all alike" in alike.note


def test_texturedness_with_other_pictures_is_that_of_the_resampled_associations():
    logits = np.random.default_rng(1).normal(size=(40, len(CLASSES))) * 3
    probabilities = softmax(logits)
    ours = similarity_with_other_pictures(probabilities, COUNTS, seed=2, resamples=30)
    used = COUNTS.any(axis=0)
    every = []
    for tav in np.concatenate(list(resampled(COUNTS[:, used], seed=2, resamples=30))):
        whole = np.zeros(COUNTS.shape)
        whole[:, used] = tav
        every.append(texture_identity(probabilities, whole).similarity.mean())
    assert ours == pytest.approx(every, abs=1e-6)


def test_the_interval_of_texturedness_adds_photographs_and_pictures():
    rng = np.random.default_rng(2)
    photographs, pictures = rng.random(200), rng.normal(0.5, 0.04, size=100)
    alone, both = texturedness_estimate(photographs), texturedness_estimate(photographs, pictures)
    error = math.sqrt(photographs.var(ddof=1) / 200 + pictures.var(ddof=1))
    assert both.value == alone.value == pytest.approx(photographs.mean())
    assert both.intervals[0].width == pytest.approx(2 * 1.96 * error, rel=0.02)
    assert both.intervals[0].width > 1.5 * alone.intervals[0].width
    difference = texturedness_difference(photographs, photographs[:50], pictures)
    error = math.sqrt(error**2 + photographs[:50].var(ddof=1) / 50)
    assert difference.intervals[0].width == pytest.approx(2 * 1.96 * error, rel=0.02)
