"""The figures of the REFINED-BIAS paper: what they show is what was planted, for few and for many observers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from planted_runs import CLASSES, conflict_and_pure_shape, distorted, sensitivities

pytest.importorskip("altair", reason="figures need the extra 'report': pip install 'cuebench[report]'")

from cuebench.analyses.class_wise import read_panel
from cuebench.analyses.conflict_examples import conflict_images, examples
from cuebench.errors import UserError
from cuebench.published.tables import column
from cuebench.registry import figures


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return conflict_and_pure_shape(tmp_path_factory.mktemp("runs"))


def test_bars_by_class_are_the_means_of_the_panel(runs):
    picture = figures.get("class_recognition")(runs)
    panel = read_panel(runs)
    sources = {r["source"] for r in picture.data}
    assert sources == {"shape answers", "texture answers", "silhouettes", "edges"}
    for row in picture.data:
        who = panel.people if row["group"] == "people" else panel.models
        own = [panel.of(o, row["source"])[row["class"]] for o in who if panel.of(o, row["source"])]
        assert row["value"] == pytest.approx(np.mean(own))
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
    assert {r["n"] for r in picture.data if r["group"] == "people"} == {2}
    assert "2 people" in picture.subtitle
    assert picture.json() == figures.get("class_recognition")(runs).json()


def test_taus_are_those_of_the_command(runs):
    picture = figures.get("class_agreement")(runs)
    panel = read_panel(runs)
    names = {r["name"] for r in picture.data}
    assert names == {"net0", "net1", "net2", "all models"}
    for row in picture.data:
        if row["name"] != "all models":
            x, y = (panel.of(row["observer"], row[key]) for key in ("cue_conflict", "pure"))
            expected = stats.kendalltau([x[c] for c in CLASSES], [y[c] for c in CLASSES]).statistic
            assert row["value"] == pytest.approx(expected, nan_ok=True)
    assert "Kendall's τ over 5 classes" in picture.subtitle
    assert b"PNG" in picture.png()[:8]


def test_examples_are_the_extreme_images_of_different_classes(runs):
    found = conflict_images([runs[0]])
    assert len(found.images) == 20  # five aligned images are no example
    assert all(i.shape + i.texture + i.neither == pytest.approx(1) for i in found.images)
    assert {i.n for i in found.images} == {3}
    best = examples(found.images, "texture", 4)
    assert len({i.stimulus.shape for i in best}) == len({i.stimulus.texture for i in best}) == 4
    assert best[0].texture == max(i.texture for i in found.images)
    people = conflict_images([runs[0]], "people")
    assert people.observers == ("subject-01", "subject-02")
    picture = figures.get("conflict_examples")(runs[0], count=3)
    assert {r["kind"] for r in picture.data} <= {"shape", "texture", "neither"}
    assert sum(r["kind"] == "shape" for r in picture.data) == 3
    assert picture.svg().count("data:image/png") >= 6


def test_contours_beside_the_outline_of_the_shape(runs):
    picture = figures.get("contour_overlay")(runs[0], images=("cat1-airplane3",))
    (row,) = picture.data
    assert (row["image"], row["shape_class"], row["texture_class"]) == ("cat1-airplane3", "cat", "airplane")
    # The picture shows a disc where its silhouette has one: hardly any contour is far from the outline.
    assert row["leaked"] < 0.2
    assert "blue: outline" in picture.subtitle
    with pytest.raises(UserError, match="Did you mean 'cat1-airplane3'"):
        figures.get("contour_overlay")(runs[0], images=("cat1-airplane9",))


def test_pictures_that_are_gone(runs, tmp_path):
    moved = conflict_and_pure_shape(tmp_path, models=1, people=0)[0]
    for path in (tmp_path / "cue_conflict" / "stimuli").rglob("*.png"):
        path.unlink()
    with pytest.raises(UserError, match="needs the stimuli where the run found them"):
        figures.get("conflict_examples")(moved)


def test_r_over_all_models_and_within_families(tmp_path):
    run = sensitivities(tmp_path / "scores")
    families = {"first": {"models": ["net0", "net1", "net2", "net3"]}, "second": {"models": ["net4", "net5", "net6"]}}
    file = tmp_path / "families.json"
    file.write_text(json.dumps({"baseline": "net7", "families": families}))
    picture = figures.get("sensitivity_vs_accuracy")(run, families=str(file))
    assert {r["family"] for r in picture.data} == {"first", "second", "no family"}
    svg = picture.svg()
    for rows, word in ((picture.data, "r = "), (picture.data[:4], "first ")):
        x, y = ([r[key] for r in rows] for key in ("imagenet_accuracy", "shape_sensitivity"))
        assert f"{word}{stats.pearsonr(x, y).statistic:.2f}" in svg
    assert "relative robustness" in svg


def test_the_papers_models_stand_beside_the_run(tmp_path):
    run = sensitivities(tmp_path, models=2)
    picture = figures.get("sensitivity_vs_accuracy")(run, published="strategies")
    assert len(picture.data) == 2 + 32
    printed = column("refined_bias", "C", "refined_bias", "shape_sens")
    accuracy = column("refined_bias", "C", "imagenet", "in_domain")
    x, y = [accuracy[m].value for m in printed], [printed[m].value for m in printed]
    paper = [r for r in picture.data if r["family"] != "this run"]
    assert stats.pearsonr(
        [r["imagenet_accuracy"] for r in paper], [r["shape_sensitivity"] for r in paper]
    ).statistic == (pytest.approx(stats.pearsonr(x, y).statistic))
    assert "Adversarial" in picture.svg()
    assert {r["family"] for r in figures.get("sensitivity_vs_accuracy")(run, published="architectures").data} == {
        "this run", "CNNs", "Transformers",
    }  # fmt: skip


def test_distorted_predictions_are_counted(tmp_path):
    picture = figures.get("distorted_predictions")(distorted(tmp_path))
    rows = {(r["name"], r["set"], r["answer"]): r["images"] for r in picture.data}
    assert rows["net0", "cue conflict: shape", "right among all classes"] == 48
    assert rows["net0", "cue conflict: shape", "right among the set's classes only"] == 312
    assert rows["net2", "refined bias faithful: texture", "right among the set's classes only"] == 60


@pytest.mark.slow
@pytest.mark.parametrize("models", [1, 30])
def test_one_and_many_observers(tmp_path, models):
    for name, source in (
        ("distorted_predictions", distorted(tmp_path / "a", models)),
        ("sensitivity_vs_accuracy", sensitivities(tmp_path / "b", models)),
    ):
        if models == 1 and name == "sensitivity_vs_accuracy":
            with pytest.raises(UserError, match="fewer than two models"):
                figures.get(name)(source)
        else:
            assert b"PNG" in figures.get(name)(source).png()[:8]
