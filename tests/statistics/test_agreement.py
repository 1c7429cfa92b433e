"""κ of the textbooks, κ by the definition, and intervals by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.statistics.agreement import cohen_kappa, counts_of, fleiss_kappa

# Fleiss 1971's kind of table, as in textbooks: 10 subjects, 14 raters, 5 categories; κ = .210.
FLEISS = [[0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0],
          [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]]  # fmt: skip


def raters(table):
    """Unroll a confusion table into two lists of ratings."""
    pairs = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def test_fleiss_of_the_textbook():
    assert round(fleiss_kappa(FLEISS).value, 3) == 0.210


def test_fleiss_by_counting_pairs_of_raters():
    table = np.array(FLEISS)
    agree = []
    for row in table:
        ratings = np.repeat(np.arange(5), row)
        agree.append(np.mean([a == b for a, b in itertools.combinations(ratings, 2)]))
    p = table.sum(axis=0) / table.sum()
    expected = (np.mean(agree) - (p**2).sum()) / (1 - (p**2).sum())
    assert fleiss_kappa(FLEISS).value == pytest.approx(expected, abs=1e-12)


def test_fleiss_interval_equals_a_plain_loop():
    found = fleiss_kappa(FLEISS, seed=1, resamples=4000)
    rng = np.random.default_rng(9)
    draws = [fleiss_kappa(np.array(FLEISS)[rng.integers(10, size=10)], resamples=1).value for _ in range(1500)]
    assert found.low == pytest.approx(np.quantile(draws, 0.025), abs=0.02)
    assert found.high == pytest.approx(np.quantile(draws, 0.975), abs=0.02)


def test_fleiss_standard_error_under_no_agreement_by_simulation():
    rng = np.random.default_rng(4)
    tables = [rng.multinomial(6, [0.2, 0.3, 0.5], size=40) for _ in range(300)]
    values = [fleiss_kappa(t, resamples=1).value for t in tables]
    assert np.std(values) == pytest.approx(fleiss_kappa(tables[0], resamples=1).se, rel=0.12)


def test_perfect_agreement_is_one():
    assert fleiss_kappa([[5, 0], [0, 5], [5, 0]]).value == 1.0
    assert cohen_kappa(list("aabb"), list("aabb")).value == 1.0


def test_cohen_of_the_textbooks():
    assert cohen_kappa(*raters([[20, 5], [10, 15]])).value == pytest.approx(0.4)
    # Fleiss, Levin & Paik, Statistical Methods for Rates and Proportions, table 18.1: κ = .676, se = .088.
    found = cohen_kappa(*raters([[75, 1, 4], [5, 4, 1], [0, 0, 10]]))
    assert round(found.value, 3) == 0.676
    assert round(found.se, 3) == 0.088


def test_cohen_intervals_agree_and_cover():
    first, second = raters([[40, 9, 3], [6, 30, 8], [5, 7, 42]])
    asymptotic = cohen_kappa(first, second)
    bootstrap = cohen_kappa(first, second, how="bootstrap")
    assert asymptotic.low == pytest.approx(bootstrap.low, abs=0.02)
    assert asymptotic.high == pytest.approx(bootstrap.high, abs=0.02)
    rng, hits = np.random.default_rng(0), 0
    share = np.array([[40, 9, 3], [6, 30, 8], [5, 7, 42]]) / 150
    for _ in range(200):
        drawn = rng.multinomial(150, share.ravel()).reshape(3, 3)
        found = cohen_kappa(*raters(drawn))
        hits += found.low <= asymptotic.value <= found.high
    assert 0.89 <= hits / 200 <= 0.99


def test_one_category_only_is_undefined():
    for found in (fleiss_kappa([[3, 0], [3, 0]]), cohen_kappa(["a", "a"], ["a", "a"])):
        assert math.isnan(found.value)
        assert found.note.startswith("undefined")


def test_items_with_one_rating_are_left_out_and_said():
    found = fleiss_kappa([*FLEISS, [1, 0, 0, 0, 0]])
    assert round(found.value, 3) == 0.210
    assert found.note == "1 item with fewer than two ratings left out"


def test_counts_of_ratings():
    assert counts_of([["a", "b", "a"], ["b", "", "b"]]).tolist() == [[2, 1], [0, 2]]
    with pytest.raises(UserError, match="outside the categories: c"):
        counts_of([["a", "c"]], ["a", "b"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fleiss_kappa([1, 2, 3]), "items × categories"),
        (lambda: fleiss_kappa([[1, 0]]), "0 items"),
        (lambda: cohen_kappa(["a", "b"], ["a"]), "same items"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(UserError, match=words):
        call()
