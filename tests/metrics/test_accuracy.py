"""Ranks against a stable sort, accuracy against arg max and against sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuebench.errors import UserError
from cuebench.metrics import accuracy
from cuebench.metrics.accuracy import rank


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(2, 30), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_rank_against_a_stable_sort(seed: int, n: int, classes: int, levels: int) -> None:
    """Few distinct levels make many ties."""
    rng = np.random.default_rng(seed)
    logits = rng.integers(0, levels, (n, classes)).astype(np.float32)
    target = rng.integers(0, classes, n)
    order = np.argsort(-logits, axis=1, kind="stable")
    expected = [1 + list(order[i]).index(target[i]) for i in range(n)]
    assert rank(logits, target).tolist() == expected


def test_top1_is_arg_max() -> None:
    logits = np.random.default_rng(0).normal(size=(500, 20))
    target = np.random.default_rng(1).integers(0, 20, 500)
    assert accuracy(logits, target) == pytest.approx((logits.argmax(axis=1) == target).mean())


def test_top_5_against_sorting() -> None:
    logits = np.random.default_rng(0).normal(size=(101, 20))
    target = np.random.default_rng(1).integers(0, 20, 101)
    largest = np.argsort(-logits, axis=1)[:, :5]
    assert accuracy(logits, target, k=5) == pytest.approx(np.mean([t in row for t, row in zip(target, largest)]))
    assert np.isnan(accuracy(logits[:0], target[:0]))


@pytest.mark.parametrize("target", [[20], [-1], [0, 1]])
def test_targets_that_do_not_fit(target: list[int]) -> None:
    with pytest.raises(UserError):
        rank(np.zeros((1, 20)), np.array(target))
