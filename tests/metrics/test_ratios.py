"""Shape bias, cue accuracies and decided fraction against counting by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from brute_force import cue_counts, divide
from cuebench.metrics.decided_fraction import decided_fraction as decided_fraction_of
from hypothesis import given
from hypothesis import strategies as st

from cuebench.errors import UserError
from cuebench.metrics import decided_fraction, shape_accuracy, shape_bias, texture_accuracy
from cuebench.registry import metrics
from cuebench.statistics.ratios import Ratio, outcomes

MODULES = (shape_bias, shape_accuracy, texture_accuracy, decided_fraction)
CLASS = st.sampled_from(["cat", "dog", "car"])
TRIALS = st.lists(st.tuples(st.sampled_from(["cat", "dog", "car", "na", "zebra"]), CLASS, CLASS), max_size=40)


def columns(trials):
    return [np.array([t[i] for t in trials], dtype=np.str_) for i in range(3)]


def by_hand(trials):
    c = cue_counts(*columns(trials))
    decided = c["shape"] + c["texture"]
    return {
        "shape_bias": divide(c["shape"], decided),
        "shape_accuracy": divide(c["shape"], c["conflict"]),
        "texture_accuracy": divide(c["texture"], c["conflict"]),
        "decided_fraction": divide(decided, c["conflict"]),
    }


@given(TRIALS)
def test_all_four_equal_counting_by_hand(trials):
    for module in MODULES:
        name = module.METRIC.name
        found, wanted = getattr(module, name)(*columns(trials)), by_hand(trials)[name]
        assert found == wanted or (math.isnan(found) and math.isnan(wanted))


@given(TRIALS, st.integers(0, 40))
def test_counts_of_shards_add_up(trials, cut):
    for module in MODULES:
        parts = [module.count(outcomes(*columns(t))) for t in (trials[:cut], trials[cut:])]
        assert parts[0] + parts[1] == module.count(outcomes(*columns(trials)))


@given(TRIALS)
def test_the_accuracies_add_up_to_the_decided_fraction(trials):
    ratios = [m.count(outcomes(*columns(trials))) for m in MODULES]
    assert ratios[1].numerator + ratios[2].numerator == ratios[3].numerator == ratios[0].denominator


def test_positions_and_names_give_the_same():
    assert shape_bias.shape_bias([0, 1, -1, 0], [0, 0, 0, 0], [1, 1, 1, 1]) == 2 / 3
    assert decided_fraction_of([0, 1, -1, 0], [0, 0, 0, 0], [1, 1, 1, 1]) == 3 / 4


def test_nothing_measured_is_nan():
    assert math.isnan(shape_bias.shape_bias(["na"], ["cat"], ["dog"]))
    assert math.isnan(shape_accuracy.shape_accuracy([], [], []))
    assert math.isnan(Ratio(0, 0).value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((["a"], ["a", "b"], ["b"]), "1 decisions, 2 shape classes, 1 texture classes"),
        (([0.5], [1], [2]), "decisions must be a list of class names or positions; got float64"),
        (([["a"]], ["a"], ["b"]), r"of shape \(1, 1\)"),
        (([1], ["a"], ["b"]), "all names or all positions"),
    ],
)
def test_bad_input(values, message):
    with pytest.raises(UserError, match=message):
        shape_bias.shape_bias(*values)


@pytest.mark.parametrize("name", ["shape_bias", "shape_accuracy", "texture_accuracy", "decided_fraction"])
def test_the_registry_explains_each(name):
    info = metrics.get(name)
    assert info.name == name
    assert info.formula
    assert info.denominator
    assert info.reference
    assert info.bounds == (0.0, 1.0)
    assert metrics.summary(name)
    assert callable(getattr(metrics.module(name), name))


def test_helpers_are_no_metrics():
    assert not {"intervals", "decisions", "ratios", "estimates"} & set(metrics)
