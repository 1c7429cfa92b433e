"""Correlations corrected for error: Cronbach's α, Spearman's correction, planted factors, coverage of intervals."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.statistics.reliability import (
    Influence,
    _link,
    eigenvalues_by_chance,
    error_covariance,
    explained,
    one_factor,
    spread,
    structure,
)


def means(answers):
    """Return the mean answer of each observer and its influences; answers are observers × images."""
    psi = (answers - answers.mean(axis=1, keepdims=True)).T / answers.shape[1]
    return answers.mean(axis=1), psi


def test_the_reliability_of_means_over_images_is_cronbachs_alpha():
    rng = np.random.default_rng(3)
    answers = rng.normal(size=(8, 40)) + rng.normal(size=(8, 1)) + 3 * rng.normal(size=40)  # images differ, for all
    values, psi = means(answers)
    errors = error_covariance(Influence(psi, np.arange(40), {}))
    k = answers.shape[1]
    alpha = k / (k - 1) * (1 - answers.var(axis=0, ddof=1).sum() / answers.sum(axis=1).var(ddof=1))
    assert 1 - spread(errors) / values.var(ddof=1) == pytest.approx(alpha)


def test_what_all_observers_share_is_no_error():
    assert spread(np.full((5, 5), 7.0)) == pytest.approx(0)
    assert spread(np.diag([1.0, 2.0, 3.0])) == pytest.approx(2)


def test_errors_of_sources_are_those_of_sums_over_sources():
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(24, 3))
    psi -= psi.mean(axis=0)
    shapes, textures = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    found = error_covariance(Influence(psi, np.arange(24), {"shape_sources": shapes, "texture_sources": textures}))

    def by(names):
        sums = np.array([psi[names == n].sum(axis=0) for n in np.unique(names)])
        return len(sums) / (len(sums) - 1) * sums.T @ sums

    candidates = [by(shapes) + by(textures) - by(np.arange(24)), by(shapes), by(textures)]
    assert np.allclose(found, max(candidates, key=spread))


def test_two_headlines_of_the_same_images_share_errors_and_of_others_do_not():
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(30, 4))
    psi -= psi.mean(axis=0)
    one = Influence(psi, np.arange(30), {})
    order = rng.permutation(30)
    again = Influence(psi[order], np.arange(30)[order], {})
    assert np.allclose(error_covariance(one, again), error_covariance(one))
    elsewhere = Influence(psi, np.arange(100, 130), {})
    assert np.allclose(error_covariance(one, elsewhere), 0)


def test_spearmans_correction():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 30))
    y = x + y
    errors = {("x", "x"): 0.2 * np.eye(30), ("y", "y"): 0.5 * np.eye(30)}
    found = structure({"x": x, "y": y}, errors)
    (link,) = found.links
    reliability = 1 - 0.2 / x.var(ddof=1), 1 - 0.5 / y.var(ddof=1)
    assert [found.reliability[n].value for n in "xy"] == pytest.approx(reliability)
    r = np.corrcoef(x, y)[0, 1]
    assert link.observed.value == pytest.approx(r)
    assert link.corrected.value == pytest.approx(r / np.sqrt(np.prod(reliability)))
    assert link.corrected.low < link.corrected.value < link.corrected.high


@pytest.mark.parametrize("m", [10, 12, 15])
@pytest.mark.parametrize("value", [0.1, 0.3, 0.7])
def test_a_headline_that_is_the_same_for_everybody_is_told_from_the_rounding_of_its_mean(value, m):
    """The mean of ten times .3 is not .3: the headline had a variance of 3e-33 and a reliability of 1."""
    columns = {"x": np.arange(m) / m, "same": np.full(m, value), "nearly": np.nextafter(value, np.arange(m) % 2)}
    found = structure(columns, {(n, n): 0.001 * np.eye(m) for n in columns})
    assert [np.isnan(found.reliability[n].value) for n in columns] == [False, True, True]
    assert [link.note for link in found.links] == ["undefined: a headline is the same for everybody"] * 3
    assert found.notes == ("the same for everybody: same, nearly: no factor, and no shares of variance",)


def test_a_headline_that_follows_from_the_others_is_named_and_is_no_traceback():
    """The correlations of x and 1 − x cannot be inverted, or only by luck of rounding."""
    rng = np.random.default_rng(0)
    x, z = rng.random((2, 12))
    for y in (x, 1 - x, 2 * x + 0.1, (x + z) / 2):
        found = structure({"x": x, "y": y, "z": z}, {(n, n): 0.001 * np.eye(12) for n in "xyz"})
        assert found.notes == (
            "one of the headlines follows exactly from the others: no factor, and no shares of variance",
        )
        assert (found.shares, found.factor) == ((), None)
        assert all(np.isfinite(link.observed.value) for link in found.links)


def test_errors_in_common_are_taken_out():
    """Two instruments with the same noise and nothing else in common correlate; corrected they do not."""
    rng = np.random.default_rng(7)
    noise = rng.normal(size=2_000)
    x, y = rng.normal(size=(2, 2_000)) + noise
    unit = np.eye(2_000)
    (link,) = structure({"x": x, "y": y}, {("x", "x"): unit, ("y", "y"): unit, ("x", "y"): unit}).links
    assert link.observed.value == pytest.approx(0.5, abs=0.05)
    assert link.corrected.value == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize(("n", "truth", "reliability"), [(6, 0.6, 0.9), (12, 0.9, 0.95), (45, 0.6, 0.6)])
def test_intervals_hold_the_truth(n, truth, reliability):
    rng = np.random.default_rng(1)
    noise, hits, studies = 1 / reliability - 1, 0, 1_000
    for _ in range(studies):
        a, b = rng.normal(size=(2, n))
        true = a, truth * a + np.sqrt(1 - truth**2) * b
        x, y = (t + np.sqrt(noise) * rng.normal(size=n) for t in true)
        link = _link("x", "y", np.cov([x, y]), {("x", "x"): noise, ("y", "y"): noise}, n, 0.95)
        hits += not np.isfinite(link.corrected.low) or link.corrected.low <= truth <= link.corrected.high
    assert 0.93 <= hits / studies <= 0.99


def test_observers_that_differ_by_chance_only_have_no_corrected_correlation():
    x = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    (link,) = structure({"x": x, "y": x}, {("x", "x"): np.eye(5), ("y", "y"): 1e-9 * np.eye(5)}).links
    assert np.isnan(link.corrected.value)
    assert link.note == "the observers differ no more in x than its errors do"


def planted(loadings, n=200, seed=0):
    """Return columns with one common factor."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=n)
    return {f"c{i}": a * factor + np.sqrt(1 - a * a) * rng.normal(size=n) for i, a in enumerate(loadings)}


def test_one_planted_factor_is_found():
    columns = planted((0.9, 0.8, 0.6, 0.5))
    found = structure(columns, {(n, n): 1e-9 * np.eye(200) for n in columns})
    assert found.factor is not None
    assert found.factor.number == 1
    assert [r.value for r in found.factor.loadings.values()] == pytest.approx([0.9, 0.8, 0.6, 0.5], abs=0.1)
    for share in found.shares:
        assert share.shared.value + share.own.value + share.error.value == pytest.approx(1)


def test_two_planted_factors_are_two():
    one, other = planted((0.9, 0.9), seed=1), planted((0.9, 0.9), seed=2)
    columns = {**one, **{f"d{k}": v for k, v in other.items()}}
    found = structure(columns, {(n, n): 1e-9 * np.eye(200) for n in columns})
    assert found.factor is not None
    assert (found.factor.number, found.factor.loadings) == (2, {})


def test_unrelated_columns_have_no_factor_and_are_their_own():
    rng = np.random.default_rng(0)
    columns = {c: rng.normal(size=60) for c in "abc"}
    found = structure(columns, {(c, c): 0.1 * np.eye(60) for c in "abc"})
    assert found.factor is not None
    assert found.factor.number == 0
    assert all(s.shared.low <= 0.1 and s.own.value > 0.6 for s in found.shares)


def test_shares_and_partial_correlations_against_regression():
    columns = planted((0.9, 0.7, 0.5), n=50)
    found = structure(columns, {(n, n): 1e-9 * np.eye(50) for n in columns})
    table = np.array(list(columns.values()))
    for i, share in enumerate(found.shares):
        others = np.vstack([np.ones(50), np.delete(table, i, axis=0)]).T
        left = table[i] - others @ np.linalg.lstsq(others, table[i], rcond=None)[0]
        r2 = 1 - left.var() / table[i].var()
        assert share.shared.value == pytest.approx(1 - (1 - r2) * 49 / 47)
    rest = np.vstack([np.ones(50), table[2]]).T
    residuals = [t - rest @ np.linalg.lstsq(rest, t, rcond=None)[0] for t in table[:2]]
    assert found.links[0].given_others is not None
    assert found.links[0].given_others.value == pytest.approx(np.corrcoef(*residuals)[0, 1])


def test_eigenvalues_by_chance_bound_those_of_noise():
    bound = eigenvalues_by_chance(40, 4)
    rng = np.random.default_rng(9)
    above = [np.linalg.eigvalsh(np.corrcoef(rng.normal(size=(4, 40))))[-1] > bound[0] for _ in range(1_000)]
    assert 0.03 < np.mean(above) < 0.07


def test_few_observers():
    with pytest.raises(UserError, match="at least 4"):
        structure({"x": np.arange(3.0), "y": np.arange(3.0)}, {("x", "x"): np.eye(3), ("y", "y"): np.eye(3)})
    few = structure(
        {c: np.arange(5.0) ** (i + 1) for i, c in enumerate("ab")}, {(c, c): 1e-3 * np.eye(5) for c in "ab"}
    )
    assert (few.shares, few.factor) == ((), None)
    assert few.notes[0].startswith("5 observers and 2 headlines: too few")


def test_building_blocks():
    r = np.outer([0.9, 0.8, 0.7], [0.9, 0.8, 0.7])
    np.fill_diagonal(r, 1)
    assert one_factor(r) == pytest.approx([0.9, 0.8, 0.7], abs=1e-4)
    assert explained(np.eye(4), 1_000) == pytest.approx(np.full(4, -0.003), abs=1e-3)
