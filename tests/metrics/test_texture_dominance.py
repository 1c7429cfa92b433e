"""Dominant textures and agreement: by hand, against a slow implementation, and in every case that is undefined."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy.stats import pearsonr

from cuebench.errors import UserError
from cuebench.metrics.texture_agreement import KINDS, by_label, texture_agreement
from cuebench.metrics.texture_dominance import (
    STATISTICS,
    dominance_estimates,
    group,
    texture_dominance,
)
from cuebench.metrics.texturedness import texturedness


def slow(classes, textures, values):
    """Follow the words of the paper image by image."""
    images = defaultdict(list)
    for c, t, v in zip(classes, textures, values):
        if t >= 0:
            images[c].append((t, v))
    share, mean, inside, outside, kinds = [], [], [], [], []
    for in_class in images.values():
        number = Counter(sorted(t for t, _ in in_class))
        usual = max(sorted(number), key=lambda t: number[t])
        kinds.append(len(number))
        for t, n in number.items():
            share.append(n / len(in_class))
            mean.append(np.mean([v for u, v in in_class if u == t]))
        inside += [v for t, v in in_class if t == usual]
        outside += [v for t, v in in_class if t != usual]
    return pearsonr(share, mean)[0], np.mean(kinds), np.mean(inside), np.mean(outside)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_a_slow_implementation(seed):
    rng = np.random.default_rng(seed)
    classes, textures = rng.integers(0, 9, 300), rng.integers(-1, 6, 300)
    values = rng.random(300)
    found = texture_dominance(group(classes, textures, values, 6, 12))
    correlation, number, inside, outside = slow(classes, textures, values)
    assert found.correlation == pytest.approx(correlation)
    assert found.textures == pytest.approx(number)
    assert (found.with_dominant, found.without_dominant) == pytest.approx((inside, outside))
    assert found.gap == pytest.approx(inside - outside)
    assert found.all == pytest.approx(values[textures >= 0].mean())


def test_by_hand():
    """Class 0: stripes twice (both right), dots once (wrong). Class 1: dots twice (one right). Class 2: no image."""
    groups = group(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1]), np.array([1, 1, 0, 1, 0]), 2, 3)
    assert groups.dominant.tolist() == [0, 1, -1]
    assert (groups.classes, groups.alone, groups.lost) == (2, 0, 0)
    found = texture_dominance(groups)
    assert (found.textures, found.with_dominant, found.without_dominant) == (1.5, 0.75, 0)
    assert found.correlation == pytest.approx(pearsonr([2 / 3, 1 / 3, 1], [1, 0, 0.5])[0])


def test_planted_dominance_is_found():
    """A model that is right exactly when an image shows the usual texture of its class."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(40), 50)
    usual = rng.random(2000) < 0.7
    textures = np.where(usual, classes % 7, (classes + rng.integers(1, 7, 2000)) % 7)
    found = texture_dominance(group(classes, textures, usual.astype(float), 7, 40))
    assert (found.with_dominant, found.without_dominant, found.gap) == (1, 0, 1)
    assert found.correlation > 0.95


def test_undefined_cases():
    nothing = texture_dominance(group(np.zeros(0, int), np.zeros(0, int), np.zeros(0), 3, 4))
    assert all(math.isnan(v) for v in nothing)
    alone = group(np.arange(4), np.array([0, 1, 2, 0]), np.array([1, 0, 1, 1]), 3, 4)
    found = texture_dominance(alone)
    assert math.isnan(found.correlation), "all shares are 1"
    assert math.isnan(found.without_dominant)
    assert math.isnan(found.gap)
    assert found.with_dominant == 0.75
    assert alone.alone == 4
    untextured = group(np.array([0]), np.array([-1]), np.array([1.0]), 3, 4)
    assert untextured.lost == 1
    assert math.isnan(texture_dominance(untextured).all)
    with pytest.raises(UserError, match="do not fit"):
        group(np.zeros(2), np.zeros(3), np.zeros(3), 1, 1)


def test_intervals_hold_the_value_and_follow_the_seed():
    rng = np.random.default_rng(2)
    classes = np.repeat(np.arange(30), 40)
    textures = np.where(rng.random(1200) < 0.6, classes % 5, rng.integers(0, 5, 1200))
    values = (rng.random(1200) < np.where(textures == classes % 5, 0.8, 0.4)).astype(float)
    statistics = texture_dominance(group(classes, textures, values, 5, 30))
    first = dominance_estimates(classes, textures, values, 5, 30, seed=3, resamples=200)
    assert first == dominance_estimates(classes, textures, values, 5, 30, seed=3, resamples=200)
    assert [first[name].value for name in STATISTICS] == list(statistics)
    for name in ("with_dominant", "without_dominant", "gap", "all"):
        (interval,) = first[name].intervals
        assert interval.low < first[name].value < interval.high
        assert interval.width < 0.2
        assert first[name].n == 1200
    few = dominance_estimates(classes[:1], textures[:1], values[:1], 5, 30)
    assert set(few) == set(STATISTICS)
    assert "nothing to resample" in few["gap"].intervals[0].note


def test_agreement_kinds():
    dominant = np.array([0, 1, 2, -1, 0])
    texture = np.array([0, 1, 0, 2, 0, -1, 0])
    prediction = np.array([0, 0, 0, 0, 3, 0, 0])
    label = np.array([1, 1, 4, 1, 0, 1, 3])
    found = texture_agreement(texture, prediction, label, dominant)
    kinds = [KINDS[int(row.argmax())] if row.any() else "" for row in found.kinds]
    assert kinds == ["prediction", "label", "both", "neither", "", "", ""]
    assert found.judged.tolist() == [True] * 4 + [False] * 3
    classes = by_label(found, label, 5)
    assert (classes.label.tolist(), classes.prediction.tolist(), classes.own.tolist()) == ([1], [1], [1])
    with pytest.raises(UserError, match="do not fit"):
        texture_agreement(texture[:2], prediction, label, dominant)


def test_texturedness():
    assert texturedness(np.array([0.25, 0.75])) == 0.5
    assert math.isnan(texturedness(np.zeros(0)))
