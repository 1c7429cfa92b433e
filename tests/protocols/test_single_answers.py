"""Single answers of every protocol: their rows give the scores back, and so do the sums that comparisons rest on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cuebench.options import parse
from cuebench.protocols.base import ByObserver, ScoreOptions, score_rows
from cuebench.protocols.headline import headline_column
from cuebench.protocols.trials import MEASURED, Asked
from cuebench.registry import BUILT_IN, protocols
from cuebench.responses.table import Responses
from planted_scores import MIXTURES, answers, data_root

WITH_SUMS = [name for name, protocol in protocols.usable() if protocol.contributions is not None]
OBSERVERS = (MIXTURES[1], MIXTURES[3])


@cache
def scored(name: str):
    """Return the responses of two ideal observers, how they are scored, and what comes of it."""
    protocol = protocols.get(name)
    responses = answers(name, protocol.read(data_root(name)), OBSERVERS)
    options = ScoreOptions(resamples=20, values=parse(protocol.options, {}, name))
    result = protocol.score(responses, options)
    return responses, options, score_rows(protocol, result), result.tables


def rows_of(name: str, responses: Responses):
    options = scored(name)[1]
    return list(protocols.get(name).trials.rows(responses, options))


def means(name: str, responses: Responses, column: str, of: Callable = lambda values: values) -> dict[str, float]:
    """Return condition → mean of a column of trials, weighted by the decisions behind each row."""
    sums: dict[str, list[float]] = {}
    for part in rows_of(name, responses):
        if column not in part.columns:
            continue
        values = np.asarray(of(np.asarray(part.columns[column])), float)
        weights = np.asarray(part.columns.get("n", np.ones(len(values))), float)
        conditions = [part.condition] * len(values) if isinstance(part.condition, str) else part.condition
        for condition, value, weight in zip(conditions, values, weights):
            entry = sums.setdefault(str(condition), [0.0, 0.0])
            entry[0] += value * weight
            entry[1] += weight
    return {condition: total / weight for condition, (total, weight) in sums.items()}


def values(name: str, observer: str, metric: str) -> dict[str, float]:
    return {r.condition: r.value for r in scored(name)[2] if (r.observer, r.metric) == (observer, metric)}


# ------------------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize("name", WITH_SUMS)
def test_the_sums_give_the_headline(name):
    responses, options, rows, tables = scored(name)
    protocol = protocols.get(name)
    column = headline_column(rows, name)
    asked = Asked(column.condition, options, tables.__getitem__)
    condense = protocol.score.condense if isinstance(protocol.score, ByObserver) else None
    for each in responses:
        seen = each.condensed(condense(each.stimuli, each.labels)) if condense else each
        sums = protocol.contributions(seen, asked)
        assert sums.value == pytest.approx(column.rows[each.observer].value, abs=1e-12)
        assert all(len(v) == len(sums.images) == len(sums.values) for v in sums.sources.values())
        twice = np.concatenate([sums.values, sums.values])
        assert replace(sums, values=twice).value == pytest.approx(sums.value, abs=1e-12), "a mean, not a sum"
        assert protocol.contributions(seen, asked._replace(condition="no such condition")) is None


def test_every_built_in_protocol_can_be_compared():
    built_in = {name for name in protocols if protocols.origin(name) == BUILT_IN}
    assert set(WITH_SUMS) == built_in - {"human_alignment"}  # a mean over people of a ratio of each


# ------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("name", [*protocols])
def test_rows_are_about_the_answers(name):
    for responses in scored(name)[0]:
        found = rows_of(name, responses)
        assert found
        for part in found:
            assert set(part.columns) <= set(MEASURED)
            assert len(part.rows) == 0 or 0 <= min(part.rows) <= max(part.rows) < len(responses)
            for column in part.columns.values():
                assert len(column) == len(part.rows)


def test_cue_conflict_outcomes_give_all_ratios_back():
    for responses in scored("cue_conflict")[0]:
        for part in rows_of("cue_conflict", responses):
            outcome = part.columns["outcome"]
            shape, texture = (outcome == "shape").sum(), (outcome == "texture").sum()
            conflict = (responses.truth("shape") != responses.truth("texture")).sum()
            expected = {
                "shape_bias": shape / (shape + texture),
                "shape_accuracy": shape / conflict,
                "texture_accuracy": texture / conflict,
                "decided_fraction": (shape + texture) / conflict,
            }
            for metric, value in expected.items():
                assert values("cue_conflict", responses.observer, metric)[part.condition] == pytest.approx(value)
            aligned = responses.truth("shape") == responses.truth("texture")
            assert set(outcome[aligned]) <= {"both", "other", "no answer"}
            assert set(part.columns["decision"]) <= {*responses.labels.names, ""}


@pytest.mark.parametrize(
    ("name", "metric"),
    [("cue_decomposition", "quality_shape"), ("feature_suppression", "accuracy"), ("corruption_robustness", "accuracy"),
     ("texture_association", "accuracy")],
)  # fmt: skip
def test_correct_answers_give_the_accuracy_back(name, metric):
    for responses in scored(name)[0]:
        found = means(name, responses, "correct")
        expected = values(name, responses.observer, metric)
        assert expected
        assert {c: found[c] for c in expected} == pytest.approx(expected)


def test_ranks_and_numbers_give_the_scores_back():
    for responses in scored("imagenet_accuracy")[0]:
        accuracy = values("imagenet_accuracy", responses.observer, "accuracy")
        assert means("imagenet_accuracy", responses, "correct")["top1"] == pytest.approx(accuracy["top1"])
        within = means("imagenet_accuracy", responses, "rank", lambda ranks: ranks <= 5)
        assert within["top1"] == pytest.approx(accuracy["top5"])
    for responses in scored("triplets")[0]:
        expected = values("triplets", responses.observer, "triplet_shape_bias")
        found = means("triplets", responses, "value")
        assert found == pytest.approx({c: expected[c] for c in found})
    for responses in scored("texture_association")[0]:
        expected = values("texture_association", responses.observer, "texture_confidence")["textures"]
        assert means("texture_association", responses, "value")["textures"] == pytest.approx(expected)
    for responses in scored("refined_bias")[0]:
        (part,) = rows_of("refined_bias", responses)
        of_shape = responses.truth("shape") != ""
        for cue, mask in (("shape", of_shape), ("texture", ~of_shape)):
            expected = values("refined_bias", responses.observer, f"{cue}_sensitivity")[responses.view]
            assert part.columns["value"][mask].mean() == pytest.approx(expected)
            assert np.allclose(part.columns["value"], 1 / part.columns["rank"])


def test_masks_have_a_mean_iou():
    for responses in scored("cue_decomposition_segmentation")[0]:
        (part,) = rows_of("cue_decomposition_segmentation", responses)
        ious = np.asarray(part.columns["value"])
        assert len(ious) == len(responses)
        assert (ious[responses.truth("condition") == "original"] <= 1).all()
