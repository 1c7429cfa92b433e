"""S_cd, R_cd and mIoU against the paper's own tables and independent implementations."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from cuebench.errors import UserError
from cuebench.metrics import (
    mean_iou,
    quality_original,
    quality_shape,
    quality_texture,
    relative_robustness,
    robustness_cd,
    shape_bias_cd,
)
from cuebench.metrics.mean_iou import ConfusionMatrix
from cuebench.protocols.correctness import Table, accuracies
from cuebench.protocols.cue_decomposition import populations as _populations
from cuebench.protocols.cue_decomposition.populations import Population
from cuebench.protocols.masks import class_ious, mean_ious
from cuebench.statistics.estimates import derived, jackknifed
from cuebench.types import Estimate

fixed = Estimate  # a printed number: no images to leave out


def accuracies_of(correct):
    """The accuracies in each condition of images × conditions, all of which were shown."""
    names = [str(i) for i in range(correct.shape[1])]
    table = Table([str(i) for i in range(len(correct))], names, np.ones(correct.shape, bool), correct)
    return list(accuracies(table).values())


TABLES = Path(__file__).parents[2] / "src" / "cuebench" / "published" / "tables"


@pytest.fixture(scope="module")
def table8():
    """Model → column → number, of the 43 models and the four 'Trained' ones."""
    models = {}
    with (TABLES / "cue_decomposition.VIII.csv").open() as file:
        for row in csv.DictReader(file):
            models.setdefault(row["model"], {"group": row["group"]})[row["condition"] + "/" + row["metric"]] = float(
                row["value"]
            )
    return models


@pytest.fixture(scope="module")
def columns(table8):
    h = [m for m in table8.values() if m["group"] != "Trained"]
    q_o, q_s, q_t = (np.array([m[k] for m in h]) for k in ("accuracy/Q_O", "accuracy/Q_S", "accuracy/voronoi/Q_T"))
    s, t = q_s.mean(), q_t.mean()
    return {
        "q_s": q_s, "q_t": q_t, "s": s, "t": t,
        "S_cd": shape_bias_cd(q_s, q_t, s, t),
        "R_cd": robustness_cd(q_s, q_t, q_o),
        "printed_S": np.array([m["voronoi/S_cd"] for m in h]),
        "printed_R": np.array([m["voronoi/R_cd"] for m in h]),
        "robustness": np.array([m["relative_robustness/mean"] for m in h]),
        "cue_conflict": np.array([m["cue_conflict/shape_bias"] for m in h]),
    }  # fmt: skip


def test_golden_rank_correlations(columns):
    assert len(columns["q_s"]) == 43
    pairs = {("R_cd", "robustness"): 0.951, ("S_cd", "cue_conflict"): 0.905, ("q_s", "robustness"): 0.887,
             ("q_s", "cue_conflict"): 0.925, ("S_cd", "robustness"): 0.707}  # fmt: skip
    for (x, y), printed in pairs.items():
        assert spearmanr(columns[x], columns[y]).statistic == pytest.approx(printed, abs=0.0012), (x, y)
    assert columns["t"] == pytest.approx(0.854, abs=0.0005)


def test_r_cd_recomputes_to_the_printed_digits_and_s_cd_only_with_another_s(columns):
    assert np.abs(columns["R_cd"] - columns["printed_R"]).max() <= 0.0011  # three rounded numbers go in
    assert columns["s"] == pytest.approx(0.584, abs=0.0005)
    assert 0.004 < np.abs(columns["S_cd"] - columns["printed_S"]).max() < 0.006
    again = shape_bias_cd(columns["q_s"], columns["q_t"], 0.573, columns["t"])
    assert np.abs(again - columns["printed_S"]).max() <= 0.0014


def test_the_frozen_population_is_table_viii(table8, columns):
    models = _populations.frozen_models(_populations.published()["heinert2025"], "imagenet")
    assert {m: (v["group"], v["original"], v["eed"], v["voronoi"]) for m, v in models.items()} == {
        m: (v["group"], v["accuracy/Q_O"], v["accuracy/Q_S"], v["accuracy/voronoi/Q_T"]) for m, v in table8.items()
    }
    (frozen,) = _populations.populations("heinert2025", "imagenet", "eed", "voronoi", {}, [])
    assert (len(frozen), frozen.s, frozen.t) == (43, pytest.approx(columns["s"]), pytest.approx(columns["t"]))
    without = _populations.populations("heinert2025", "imagenet", "eed", "voronoi", {}, ["EVA02 L"])[0]
    assert len(without) == 42
    assert without.s == pytest.approx((43 * frozen.s - 0.921) / 42)


def test_populations_of_segmentation_and_mistakes(tmp_path):
    sizes = {
        d: len(_populations.populations("heinert2025", d, "eed", "voronoi", {}, [])[0])
        for d in ("cityscapes", "ade20k")
    }
    assert sizes == {"cityscapes": 22, "ade20k": 19}
    assert _populations.populations("both", "my own", "eed", "voronoi", {}, []) == []
    with pytest.raises(UserError, match=r"population 'heinert'.*Did you mean 'heinert2025'"):
        _populations.populations("heinert", "imagenet", "eed", "voronoi", {}, [])
    with pytest.raises(UserError, match="leave out"):
        _populations.populations("heinert2025", "imagenet", "eed", "voronoi", {}, ["EVA03"])
    own = tmp_path / "mine.json"
    own.write_text(json.dumps({"sets": {"imagenet": {"models": {"a": {"eed": 0.2, "voronoi": 0.4}}}}}))
    assert _populations.populations(str(own), "imagenet", "eed", "voronoi", {}, [])[0].t == 0.4
    own.write_text("{}")
    with pytest.raises(UserError, match="cannot be used"):
        _populations.populations(str(own), "imagenet", "eed", "voronoi", {}, [])


def test_edges_of_the_formulas():
    assert shape_bias_cd(0.3, 0.4, 0.3, 0.4) == 0.5
    assert np.isnan(shape_bias_cd(0.0, 0.0, 0.3, 0.4))
    assert np.isnan(robustness_cd(0.1, 0.1, 0.0))
    assert np.isnan(relative_robustness([0.1], 0.0))
    assert relative_robustness([0.5, 0.25], 0.5) == 0.75
    assert [f(3, 4) for f in (quality_original, quality_shape, quality_texture)] == [0.75] * 3
    assert np.isnan(quality_shape(0, 0))
    with pytest.raises(UserError, match="no model is left"):
        Population("run", {"a": fixed(0.5, 0)}, {"a": fixed(0.5, 0)}).without({"a"})


def test_a_run_population_moves_with_the_images_and_a_frozen_one_does_not():
    left = np.array([0.1, 0.3])
    shape, texture = (jackknifed(v, 5, {"images": {"images": k * left}}) for v, k in ((0.2, 1), (0.4, 2)))
    run = Population("run", {"a": shape}, {"a": texture})
    np.testing.assert_allclose(run.mean_shape.left_out["images"]["images"], left)
    np.testing.assert_allclose(run.mean_texture.left_out["images"]["images"], left * 2)
    frozen = Population("x", {"a": fixed(0.2, 0)}, {"a": fixed(0.4, 0)})
    assert (frozen.s, frozen.t) == (0.2, 0.4)
    assert not frozen.mean_shape.left_out


def test_a_member_of_one_image_holds_the_mean_fixed():
    members = {
        "a": jackknifed(0.2, 5, {"images": {"images": np.array([0.1, 0.3])}}),
        "b": jackknifed(0.4, 1, {"images": {"images": np.empty(0)}}),
    }
    population = Population("run", members, members)
    assert population.s == pytest.approx(0.3)
    assert not population.mean_shape.left_out


def test_a_file_with_bad_qualities_is_refused_before_a_run(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"sets": {"imagenet": {"models": {"a": {"eed": 20, "voronoi": True, "year": 2020}}}}}))
    with pytest.raises(UserError) as refused:
        _populations.check_population(str(path))
    assert "2 problems" in refused.value.message
    assert "a: eed is 20" in refused.value.message
    with pytest.raises(UserError, match="does not exist"):
        _populations.check_population(str(tmp_path / "other.json"))


def test_formulas_work_element_by_element():
    q_s, q_t, q_o = np.array([[0.2, 0.6, 0.0], [0.4, 0.3, 0.0], [0.8, 0.9, 0.0]])
    biases = [shape_bias_cd(a, b, 0.3, 0.5) for a, b in zip(q_s.tolist(), q_t.tolist())]
    np.testing.assert_array_equal(shape_bias_cd(q_s, q_t, 0.3, 0.5), biases)
    np.testing.assert_array_equal(
        robustness_cd(q_s, q_t, q_o), [robustness_cd(*q) for q in zip(q_s.tolist(), q_t.tolist(), q_o.tolist())]
    )
    np.testing.assert_array_equal(
        relative_robustness([q_s, q_t], q_o),
        [relative_robustness(q[:2], q[2]) for q in zip(q_s.tolist(), q_t.tolist(), q_o.tolist())],
    )
    assert np.isnan(relative_robustness([], 0.5))


def reference_miou(truth, answer, classes, ignore=255):
    """Another way to the same number: sets of pixels, class by class, in plain Python."""
    values = []
    for c in range(classes):
        both = either = 0
        for a, b in zip(truth.ravel().tolist(), answer.ravel().tolist()):
            if a == ignore:
                continue
            both += a == c == b
            either += c in (a, b)
        if either:
            values.append(both / either)
    return sum(values) / len(values) if values else float("nan")


masks = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seed=masks, classes=st.integers(1, 7))
def test_miou_equals_an_independent_reference(seed, classes):
    rng = np.random.default_rng(seed)
    shape = (2, int(rng.integers(1, 9)), int(rng.integers(1, 9)))
    truth = rng.choice([*range(classes), 255], shape).astype(np.uint8)
    answer = rng.integers(-1, classes + 2, shape)
    ours, theirs = mean_iou(truth, answer, classes), reference_miou(truth, answer, classes)
    assert (np.isnan(ours) and np.isnan(theirs)) or abs(ours - theirs) < 1e-9


@settings(max_examples=30, deadline=None)
@given(seed=masks)
def test_any_partition_into_shards_gives_the_same_bytes(seed):
    rng = np.random.default_rng(seed)
    truth = rng.choice([0, 1, 2, 255], (9, 6, 5)).astype(np.uint8)
    answer = rng.integers(-1, 4, truth.shape)
    whole = ConfusionMatrix.of(truth, answer, 3)
    order, cuts = rng.permutation(9), np.sort(rng.integers(0, 10, 3))
    merged = ConfusionMatrix.empty(3)
    for part in np.split(order, cuts):
        shard = ConfusionMatrix.empty(3)
        for i in part:
            shard = shard + ConfusionMatrix.of(truth[i], answer[i], 3)
        merged = merged + shard
    assert merged.counts.tobytes() == whole.counts.tobytes()
    assert merged.mean == whole.mean or np.isnan(whole.mean)


def test_absent_classes_never_count():
    truth, answer = np.array([[0, 0, 1]]), np.array([[0, 0, 1]])
    assert mean_iou(truth, answer, 50) == 1.0
    assert np.isnan(ConfusionMatrix.of(truth, answer, 50).iou[2:]).all()
    assert mean_iou(truth, np.array([[0, 0, 7]]), 50) == pytest.approx((1 + 0 + 0) / 3)  # class 7 occurs in the answer
    assert mean_iou(truth, np.array([[0, 0, -1]]), 50) == pytest.approx((1 + 0) / 2)  # an answer outside all classes
    assert np.isnan(mean_iou(np.full((1, 3), 255), answer, 2))
    with pytest.raises(UserError, match=r"unknown ids \[9\]"):
        mean_iou(np.array([[9]]), np.array([[0]]), 2)
    with pytest.raises(UserError, match="shape"):
        mean_iou(np.zeros((2, 2)), np.zeros((2, 3)), 2)


def test_leaving_out_confusion_matrices_is_leaving_out_images():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, (40, 4, 4))
    answer = np.where(rng.random(truth.shape) < rng.random((40, 1, 1)), truth, rng.integers(0, 3, truth.shape))
    areas = np.stack([ConfusionMatrix.of(t, a, 3).areas for t, a in zip(truth, answer)])
    table = Table([str(i) for i in range(40)], ["original"], np.ones((40, 1), bool), areas[:, None])
    found = mean_ious(table)["original"]
    left = found.left_out["images"]["images"]
    assert found.value == pytest.approx(reference_miou(truth, answer, 3), abs=1e-9)
    plain = [reference_miou(np.delete(truth, i, 0), np.delete(answer, i, 0), 3) for i in range(40)]
    np.testing.assert_allclose(left, plain, atol=1e-9)
    classes = class_ious(table, "original")
    np.testing.assert_allclose(np.mean([c.left_out["images"]["images"] for c in classes], axis=0), left)


def test_intervals_of_r_cd_and_s_cd_cover_the_truth():
    """Two models, 150 images whose difficulty is shared by all versions and both models; the truth is known."""
    rng = np.random.default_rng(8)
    lean = {"a": np.array([1.5, -0.5, 0.3]), "b": np.array([1.0, 0.4, 0.1])}  # original, shape, texture
    hard = rng.normal(size=200_000)
    p = {m: (1 / (1 + np.exp(hard[:, None] - v))).mean(axis=0) for m, v in lean.items()}
    s, t = (np.mean([p[m][i] for m in p]) for i in (1, 2))
    truth = robustness_cd(p["a"][1], p["a"][2], p["a"][0]), shape_bias_cd(p["a"][1], p["a"][2], s, t)
    hits = np.zeros(2)
    for _ in range(200):
        easy = rng.normal(size=(150, 1))
        found = {}
        for m, v in lean.items():
            correct = rng.random((150, 3)) < 1 / (1 + np.exp(easy - v))
            found[m] = accuracies_of(correct)
        q_o, q_s, q_t = found["a"]
        h = Population("run", {m: q[1] for m, q in found.items()}, {m: q[2] for m, q in found.items()})
        estimates = (
            derived(robustness_cd, q_s, q_t, q_o),
            derived(shape_bias_cd, q_s, q_t, h.mean_shape, h.mean_texture),
        )
        for k, estimate in enumerate(estimates):
            (interval,) = estimate.intervals
            hits[k] += interval.low <= truth[k] <= interval.high
    # Standard error of a coverage of .95 with 200 experiments: .015.
    assert (hits / 200 >= 0.90).all(), hits / 200
    assert (hits / 200 <= 0.995).all(), hits / 200
