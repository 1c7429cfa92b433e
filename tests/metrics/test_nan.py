"""No metric turns answers that are not numbers into a score."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench import metrics
from cuebench.errors import UserError
from cuebench.labels.checks import refuse_nan
from cuebench.labels.decisions import full_space, partial_space
from cuebench.labels.ranks import best_ranks, compiled_counter, count_with_numpy
from cuebench.metrics.texture_confidence import top1
from cuebench.registry import metrics as registered

TARGET, MEMBERS = np.array([0, 1, 0]), [np.array([0, 3]), np.array([1])]
OF_RANKS = [f"{cue}_{measure}" for cue in ("shape", "texture") for measure in ("sensitivity", "top1", "top5")]


def logits(bad=2):
    """Return three answers over five classes, the last ``bad`` of them with NaN."""
    values = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    values[3 - bad :, 4] = np.nan
    return values


@pytest.mark.parametrize("name", [*OF_RANKS, "distorted_prediction"])
def test_ranks_of_nan_are_refused_with_their_number(name):
    with pytest.raises(UserError, match=r"2 of 3 answers have NaN logits \(the first is answer 1\)"):
        getattr(metrics, name)(logits(), TARGET, MEMBERS)
    with pytest.raises(UserError, match="3 of 3 answers"):
        getattr(metrics, name)(np.full((3, 5), np.nan), TARGET, MEMBERS)
    assert 0 <= getattr(metrics, name)(logits(0), TARGET, MEMBERS) <= 1


def test_accuracy_confidence_and_consistency_refuse_nan():
    with pytest.raises(UserError, match="2 of 3 answers have NaN logits"):
        metrics.accuracy(logits(), TARGET)
    with pytest.raises(UserError, match="2 of 3 answers have NaN logits"):
        top1(logits())
    with pytest.raises(UserError, match="NaN correctness"):
        metrics.error_consistency([1.0, np.nan], [1.0, 0.0])


def test_every_metric_of_logits_is_tried():
    """Those that take logits themselves are tried above; the others get numbers made by functions that refuse."""
    direct = {m for m in registered.names() if "logits" in str(getattr(metrics, m).__signature__)}
    assert direct == {*OF_RANKS, "distorted_prediction", "accuracy"}


@pytest.mark.parametrize("decide", [partial_space, full_space])
def test_decisions_refuse_nan(decide):
    with pytest.raises(UserError, match="NaN logits"):
        decide(logits(), None)


def test_infinite_logits_are_ranked():
    """A masked class has −∞, and ∞ − ∞ in a sum is no NaN of the answer."""
    values = np.array([[np.inf, -np.inf, 1.0], [0.0, -np.inf, np.inf]])
    refuse_nan(values)
    assert best_ranks(values, np.array([0, 0]), [np.array([0])]).tolist() == [1, 2]
    with np.errstate(all="raise"):
        refuse_nan(np.full((2, 3), 3e38, np.float32))


@pytest.mark.parametrize("counter", [count_with_numpy, compiled_counter], ids=["numpy", "numba"])
def test_equal_logits_decide_by_class_index(counter):
    """All logits equal: the rank of a class is its index + 1, of several members that of the first."""
    count = counter() if counter is compiled_counter else counter
    members = np.array([[4, 2], [0, 0], [3, 3]])
    assert count(np.zeros((3, 6), np.float32), members).tolist() == [3, 1, 4]
