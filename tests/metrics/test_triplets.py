"""Triplets: golden counts from the published names, decisions against a loop that is written another way."""

from __future__ import annotations

import csv
from itertools import product

import numpy as np
import pytest
from scipy.spatial import distance as scipy_distance

from cuebench.errors import UserError
from cuebench.metrics import triplet_bias_gain, triplet_shape_bias
from cuebench.metrics.triplet_shape_bias import shared_terms
from cuebench.metrics.triplets import SIMILARITIES, balanced_draws, count, decide, enumerate_triplets, gram
from cuebench.statistics.ratios import total
from cuebench.stimuli.readers.cue_conflict import parse


@pytest.fixture(scope="session")
def published(shared):
    """The sources of the 1,200 conflict images, from the names in a public response file."""
    file = next((shared / "cue_conflict" / "responses").glob("*resnet50_session-1.csv"))
    names = [row["imagename"].rpartition("_")[2].removesuffix(".png") for row in csv.DictReader(file.open())]
    conflict = [s for s in map(parse, names) if s.shape != s.texture]
    return [s.shape_source for s in conflict], [s.texture_source for s in conflict]


def test_experiment_1_has_210_103_triplets(published):
    found = enumerate_triplets(*published)
    assert (found.images, len(found)) == (1200, 210_103)
    assert (found.per_anchor.min(), found.per_anchor.max()) == (28, 363)


def test_28_of_each_anchor_are_33_600_and_distinct(published):
    found = enumerate_triplets(*published)
    first, second = balanced_draws(found, 28, 2, seed=0)
    for rows in (first, second):
        assert len(rows) == len(set(rows.tolist())) == 33_600
        assert set(np.bincount(found.anchor[rows]).tolist()) == {28}
    assert first.tolist() != second.tolist()
    assert first.tolist() == balanced_draws(found, 28, 1, seed=0)[0].tolist()
    assert first.tolist() != balanced_draws(found, 28, 1, seed=1)[0].tolist()


def test_experiment_3_has_57_600_triplets():
    shapes, textures = zip(*product(range(16), range(16)))
    found = enumerate_triplets(shapes, textures)
    assert len(found) == 57_600
    assert set(found.per_anchor.tolist()) == {225}


def brute_force(shapes, textures):
    """Every triple of positions that fits the definition."""
    n = range(len(shapes))
    return {
        (a, s, t)
        for a, s, t in product(n, n, n)
        if shapes[a] == shapes[s]
        and textures[a] != textures[s]
        and textures[a] == textures[t]
        and shapes[a] != shapes[t]
    }


def test_enumeration_is_the_definition_also_with_repeated_pairs():
    rng = np.random.default_rng(3)
    shapes, textures = rng.integers(4, size=24), rng.integers(5, size=24)
    found = enumerate_triplets(shapes, textures)
    listed = list(zip(found.anchor.tolist(), found.shape.tolist(), found.texture.tolist()))
    assert len(listed) == len(set(listed))
    assert set(listed) == brute_force(shapes.tolist(), textures.tolist())


LOOP = {
    "cosine": lambda x, y: 1 - scipy_distance.cosine(x, y),
    "dot": lambda x, y: float(np.dot(x, y)),
    "euclid": lambda x, y: -scipy_distance.euclidean(x, y),
}


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_decisions_are_those_of_a_loop_over_triplets(kind):
    rng = np.random.default_rng(5)
    shapes, textures = zip(*product(range(5), range(6)))
    features = rng.normal(size=(30, 17)).astype(np.float32) + 1
    found = enumerate_triplets(shapes, textures)
    ours = decide(gram(features, found), kind)
    rows = features.astype(np.float64)
    sim = LOOP[kind]
    loop = [sim(rows[a], rows[s]) > sim(rows[a], rows[t]) for a, s, t in zip(found.anchor, found.shape, found.texture)]
    assert ours.shape.tolist() == loop
    assert not ours.tie.any()
    assert (ours.shape ^ ours.texture).all()


def grid(n, m):
    return zip(*product(range(n), range(m)))


@pytest.mark.parametrize("kind", SIMILARITIES)
@pytest.mark.parametrize(("by", "bias"), [("shape", 1.0), ("texture", 0.0)])
def test_an_embedding_of_one_cue_has_bias_one_or_zero(kind, by, bias):
    shapes, textures = grid(6, 7)
    features = np.eye(8)[list(shapes if by == "shape" else textures)]
    assert triplet_shape_bias(features, shapes, textures, similarity=kind) == bias


def test_both_cues_equally_are_all_ties_without_noise_and_half_with_it():
    shapes, textures = grid(16, 16)
    both = np.concatenate([np.eye(16)[list(shapes)], np.eye(16)[list(textures)]], axis=1)
    found = enumerate_triplets(shapes, textures)
    assert decide(gram(both, found)).tie.all()
    assert triplet_shape_bias(both, shapes, textures) == 0  # a tie is never a shape decision
    noisy = both + np.random.default_rng(0).normal(scale=0.3, size=both.shape)
    assert triplet_shape_bias(noisy, shapes, textures) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("width", [3, 501, 4096])
def test_a_constant_network_ties_everywhere_despite_rounding(width):
    shapes, textures = grid(8, 8)
    same = np.tile(np.random.default_rng(1).normal(size=width), (64, 1))
    found = enumerate_triplets(shapes, textures)
    for kind in SIMILARITIES:
        assert decide(gram(same, found), kind).tie.all()


def test_differences_in_the_eighth_digit_are_decided():
    """Embeddings of untrained networks are nearly parallel; single precision would guess."""
    shapes, textures = grid(4, 4)
    rows = np.ones((16, 300))
    rows[:, :4] += 1e-8 * np.eye(4)[list(shapes)]
    assert triplet_shape_bias(rows, shapes, textures, similarity="euclid") == 1
    rows[:, :4] += 1e-5 * np.eye(4)[list(shapes)]
    assert triplet_shape_bias(rows, shapes, textures, similarity="cosine") == 1


def test_zero_and_nan_vectors_leave_the_trials_and_are_named():
    shapes, textures = grid(4, 4)
    rows = np.eye(4)[list(shapes)] + 0.0
    rows[0] = 0
    rows[5, 2] = np.nan
    found = enumerate_triplets(shapes, textures)
    of = gram(rows, found)
    assert (np.flatnonzero(of.zero).tolist(), np.flatnonzero(~of.usable).tolist()) == ([0], [0, 5])
    decided = decide(of)
    touched = np.isin(np.stack([found.anchor, found.shape, found.texture]), [0, 5]).any(axis=0)
    assert ((decided.shape | decided.texture | decided.tie) == ~touched).all()
    assert total(triplet_shape_bias.terms(count(decided, found))).value == 1
    assert triplet_shape_bias(rows, shapes, textures) == 1


def test_anchors_without_a_match_have_no_trials():
    found = enumerate_triplets(["a", "a", "b", "c"], ["x", "y", "x", "z"])
    assert found.per_anchor.tolist() == [1, 0, 0, 0]
    assert len(enumerate_triplets([], [])) == 0
    assert np.isnan(triplet_shape_bias(np.ones((2, 3)), ["a", "b"], ["x", "y"]))


def test_draws_are_averaged_and_each_anchor_weighs_the_same():
    shapes = ["a"] * 6 + ["b"] * 2
    textures = ["x", "y", "z", "u", "v", "w", "x", "y"]
    found = enumerate_triplets(shapes, textures)
    draws = balanced_draws(found, 1, 3, seed=4)
    assert all(np.bincount(found.anchor[rows]).max() == 1 for rows in draws)
    features = np.random.default_rng(0).normal(size=(8, 5))
    decided = decide(gram(features, found))
    mean = np.mean([decided.shape[rows].mean() for rows in draws])
    assert triplet_shape_bias(features, shapes, textures, k=1, replications=3, seed=4) == pytest.approx(mean)
    assert triplet_shape_bias(features, shapes, textures) == pytest.approx(decided.shape.mean())


def test_the_gain_is_the_difference_from_the_mean_of_the_initialisations():
    assert triplet_bias_gain(0.7, [0.2, 0.4, 0.9]) == pytest.approx(0.2)
    np.testing.assert_allclose(triplet_bias_gain(np.array([0.7, 0.1]), np.array([[0.2, 0.4], [0.1, 0.3]])), [0.4, -0.1])
    assert np.isnan(triplet_bias_gain(0.7, []))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: enumerate_triplets(["a"], ["x", "y"]), "1 shape sources and 2 texture sources"),
        (lambda: triplet_shape_bias(np.ones((3, 2)), ["a"] * 4, ["x"] * 4), r"expected 4 images"),
        (lambda: triplet_shape_bias(np.ones(4), ["a"] * 4, ["x"] * 4), r"expected 4 images"),
        (
            lambda: triplet_shape_bias(np.ones((4, 2)), ["a"] * 4, ["x"] * 4, similarity="cosin"),
            "Did you mean 'cosine'",
        ),
        (lambda: balanced_draws(enumerate_triplets(["a"], ["x"]), 0, 1, 0), "cannot draw 0"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_a_source_counts_with_all_trials_in_which_it_appears():
    """The same sums from a loop over single triplets, which have two shapes and two textures each."""
    shapes, textures = (a.ravel() for a in np.meshgrid(range(3), range(4), indexing="ij"))
    found = enumerate_triplets(shapes, textures)
    decided = decide(gram(np.random.default_rng(0).normal(size=(12, 5)), found))
    shared = shared_terms(count(decided, found))
    for kind, sources in (("shape_sources", shapes), ("texture_sources", textures)):
        for source in np.unique(sources):
            there = [
                i for i, images in enumerate(zip(found.anchor, found.shape, found.texture))
                if source in sources[list(images)]
            ]  # fmt: skip
            rows = sources == source
            assert shared[kind].denominator[rows].sum() == len(there)
            assert shared[kind].numerator[rows].sum() == decided.shape[there].sum()
    shown = np.bincount(np.concatenate([found.anchor, found.shape, found.texture]), minlength=12)
    np.testing.assert_array_equal(shared["two_way"].denominator, shown)
