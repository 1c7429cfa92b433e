"""Ranks by counting: against a full stable sort, with ties, members, and from a file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuebench.errors import UserError
from cuebench.labels.ranks import best_ranks, best_ranks_in_parquet, compiled_counter, count_with_numpy
from cuebench.metrics.accuracy import rank
from cuebench.metrics.refined_bias import shape_sensitivity


def by_sorting(logits, target, members):
    """Independent: a stable sort of the negated logits, then the best place of any member."""
    order = np.argsort(-logits.astype(np.float64), axis=1, kind="stable")
    return [min(int(np.flatnonzero(order[i] == m)[0]) + 1 for m in members[t]) for i, t in enumerate(target)]


def example(rng, rows, classes, ties):
    logits = rng.normal(size=(rows, classes)).astype(np.float32)
    if ties:
        logits = np.round(logits)
    members = [rng.choice(classes, size=min(classes, k), replace=False) for k in (1, 2, 3)]
    return logits, rng.integers(3, size=rows), members


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(3, 30), st.booleans())
def test_counting_is_sorting(seed, rows, classes, ties):
    logits, target, members = example(np.random.default_rng(seed), rows, classes, ties)
    assert best_ranks(logits, target, members, chunk=256).tolist() == by_sorting(logits, target, members)


def test_both_counters_agree_and_ties_go_to_the_lower_index():
    pytest.importorskip("numba")
    rng = np.random.default_rng(1)
    logits = rng.integers(0, 4, size=(500, 20)).astype(np.float32)
    table = np.sort(rng.integers(0, 20, size=(500, 2)), axis=1)
    np.testing.assert_array_equal(count_with_numpy(logits, table), compiled_counter()(logits, table))
    equal = np.zeros((1, 5), np.float32)
    assert count_with_numpy(equal, np.array([[3, 2]])).tolist() == [3]
    assert compiled_counter()(equal, np.array([[3, 2]])).tolist() == [3]


def test_one_member_is_the_rank_of_accuracy():
    rng = np.random.default_rng(2)
    logits, target = rng.integers(0, 9, size=(200, 30)).astype(float), rng.integers(30, size=200)
    ranks = best_ranks(logits, target, [np.array([i]) for i in range(30)])
    np.testing.assert_array_equal(ranks, rank(logits, target))


def test_siblings_above_are_not_removed():
    """Two members of another class stand above: both count, as in the authors' unmerged order."""
    logits = np.array([[0.1, 0.9, 0.8, 0.5]])
    members = [np.array([0, 3]), np.array([1, 2])]
    assert best_ranks(logits, np.array([0]), members).tolist() == [3]
    assert shape_sensitivity(logits, np.array([0]), members) == pytest.approx(1 / 3)


@pytest.mark.parametrize("list_type", ["fixed", "variable"])
def test_parquet_gives_the_same_ranks(tmp_path, list_type):
    logits, target, members = example(np.random.default_rng(3), 1000, 50, ties=True)
    width = 50 if list_type == "fixed" else -1
    column = pa.array(logits.tolist(), pa.list_(pa.float32(), width))
    pq.write_table(
        pa.table({"stimulus": np.arange(1000), "logits": column}), tmp_path / "a.parquet", row_group_size=300
    )
    for mapped in (False, True):
        found = best_ranks_in_parquet(tmp_path / "a.parquet", target, members, rows=64, mapped=mapped)
        np.testing.assert_array_equal(found, best_ranks(logits, target, members))
    for wrong in (target[:-1], np.append(target, 0)):
        with pytest.raises(UserError, match="another number of rows"):
            best_ranks_in_parquet(tmp_path / "a.parquet", wrong, members, rows=64)
    with pytest.raises(UserError, match="no column 'scores'"):
        best_ranks_in_parquet(tmp_path / "a.parquet", target, members, column="scores")


@pytest.mark.parametrize(
    ("target", "members", "message"),
    [
        ([0, 1], [[0]], "do not fit|0 … 0"),
        ([5], [[0]], "0 … 0; got 5"),
        ([0], [[]], "no member"),
        ([0], [[7]], "members must lie in 0 … 2"),
    ],
)
def test_bad_input(target, members, message):
    with pytest.raises(UserError, match=message):
        best_ranks(np.zeros((1, 3)), np.array(target), [np.array(m, int) for m in members])


def test_nothing_to_rank():
    assert len(best_ranks(np.zeros((0, 3)), np.zeros(0, int), [np.array([0])])) == 0
    assert np.isnan(shape_sensitivity(np.zeros((0, 3)), np.zeros(0, int), [np.array([0])]))


def test_without_a_place_for_compiled_code_it_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only installation, no home that can be written: Numba then refuses to keep anything."""
    from cuebench.compiled import compiled

    def nowhere(*_: object) -> object:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("numba.core.dispatcher.Dispatcher.enable_caching", nowhere)

    def double(x: float) -> float:
        return 2 * x

    assert compiled(double, nogil=True)(2.5) == 5
