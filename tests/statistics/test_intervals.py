"""Weights of the bootstrap and percentiles: exactly, in parts, and their edges."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.statistics import intervals
from cuebench.statistics.intervals import Clusters, percentile, too_few, weights


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


def test_percentile_of_a_level():
    draws = np.arange(101.0)
    found = percentile(draws, "images", 0.9)
    assert (found.low, found.high, found.level) == (pytest.approx(5), pytest.approx(95), 0.9)


def test_weights_are_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(intervals, "KEPT", 10_000)
    monkeypatch.setattr(intervals, "_kept", OrderedDict())
    for clusters in range(10, 21):
        weights("images", clusters, 0, 100)
    assert sum(kept.nbytes for kept in intervals._kept.values()) <= 10_000
    assert weights("images", 20, 0, 100) is weights("images", 20, 0, 100)
    weights("images", 51, 0, 100)  # more than half
    assert ("images", 51, 0, 100) not in intervals._kept


def test_what_cannot_be_drawn_anew_says_so():
    one = Clusters(np.arange(4), np.arange(4), np.zeros(4))
    reason = "1 texture source: nothing to resample"
    assert [too_few(one, kind) for kind in ("images", "texture_sources", "two_way")] == ["", reason, reason]
    assert too_few(Clusters(*[np.zeros(0)] * 3), "images") == "0 images: nothing to resample"
    with pytest.raises(UserError, match="no subjects to resample"):
        too_few(one, "subjects")
