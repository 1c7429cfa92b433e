"""Shape bias, cue accuracies and decided fraction against counting by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_force import cue_counts, divide
from cuebench.errors import UserError
from cuebench.metrics import decided_fraction, shape_accuracy, shape_bias, texture_accuracy
from cuebench.metrics.cue_conflict import outcomes
from cuebench.registry import metrics
from cuebench.statistics.ratios import Ratio, total

METRICS = (shape_bias, shape_accuracy, texture_accuracy, decided_fraction)
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
    for metric in METRICS:
        found, wanted = metric(*columns(trials)), by_hand(trials)[metric.name]
        assert found == wanted or (math.isnan(found) and math.isnan(wanted))


@given(TRIALS)
def test_the_accuracies_add_up_to_the_decided_fraction(trials):
    bias, shape, texture, decided = (total(metric.terms(outcomes(*columns(trials)))) for metric in METRICS)
    assert shape.numerator + texture.numerator == decided.numerator == bias.denominator


def test_positions_and_names_give_the_same():
    assert shape_bias([0, 1, -1, 0], [0, 0, 0, 0], [1, 1, 1, 1]) == 2 / 3
    assert decided_fraction([0, 1, -1, 0], [0, 0, 0, 0], [1, 1, 1, 1]) == 3 / 4


def test_nothing_measured_is_nan():
    assert math.isnan(shape_bias(["na"], ["cat"], ["dog"]))
    assert math.isnan(shape_accuracy([], [], []))
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
        shape_bias(*values)


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_the_registry_explains_each(metric):
    assert metrics.get(metric.name) is metric
    assert metric.formula
    assert metric.denominator
    assert metric.reference
    assert metric.bounds == (0.0, 1.0)
    assert metrics.summary(metric.name) == metric.title
    assert metrics.module(metric.name).__name__ == "cuebench.metrics.cue_conflict"


def test_helpers_are_no_metrics():
    assert not {"base", "cue_conflict", "triplets"} & set(metrics)
