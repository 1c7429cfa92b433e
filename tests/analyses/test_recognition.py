"""The statistics of the REFINED-BIAS paper from scores tables, and the choice of balanced classes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import cuebench
from cuebench.analyses.balance import balance
from cuebench.analyses.recognition import (
    accuracy_correlation,
    balanced,
    distortions,
    in_domain,
    interval_table,
    proxy_agreement,
)
from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.runs.results import write_scores
from cuebench.types import Axis, Score

TABLE_C = Path(cuebench.__file__).parent / "published" / "tables" / "refined_bias.C.csv"


def row(observer, metric, value, condition="faithful", protocol="refined_bias", n=100, ci=(0.0, 1.0), kind="images"):
    return Score(protocol, 1, observer, condition, metric, value, *ci, kind, n)


def classes(observer, metric, values, view="faithful"):
    return [row(observer, metric, v, f"{view}/class={c}") for c, v in values.items()]


def test_correlation_with_accuracy():
    preference = {"a": 0.3, "b": 0.5, "c": 0.4, "d": 0.8, "e": 0.6}
    accuracy = {"a": 0.6, "b": 0.7, "c": 0.72, "d": 0.8, "other": 0.1}
    rows = [row(m, "shape_preference", v) for m, v in preference.items()]
    rows += [row(m, "shape_preference", 1 - v, "native") for m, v in preference.items()]
    rows += [row(m, "texture_sensitivity", 1 - v) for m, v in preference.items()]
    rows += [row(m, "accuracy", v, "top1", "imagenet_accuracy") for m, v in accuracy.items()]
    rows += [row(m, "accuracy", 0.99, "top5", "imagenet_accuracy") for m in accuracy]
    assert in_domain(rows) == accuracy
    correlation = accuracy_correlation(rows)
    expected = stats.pearsonr([preference[m] for m in "abcd"], [accuracy[m] for m in "abcd"]).statistic
    assert (correlation.value, correlation.n) == (pytest.approx(expected), 4)
    assert accuracy_correlation(rows, Axis("texture_sensitivity", ("faithful",))).value == pytest.approx(-expected)
    assert accuracy_correlation(rows, accuracy={"a": 1.0, "b": 2.0, "e": 3.0}).n == 3
    with pytest.raises(UserError, match="both a score of refined_bias and an accuracy"):
        accuracy_correlation(rows[:5])


def test_correlation_with_accuracy_in_the_published_table():
    """Table C of the paper as if it were a run: shape sensitivity goes with accuracy over 32 models."""
    with TABLE_C.open(newline="", encoding="utf-8") as file:
        cells = {(r["model"], r["metric"], r["condition"]): float(r["value"]) for r in csv.DictReader(file)}
    models = list(dict.fromkeys(model for model, *_ in cells))
    sensitivity = [cells[m, "shape_sens", "refined_bias"] for m in models]
    accuracy = [cells[m, "in_domain", "imagenet"] for m in models]
    rows = [row(m, "shape_sensitivity", v) for m, v in zip(models, sensitivity)]
    rows += [row(m, "accuracy", v, "top1", "imagenet_accuracy") for m, v in zip(models, accuracy)]
    correlation = accuracy_correlation(rows, Axis("shape_sensitivity", ("faithful",)))
    assert correlation.value == pytest.approx(stats.pearsonr(sensitivity, accuracy).statistic)
    assert correlation.value > 0.5
    assert correlation.n == 32


def test_kendall_with_a_proxy():
    on_cue = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.9}
    on_proxy = {"a": 0.2, "b": 0.3, "c": 0.5, "d": 0.8, "e": 0.1}
    tables = classes("m", "texture_top1", on_cue), classes("m", "texture_top1", on_proxy)
    correlations = proxy_agreement(*tables, "texture_top1")
    expected = stats.kendalltau([on_cue[c] for c in "abcd"], [on_proxy[c] for c in "abcd"]).statistic
    assert correlations["m"].value == pytest.approx(expected)
    assert correlations["m"].n == 4
    with pytest.raises(UserError, match="three classes"):
        proxy_agreement(classes("m", "texture_top1", {"a": 1.0}), [], "texture_top1")


def test_table_of_intervals():
    rows = [
        row("m", "shape_sensitivity", 0.56, ci=(0.55, 0.57)),
        row("m", "shape_sensitivity", 0.56, ci=(0.3, 0.8), kind="classes"),
        row("m", "texture_sensitivity", 0.57, ci=(0.55, 0.58)),
    ]
    assert interval_table(rows) == [("m", (0.55, 0.56, 0.57), (0.55, 0.57, 0.58))]
    assert interval_table(rows, kind="classes")[0].shape == (0.3, 0.56, 0.8)


def test_distorted_predictions():
    rows = [
        row("m", "shape_top1", 0.4, n=50),
        row("m", "distorted_prediction", 0.2, "faithful/cue=shape", n=50),
        row("m", "shape_accuracy", 0.30, "16-way", "cue_conflict", 1200),
        row("m", "shape_accuracy", 0.04, "1000-way", "cue_conflict", 1200),
        row("person", "shape_accuracy", 0.9, "16-way", "cue_conflict", 1200),
        row("person", "shape_accuracy", float("nan"), "1000-way", "cue_conflict", 0),
    ]
    refined, conflict = distortions(rows)
    assert (refined.observer, refined.protocol, refined.cue) == ("m", "refined_bias faithful", "shape")
    assert (refined.full, refined.restricted, refined.distorted) == (20, 30, 10)
    assert (conflict.observer, conflict.protocol, conflict.cue) == ("m", "cue_conflict", "shape")
    assert (conflict.full, conflict.restricted, conflict.distorted) == (48, 360, 312)


# ------------------------------------------------------------------------------------------------- balanced classes


def test_balance_levels_the_cues():
    rng = np.random.default_rng(0)
    shape = {f"s{i}": v for i, v in enumerate(rng.uniform(0.4, 0.9, 12))}
    texture = {f"t{i}": v for i, v in enumerate(rng.uniform(0.1, 0.6, 12))}
    choice = balance(shape, texture, 5)
    assert sorted(choice.texture.values()) == sorted(texture.values())[-5:]
    best_gap = np.mean(sorted(shape.values())[-5:]) - np.mean(list(choice.texture.values()))
    assert abs(choice.gap) < 0.02 < best_gap
    both = balance({"x": 0.9, "y": 0.2}, {"x": 0.1, "y": 0.8}, 1)
    assert (list(both.shape), list(both.texture)) == (["x"], ["y"])
    with pytest.raises(UserError, match="cannot choose 9"):
        balance(shape, {"t": 0.5}, 9)


def test_many_classes_are_balanced_without_trying_all():
    rng = np.random.default_rng(1)
    choice = balance({f"s{i}": v for i, v in enumerate(rng.random(60))}, {f"t{i}": 0.55 for i in range(20)}, 15)
    assert abs(choice.gap) < 1e-3


def test_a_panel_chooses_and_the_command_line_shows_it(tmp_path, capsys):
    rows = []
    for observer, bonus in (("m", 0.0), ("n", 0.1)):
        rows += classes(observer, "shape_sensitivity", {"a": 0.8 + bonus, "b": 0.3 + bonus, "c": 0.5 + bonus})
        rows += classes(observer, "texture_sensitivity", {"x": 0.4 + bonus, "y": 0.2 + bonus})
    choice = balanced(rows, 2)
    assert set(choice.shape) == {"b", "c"}
    assert choice.shape["b"] == pytest.approx(0.35)
    with pytest.raises(UserError, match="Did you mean 'sensitivity'"):
        balanced(rows, 2, measure="sensitivty")
    write_scores(tmp_path, rows, {})
    assert invoke(["data", "balance", str(tmp_path), "--classes", "2", "--out", str(tmp_path / "c.json")]) == 0
    assert json.loads((tmp_path / "c.json").read_text()) == {"shape": ["b", "c"], "texture": ["x", "y"]}
    assert "mean" in capsys.readouterr().out


def test_people_choose_classes_too(tmp_path, capsys):
    """The same three shape classes are easy for models and hard for people, so that the choice depends on the panel."""
    rows = classes("m", "shape_top1", {"a": 0.9, "b": 0.5, "c": 0.1})
    rows += classes("m", "texture_top1", {"x": 0.9, "y": 0.5, "z": 0.1})
    for person in ("p1", "p2"):
        rows += classes(person, "shape_top1", {"a": 0.1, "b": 0.5, "c": 0.9}, "whole")
        rows += classes(person, "texture_top1", {"x": 0.8, "y": 0.9, "z": 0.7}, "whole")
    people = ("p1", "p2")
    assert set(balanced(rows, 1, measure="top1", people=people).shape) == {"a"}
    assert set(balanced(rows, 1, measure="top1", people=people, by="people").shape) == {"c"}
    both = balanced(rows, 3, measure="top1", people=people, by="both")
    assert both.shape == {"a": 0.5, "b": 0.5, "c": 0.5}
    assert both.texture == pytest.approx({"x": 0.85, "y": 0.7, "z": 0.4})
    for message, options in (
        ("people have no sensitivity", {"by": "people", "measure": "sensitivity"}),
        ("Did you mean 'people'", {"by": "peple", "measure": "top1"}),
    ):
        with pytest.raises(UserError, match=message):
            balanced(rows, 1, people=people, **options)
    with pytest.raises(UserError, match="has no people"):
        balanced(rows, 1, measure="top1", by="people")
    write_scores(tmp_path, rows, {})
    assert invoke(["data", "balance", str(tmp_path), "--classes", "1", "--by", "people"]) == 2
    assert "the run has no people" in capsys.readouterr().err
