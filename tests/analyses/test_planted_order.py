"""Planted order and the sentences of the demo, from scores that are written by hand."""

from __future__ import annotations

import pytest

from cuebench.analyses.demo.findings import orders, sentences, table
from cuebench.analyses.planted_order import planted_order, planted_sign
from cuebench.registry import protocols
from cuebench.types import Score


def score(protocol: str, observer: str, value: float, *, width: float = 0.1, condition: str = "") -> Score:
    headline = protocols.get(protocol).headline
    where = condition or headline.conditions[0].replace("*", "16")
    return Score(protocol, 1, observer, where, headline.metric, value, value - width, value + width, "images", 50)


@pytest.mark.parametrize(
    ("protocol", "sign"),
    [("cue_conflict", 1), ("texture_association", -1), ("pure_shape", 1), ("imagenet_accuracy", 0)],
)
def test_the_sign_follows_the_headline(protocol, sign):
    assert planted_sign(protocol) == sign


@pytest.mark.parametrize(
    ("protocol", "shape", "texture", "as_planted", "apart"),
    [
        ("cue_conflict", 0.9, 0.1, True, True),
        ("cue_conflict", 0.55, 0.45, True, False),
        ("cue_conflict", 0.1, 0.9, False, True),
        ("texture_association", 0.1, 0.9, True, True),
    ],
)
def test_order(protocol, shape, texture, as_planted, apart):
    rows = [score(protocol, "a", shape), score(protocol, "b", texture)]
    order = planted_order(rows, protocol, shape=["a"], texture=["b"])
    assert (order.as_planted, order.apart) == (as_planted, apart)


def test_there_is_no_order_without_both():
    assert planted_order([score("cue_conflict", "a", 0.5)], "cue_conflict", shape=["a"], texture=["b"]) is None
    assert planted_order([], "cue_conflict", shape=["a"], texture=["b"]) is None


def test_three_sentences_are_computed_from_the_scores():
    rows = [
        score("cue_conflict", "control:shape", 0.9),
        score("cue_conflict", "control:texture", 0.2),
        score("cue_conflict", "control:both", 0.71),
        score("cue_conflict", "lite:efficientnet_lite0", 0.34),
        score("triplets", "control:shape", 0.1),
        score("triplets", "control:texture", 0.6),
        score("cue_decomposition_segmentation", "control:segment_shape", 0.8),
        score("cue_decomposition_segmentation", "control:segment_texture", 0.75),
    ]
    names = ("cue_conflict", "triplets", "cue_decomposition_segmentation")
    assert [o.as_planted for o in orders(rows, names)] == [True, False, True]
    first, second, third = sentences(rows, names)
    assert first.startswith("2 of the 3 protocols")
    assert "not in triplets" in first
    assert ", 1 of them" in first
    assert "0.71 [0.61, 0.81] in cue_conflict" in second
    assert "0.34 [0.24, 0.44]" in third
    assert "50 conflicts" in third
    lines = table(rows, names)
    assert [line.protocol for line in lines] == list(names)
    assert [cell.value for cell in lines[2].cells if cell] == [0.8, 0.75]


def test_what_was_not_measured_is_said():
    assert "could not be measured" in sentences([], ())[2]
