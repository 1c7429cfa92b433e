"""Decisions among the few classes of the stimuli and in the whole label space, against plain loops."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import FOLDER, LabelMap, LabelSpace, label_map, label_space
from cuebench.labels.decisions import decided, first_highest, full_space, named, named_full, partial_space

SPACE = LabelSpace("five", ("tabby", "siamese", "husky", "beagle", "stone"))
TARGETS = label_map({"cat": ["tabby", "siamese"], "dog": ["husky", "beagle"]}).resolve(SPACE)


def by_hand(logits, members):
    """Softmax, mean of the members, arg max: the definition in plain Python."""
    exps = [math.exp(z) for z in logits]
    means = [sum(exps[m] / sum(exps) for m in ms) / len(ms) for ms in members.values()]
    return means.index(max(means))


def test_partial_space_on_imagenet_equals_the_definition():
    ids = json.loads((FOLDER / "imagenet1k.json").read_text("utf-8"))["ids"]
    targets = json.loads((FOLDER / "in16.json").read_text("utf-8"))["targets"]
    members = {t: [ids.index(m) for m in ms] for t, ms in targets.items()}
    assert sum(map(len, members.values())) == 207
    logits = np.random.default_rng(0).normal(size=(200, 1000)) * 4
    found = partial_space(logits, label_map("in16").resolve(label_space("imagenet1k")))
    assert found.tolist() == [by_hand(row, members) for row in logits]


def test_the_mean_differs_from_the_maximum_and_the_sum():
    # One strong cat against two good dogs: the maximum says cat, the mean says dog.
    logits = np.log([[0.4, 0.01, 0.25, 0.24, 0.1]])
    assert partial_space(logits, TARGETS).tolist() == [1]
    one_against_many = label_map({"cat": ["tabby"], "dog": ["siamese", "husky", "beagle"]}).resolve(SPACE)
    assert partial_space(np.log([[0.3, 0.2, 0.2, 0.2, 0.1]]), one_against_many).tolist() == [0]


def test_full_space_counts_members_only():
    logits = np.eye(5) * 9
    assert full_space(logits, TARGETS).tolist() == [0, 0, 1, 1, -1]
    assert partial_space(logits, TARGETS).tolist()[:4] == [0, 0, 1, 1]


def test_ties_go_to_the_first():
    assert partial_space(np.zeros((1, 5)), TARGETS).tolist() == [0]
    assert full_space(np.array([[0.0, 0, 7, 0, 7]]), TARGETS).tolist() == [1]
    assert full_space(np.array([[0.0, 0, 0, 0, 7]]), TARGETS).tolist() == [-1]


def test_big_logits_do_not_overflow():
    assert partial_space(np.array([[1e4, 0, 0, 0, 0], [0, 0, 0, -1e4, 1e4]]), TARGETS).tolist() == [0, 0]


def test_one_class_that_has_all_of_the_probability_leaves_the_decision_to_the_others():
    """Their probabilities are rounded to 0, and the first target would win (it did)."""
    assert partial_space(np.array([[0, 0, 2.0, 1, 1000]]), TARGETS).tolist() == [1]
    assert partial_space(np.array([[0, 0, 2.0, 1, np.inf]]), TARGETS).tolist() == [1]
    assert partial_space(np.array([[-1e9, -1e9, -1e9 + 64, -1e9, 0]], np.float32), TARGETS).tolist() == [1]


def test_infinite_logits():
    nothing = [-np.inf] * 4
    assert partial_space(np.array([[*nothing, 3.0], [*nothing[:3], 1.0, 3.0]]), TARGETS).tolist() == [-1, 1]
    assert partial_space(np.array([[0, 0, 0, np.inf, 0], [0, np.inf, np.inf, 0, 0]]), TARGETS).tolist() == [1, 0]


def test_named_decisions():
    assert named(["dog", "na", "Cat", "", "cat"], ["cat", "dog"]).tolist() == [1, -1, 0, -1, 0]
    assert named(np.array([], dtype=np.str_), ["cat"]).tolist() == []
    assert named_full(["husky", "stone", "tabby", "na"], SPACE, TARGETS).tolist() == [1, -1, 0, -1]


def test_decisions_are_read_in_the_label_space_of_the_observer():
    space = LabelSpace("s", ("tabby", "husky", "oak"), ("n1", "n2", "n3"))
    pets = LabelMap("pets", {"cat": ("n1",), "dog": ("n2",)})
    assert decided(["n2", "tabby", "oak", "dog"], pets, space).tolist() == [1, 0, -1, -1]
    assert decided(["dog", "cat", "tabby"], pets, None).tolist() == [1, 0, -1]
    assert decided(["n3", "husky", "dog"], None, space).tolist() == [2, 1, -1]


def test_bad_logits():
    with pytest.raises(UserError, match=r"1 of 2 answers have NaN logits \(the first is answer 1\)"):
        partial_space(np.array([[0.0] * 5, [np.nan] * 5]), TARGETS)
    with pytest.raises(UserError, match="stimuli × classes"):
        full_space(np.zeros(5), TARGETS)


@pytest.mark.parametrize("level", [0.0, -3.7, 1e4])
def test_equal_logits_choose_the_first_class_of_the_map(level):
    """Classes have 1, 2 … 120 members: how many they are must not choose (it chose "dog")."""
    targets = label_map("in16").resolve(label_space("imagenet1k"))
    for dtype in (np.float32, np.float64):
        assert targets.names[int(partial_space(np.full((1, 1000), level, dtype), targets)[0])] == "airplane"
    # A difference that float32 logits can express still decides.
    logits = np.zeros((1, 1000), np.float32)
    logits[:, targets.members[targets.names.index("dog")]] = np.float32(1e-6)
    assert targets.names[int(partial_space(logits, targets)[0])] == "dog"


@pytest.mark.parametrize(("less", "decision"), [(1e-13, 0), (1e-11, 1)])
def test_scores_that_differ_by_rounding_are_equal(less, decision):
    """Means are 1/2 and (1 + x)/2. 1e-13 is five hundred times what any CPU rounds by, and counts as equal."""
    logits = np.array([[0, -np.inf, 0, math.log(less), 0]])
    assert partial_space(logits, TARGETS).tolist() == [decision]
    scores = np.array([[-np.inf, 1 - less, 1], [-np.inf, -1 - less, -1], [-np.inf] * 3])
    assert first_highest(scores).tolist() == [decision + 1, decision + 1, 0]
