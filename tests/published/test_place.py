"""Placement: a published model finds itself, a new one its neighbours, and what is not comparable is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.published.measures import measures
from cuebench.published.place import place, placed
from cuebench.published.readme_layout import export_readme_layout
from cuebench.runs.record import RunRecord
from cuebench.runs.results import write_scores
from cuebench.types import Score

WHOLE = {"refined_bias": {"set": "refined_bias", "count": 6000, "expected": 6000, "partial": []}}


def score(metric, value, observer="mine", condition="faithful", reach=0.004, **more):
    row = Score("refined_bias", 1, observer, condition, metric, value, value - reach, value + reach, "images", 3000)
    return replace(row, **more)


def both(shape, texture, **more):
    return [score("shape_sensitivity", shape, **more), score("texture_sensitivity", texture, **more)]


def run_folder(path: Path, scores, partial=(), count=6000) -> Path:
    path.mkdir()
    stimuli = {"m.parquet": {"set": "refined_bias", "count": count, "expected": 6000, "partial": list(partial)}}
    RunRecord(arguments={}, batch_size=32, seed=0, stimuli=stimuli).write(path)
    write_scores(path, scores, {})
    return path


@pytest.mark.parametrize("model", ["ResNet-50", "BagNet-33", "CMT-B", "PRIME", "PGD-AT (l2, eps=3)"])
def test_a_published_model_finds_itself(model):
    shape, texture = measures()["refined_bias/shape_sens"], measures()["refined_bias/texture_sens"]
    weights = next(w for w, name in shape.labels.items() if name == model)
    found = placed(both(shape.values[weights], texture.values[weights], reach=0.0005), WHOLE)
    nearest = next(n for n in found.neighbours if n.by == "plane")
    assert (nearest.model, nearest.distance) == (model, 0)
    assert nearest.probability > 0.99


def test_percentiles_by_counting():
    found = placed(both(0.60, 0.55), WHOLE)
    position = next(p for p in found.positions if p.measure.endswith("shape_sens"))
    published = list(measures()["refined_bias/shape_sens"].values.values())
    assert position.models == len(published) == 51
    assert position.percentile == pytest.approx(100 * sum(v < 0.60 for v in published) / 51)
    assert position.percentile_low == pytest.approx(100 * sum(v < 0.596 for v in published) / 51)
    assert position.percentile_low <= position.percentile <= position.percentile_high


def test_ties_count_half():
    value = measures()["refined_bias/shape_sens"].values["torchvision/resnet50.IMAGENET1K_V1"]
    found = placed(both(value, 0.5), WHOLE)
    published = list(measures()["refined_bias/shape_sens"].values.values())
    below, equal = sum(v < value for v in published), sum(v == value for v in published)
    assert found.positions[0].percentile == pytest.approx(100 * (below + equal / 2) / 51)


def test_a_wide_interval_leaves_the_neighbour_open():
    sharp, vague = (placed(both(0.60, 0.55, reach=r), WHOLE).neighbours for r in (0.0005, 0.08))
    assert [n.model for n in sharp] == [n.model for n in vague]
    assert sharp[0].probability > 0.9 > vague[0].probability


def test_the_widest_interval_counts():
    rows = [*both(0.6, 0.5), *both(0.6, 0.5, reach=0.05, ci_kind="classes")]
    position = placed(rows, WHOLE).positions[0]
    assert (position.low, position.high) == pytest.approx((0.55, 0.65))


def test_profile_needs_a_third_measure():
    rows = [*both(0.6, 0.5), score("shape_preference", 0.6 / 1.1)]
    assert {n.by for n in placed(rows, WHOLE).neighbours} == {"plane", "profile"}
    assert {n.by for n in placed(both(0.6, 0.5), WHOLE).neighbours} == {"plane"}


@pytest.mark.parametrize(
    ("rows", "sets", "words"),
    [
        (both(0.6, 0.5, condition="native"), WHOLE, "other preprocessing: view native"),
        (both(0.6, 0.5), {"refined_bias": {"count": 327, "partial": ["327 of 6,000 stimuli"]}}, "partial data: 327 of"),
        (both(0.6, 0.5, note="partial set: limited to 10"), WHOLE, "partial data: limited to 10"),
        (both(0.6, 0.5), {"refined_bias": {"count": 500, "partial": []}}, "other stimuli: 500 of the published 6,000"),
        (both(0.6, 0.5, protocol_version=2), WHOLE, "version 2 of the protocol"),
        ([Score("cue_conflict", 1, "m", "partial", "shape_bias", 0.2)], {}, "does not resize"),
        ([Score("triplets", 1, "m", "x", "triplet_shape_bias", 0.2)], {}, "triplets: no published table"),
        ([Score("cue_decomposition", 1, "m", "", "S_cd", 0.5, n=1200)], {"cue_decomposition": {"count": 1200}},
         "another population H"),
        (both(float("nan"), 0.5, note="no logits")[:1], WHOLE, "no value: no logits"),
    ],
)  # fmt: skip
def test_what_is_not_comparable_is_refused_with_its_reason(rows, sets, words):
    found = placed(rows, sets)
    assert not found.positions
    assert any(words in reason for reason in found.refused), found.refused


def test_published_population_is_accepted():
    row = Score("cue_decomposition", 1, "m", "", "S_cd", 0.5, n=1200, note="H: the 43 models of Table VIII")
    assert [p.measure for p in placed([row], {"cue_decomposition": {"count": 1200}}).positions] == [
        "cue_decomposition/S_cd"
    ]


def test_a_run_folder(tmp_path):
    found = place(run_folder(tmp_path / "run", both(0.6, 0.5)))
    assert len(found.positions) == 2
    assert [row["observer"] for row in found.rows()] == ["mine"] * 5
    assert json.loads(json.dumps(found.as_dict()))["positions"][0]["models"] == 51


def test_mistakes(tmp_path):
    with pytest.raises(UserError, match="not a run folder"):
        place(tmp_path)
    with pytest.raises(UserError, match="no scores to compare"):
        place(run_folder(tmp_path / "empty", []))


def test_layout_of_the_readme(tmp_path):
    rows = [
        *both(0.6, 0.5),
        score("shape_sensitivity", 0.7, condition="faithful/class=clock"),
        score("shape_sensitivity", 0.5, condition="faithful/class=mouse"),
        score("shape_sensitivity", 0.9, condition="native"),
        score("shape_sensitivity", 0.8, observer="PRIME"),
    ]
    written = export_readme_layout(run_folder(tmp_path / "run", rows), tmp_path / "out")
    names = [str(p.relative_to(tmp_path / "out" / "results")) for p in written]
    assert names == [
        "across_learning_strategy/refined_bias_shape_mrr.json",
        "across_model_architecture/refined_bias_shape_mrr.json",
        "across_model_architecture/refined_bias_texture_mrr.json",
    ]
    assert json.loads(written[1].read_text()) == {"mine": {"score": 0.6, "class_match": {"clock": 0.7, "mouse": 0.5}}}
    with pytest.raises(UserError, match="no scores of refined_bias"):
        export_readme_layout(run_folder(tmp_path / "empty", []), tmp_path)
