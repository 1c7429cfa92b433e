"""Correlations against scipy, their intervals against a plain loop, textbook values and simulated coverage."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from cuebench.errors import UserError
from cuebench.statistics.correlations import correlate, correlation_matrix, few_interval, fisher_interval, ranks
from cuebench.statistics.intervals import weights

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def table(seed=0, models=31, columns=3, ties=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(columns, models)) + rng.normal(size=models)
    return {str(i): np.round(row, 0) if ties else row for i, row in enumerate(x)}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("method", SCIPY)
def test_values_equal_scipy(method, ties):
    columns = table(ties=ties)
    found = correlation_matrix(columns, method, resamples=10)
    for i, a in enumerate(columns.values()):
        for j, b in enumerate(columns.values()):
            assert found.value[i, j] == pytest.approx(SCIPY[method](a, b).statistic, abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("method", SCIPY)
def test_intervals_equal_a_plain_loop_over_repeated_models(method, ties):
    columns = table(ties=ties, columns=2)
    found = correlation_matrix(columns, method, seed=3, resamples=200)
    a, b = columns.values()
    plain = []
    for counts in weights("models", 31, 3, 200):
        rows = np.repeat(np.arange(31), counts)
        plain.append(SCIPY[method](a[rows], b[rows]).statistic)
    assert found.low[0, 1] == pytest.approx(np.nanquantile(plain, 0.025), abs=1e-12)
    assert found.high[0, 1] == pytest.approx(np.nanquantile(plain, 0.975), abs=1e-12)


def test_ranks_of_repeated_values_equal_scipy():
    values = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    counts = np.array([[2, 0, 1, 3, 1], [1, 1, 1, 1, 1]], np.float64)
    found = ranks(values, counts)
    for row, count in zip(found, counts.astype(int)):
        expected = stats.rankdata(np.repeat(values, count))
        assert np.repeat(row, count).tolist() == expected.tolist()


def test_fisher_standard_errors_of_ranks_by_their_formulas():
    z, reach = math.atanh(0.5), stats.norm.ppf(0.975)
    assert fisher_interval(0.5, 28, "spearman")[1] == pytest.approx(math.tanh(z + reach * math.sqrt(1.125 / 25)))
    assert fisher_interval(0.5, 28, "kendall")[0] == pytest.approx(math.tanh(z - reach * math.sqrt(0.437 / 24)))
    assert all(math.isnan(end) for end in fisher_interval(0.5, 3))


def test_fisher_interval_equals_scipy():
    a, b = table(columns=2).values()
    expected = stats.pearsonr(a, b).confidence_interval(0.9)
    assert correlate(a, b, "pearson", how="fisher", level=0.9)[1:3] == pytest.approx(tuple(expected))


@pytest.mark.parametrize(("method", "how"), [("pearson", "fisher"), ("spearman", "fisher"), ("kendall", "fisher"),
                                             ("pearson", "bootstrap"), ("spearman", "bootstrap")])  # fmt: skip
def test_intervals_cover_the_truth(method, how):
    rng = np.random.default_rng(1)
    rho = 0.6
    truth = {"pearson": rho, "spearman": 6 / math.pi * math.asin(rho / 2), "kendall": 2 / math.pi * math.asin(rho)}
    hits = 0
    for _ in range(200):
        x = rng.normal(size=50)
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=50)
        found = correlate(x, y, method, how=how, resamples=400)
        hits += found.low <= truth[method] <= found.high
    assert 0.88 <= hits / 200 <= 0.99


@pytest.mark.parametrize("ties", [False, True])
def test_p_of_few_models_is_that_of_all_orders(ties):
    a, b = table(models=6, columns=2, ties=ties, seed=4).values()
    exact = stats.permutation_test(
        (a,), lambda x: stats.spearmanr(x, b).statistic, permutation_type="pairings", n_resamples=np.inf
    ).pvalue
    assert correlate(a, b, how="fisher").p == pytest.approx(exact)


def test_p_of_five_models_in_perfect_order_is_not_zero():
    assert correlate([1, 2, 3, 4, 5], [1, 2, 3, 4, 50], how="fisher").p == pytest.approx(2 / 120)


@pytest.mark.parametrize("n", [3, 8, 9, 21, 40, 200])
@pytest.mark.parametrize("method", SCIPY)
def test_a_perfect_correlation_is_not_certain(method, n):
    x = np.linspace(0.1, 0.7, n)
    for sign in (1, -1):
        found = correlate(x, sign * 3 * x, method)
        assert found.value == pytest.approx(sign)
        assert found.p >= 2 / math.factorial(min(n, 170))
        assert found.p == pytest.approx(2 / math.factorial(n), rel=1e-9) or n > 8
        if method == "pearson":
            assert math.isnan(found.low)
            assert math.isnan(found.high)
            assert found.note == "no interval: all lie on one line"
        else:
            assert found.high - found.low > 0
            assert (found.high if sign > 0 else found.low) == sign


@pytest.mark.parametrize("how", ["fisher", "bootstrap"])
def test_a_perfect_order_of_many_models_has_one_end_at_one(how):
    x = np.arange(25.0)
    found = correlate(x, np.exp(x / 9), how=how, resamples=100)
    r = 1 - 6 / (25 * 624)
    low = math.tanh(math.atanh(r) - stats.norm.ppf(0.975) * math.sqrt((1 + r * r / 2) / 22))
    assert (found.low, found.high) == (pytest.approx(low), 1.0)
    assert correlate(x, -x, how=how, resamples=100)[1:3] == (-1.0, pytest.approx(-low))
    line = correlate(x, 2 * x + 0.1, "pearson", how=how, resamples=100)
    assert math.isnan(line.low)
    assert line.note == "no interval: all lie on one line"


def test_intervals_of_perfect_orders_narrow_with_every_further_model():
    for method, last in (("spearman", 20), ("kendall", 30)):
        lows = [few_interval(1.0, n, method)[0] for n in (last - 10, last - 5, last - 1, last)]
        lows += [fisher_interval(1.0, n, method)[0] for n in (last + 5, last + 20)]
        assert lows == sorted(lows)
        assert lows[-1] < 1


@pytest.mark.parametrize(("method", "n", "rho"), [("spearman", 25, 0.9985), ("kendall", 33, 0.9995)])
def test_the_interval_of_a_perfect_order_holds_the_truth_where_it_is_frequent(method, n, rho):
    """Where the true correlation lies below an interval of a perfect order, such orders are rare."""
    rng, perfect, studies = np.random.default_rng(3), 0, 4000
    truth = 6 / math.pi * math.asin(rho / 2) if method == "spearman" else 2 / math.pi * math.asin(rho)
    for _ in range(studies):
        x, noise = rng.normal(size=(2, n))
        order = np.argsort(x)
        perfect += bool((np.diff((rho * x + math.sqrt(1 - rho**2) * noise)[order]) > 0).all())
    low = fisher_interval(1.0, n, method)[0]
    assert truth < low
    assert perfect / studies <= 0.06


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("method", ["pearson", "kendall"])
def test_p_of_few_models_counts_the_orders_of_scipy(method, ties):
    a, b = table(models=6, columns=2, ties=ties, seed=5).values()
    every = np.array([SCIPY[method](order, b).statistic for order in permutations(a)])
    found = correlate(a, b, method)
    assert found.value == pytest.approx(SCIPY[method](a, b).statistic)
    assert found.p == pytest.approx(np.mean(np.abs(every) >= abs(found.value) - 1e-9))


def test_p_of_no_association_is_below_a_tenth_in_a_tenth_of_all_cases():
    rng = np.random.default_rng(2)
    p = [correlate(*rng.normal(size=(2, 8)), how="fisher").p for _ in range(300)]
    assert 0.05 <= np.mean(np.array(p) <= 0.1) <= 0.14


def test_very_few_models_are_said():
    assert "4 models: the interval is rough" in correlate([1, 2, 3, 4], [2, 1, 4, 3], how="fisher").note
    assert not correlate(np.arange(5.0), np.arange(5.0) ** 2, how="fisher").note


@pytest.mark.parametrize("method", ["spearman", "kendall"])
@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_the_interval_of_six_models_holds_the_truth(method, rho):
    rng = np.random.default_rng(7)
    truth = 6 / np.pi * np.arcsin(rho / 2) if method == "spearman" else 2 / np.pi * np.arcsin(rho)
    hits, studies = 0, 400
    for _ in range(studies):
        x, noise = rng.normal(size=(2, 6))
        found = correlate(np.exp(x), rho * x + np.sqrt(1 - rho**2) * noise, method)
        hits += found.low <= truth <= found.high
    assert 0.90 <= hits / studies <= 0.995


def test_a_perfect_order_of_few_models_is_not_certain():
    found = correlate(np.arange(5.0), np.arange(5.0))
    assert 0.4 < found.low < 0.7
    assert found.high == 1
    assert correlate(np.arange(5.0), -np.arange(5.0)).low == -1
    matrix = correlation_matrix({"a": np.arange(5.0), "b": [0, 2, 1, 3, 4]})
    assert (matrix.low[0, 1], matrix.high[0, 1]) == few_interval(0.9, 5)


def test_missing_values_are_left_out_and_said():
    found = correlate([1, 2, 3, 4, math.nan], [1, 3, 2, 4, 5], how="fisher")
    assert found.n == 4
    assert found.note == "1 pair with a missing value left out; 4 models: the interval is rough"


def test_pearson_of_three_models_has_no_interval_and_says_why():
    found = correlate([1, 2, 3], [1, 3, 2], "pearson")
    assert math.isnan(found.low)
    assert found.note == "no interval: 3 models are too few"
    assert found.p == 1


def test_a_constant_column_has_no_correlation():
    found = correlate([1, 1, 1, 1], [1, 2, 3, 4])
    assert math.isnan(found.value)
    assert "constant" in found.note


@pytest.mark.parametrize(
    ("x", "y", "options", "words"),
    [
        ([1, 2, 3], [1, 2], {}, "both columns need"),
        ([1, 2], [1, 2], {}, "correlation of 2 pairs"),
        ([1, 2, 3], [1, 2, 3], {"method": "spearmann"}, "Did you mean 'spearman'"),
        ([1, 2, 3], [1, 2, 3], {"how": "jackknife"}, "unknown kind of interval"),
    ],
)
def test_mistakes(x, y, options, words):
    with pytest.raises(UserError, match=words):
        correlate(x, y, **options)


def test_mistakes_in_a_table():
    with pytest.raises(UserError, match="different lengths"):
        correlation_matrix({"a": [1, 2, 3], "b": [1, 2]})
    with pytest.raises(UserError, match="missing values in b"):
        correlation_matrix({"a": [1, 2, 3], "b": [1, 2, math.nan]})


def test_same_bytes_for_the_same_seed():
    first, second = (correlation_matrix(table(), seed=5, resamples=300) for _ in range(2))
    assert first.low.tobytes() == second.low.tobytes()
    assert first.low.tobytes() != correlation_matrix(table(), seed=6, resamples=300).low.tobytes()
