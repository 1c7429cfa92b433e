"""Corrections against scipy, their definitions, and the promises they make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuebench.errors import UserError
from cuebench.statistics.multiple import adjust

P = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.3240,
    0.4262,
    0.5719,
    0.6528,
    0.7590,
    1.0,
]
"""The fifteen p-values of Benjamini & Hochberg 1995, section 3: at .05 they reject four, Bonferroni three."""


def test_the_example_of_benjamini_and_hochberg():
    assert (adjust(P, "benjamini_hochberg") <= 0.05).sum() == 4
    assert (adjust(P, "bonferroni") <= 0.05).sum() == 3


@pytest.mark.parametrize(("ours", "theirs"), [("benjamini_hochberg", "bh"), ("benjamini_yekutieli", "by")])
def test_false_discovery_rates_equal_scipy(ours, theirs):
    p = np.random.default_rng(0).random(30) ** 2
    assert adjust(p, ours) == pytest.approx(stats.false_discovery_control(p, method=theirs))


def test_holm_by_stepping_down():
    p = np.random.default_rng(1).random(12) ** 3
    for level in (0.01, 0.05, 0.2):
        rejected = np.zeros(12, bool)
        for step, i in enumerate(np.argsort(p)):
            if p[i] > level / (12 - step):
                break
            rejected[i] = True
        assert (adjust(p) <= level).tolist() == rejected.tolist()


def test_holm_is_never_weaker_than_bonferroni():
    p = np.random.default_rng(2).random(20)
    assert (adjust(p, "holm") <= adjust(p, "bonferroni")).all()


def test_holm_bounds_false_alarms_by_simulation():
    rng = np.random.default_rng(3)
    alarms = np.mean([(adjust(rng.random(10)) <= 0.05).any() for _ in range(2000)])
    assert 0.03 < alarms < 0.07


def test_missing_tests_do_not_count():
    assert adjust([0.01, math.nan, 0.04], "bonferroni")[[0, 2]].tolist() == [0.02, 0.08]
    assert math.isnan(adjust([0.01, math.nan])[1])


@pytest.mark.parametrize("bad", [[0.5, 1.5], [-0.1], [[0.5]]])
def test_mistakes(bad):
    with pytest.raises(UserError, match="from 0 to 1"):
        adjust(bad)


def test_unknown_correction():
    with pytest.raises(UserError, match="Did you mean 'holm'"):
        adjust([0.5], "holmes")


def test_holm_never_ranks_a_larger_p_before_a_smaller_one():
    # By hand: .01·3, .011·2, .02·1, each at least as large as the one before.
    np.testing.assert_allclose(adjust([0.02, 0.01, 0.011]), [0.03, 0.03, 0.03])
