"""Families, the comparison of benchmarks, and the statistics of the REFINED-BIAS paper, from scores tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import cuebench.reports
from cuebench.analyses.balance import balance
from cuebench.analyses.families import Families, Family, family_tests, read_families, values_of
from cuebench.analyses.recognition import (
    accuracy_correlation,
    balanced,
    distortions,
    in_domain,
    interval_table,
    proxy_agreement,
    recognition,
)
from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.reports.comparison import compare
from cuebench.runs.results import write_scores
from cuebench.types import Score

HOME = Path(cuebench.reports.__file__).parent
TABLE_C = HOME.parent / "published" / "tables" / "refined_bias.C.csv"
PAPER = read_families(HOME / "refined_bias_families.json")


def row(observer, metric, value, condition="faithful", protocol="refined_bias", n=100, ci=(0.0, 1.0), kind="images"):
    return Score(protocol, 1, observer, condition, metric, value, *ci, kind, n)


@pytest.fixture(scope="module")
def published():
    """Table C of the paper as if it were somebody's runs."""
    with TABLE_C.open(newline="", encoding="utf-8") as file:
        cells = {(r["model"], r["metric"], r["condition"]): float(r["value"]) for r in csv.DictReader(file)}
    rows = []
    for model in dict.fromkeys(m for m, *_ in cells):
        shape, texture = (cells[model, f"{c}_sens", "refined_bias"] for c in ("shape", "texture"))
        rows.append(row(model, "shape_sensitivity", shape))
        rows.append(row(model, "texture_sensitivity", texture))
        rows.append(row(model, "shape_preference", shape / (shape + texture)))
        rows.append(
            row(model, "shape_bias", cells[model, "shape_bias", "cue_conflict/partial"], "partial", "cue_conflict")
        )
        rows.append(row(model, "accuracy", cells[model, "in_domain", "imagenet"], "top1", "imagenet_accuracy"))
    return rows


def test_the_printed_p_values_come_out(published):
    """Table 2 of the paper, recomputed from its Table C; mixed augmentation needs A3 of Table D (.7364)."""
    found = compare(published, PAPER)
    p = {name: {t.family: t.p for t in tests} for name, tests in found.tests.items()}
    ours = p["refined_bias"]
    assert ours["Shape Aug"] == pytest.approx(0.018, abs=5e-4)
    assert ours["Contrastive"] == pytest.approx(0.009, abs=5e-4)
    assert ours["Texture Dist"] == pytest.approx(0.010, abs=5e-4)
    theirs = p["cue_conflict"]
    assert theirs["Mixed Aug"] == pytest.approx(2.72e-4, rel=0.02)
    assert theirs["Texture Dist"] == pytest.approx(0.003, abs=5e-4)
    assert theirs["Shape Aug"] == pytest.approx(0.181, abs=1e-3)
    assert theirs["Contrastive"] == pytest.approx(0.684, abs=1e-3)
    assert theirs["Adversarial"] == pytest.approx(5.19e-5, rel=0.02)
    values = values_of(published, "shape_preference", "faithful")
    mended = {**values, "A3": 0.7364 / (0.7364 + 0.6927)}
    as_printed = {t.family: t.p for t in family_tests(mended, PAPER)}["Mixed Aug"]
    assert as_printed == pytest.approx(0.002, abs=5e-4)
    assert as_printed != pytest.approx(ours["Mixed Aug"], rel=0.05)


def test_the_paper_s_verdicts_come_out(published):
    rows = {r["family"]: r for r in compare(published, PAPER).family_rows()}
    said = {family: (r["cue_conflict"]["says"], r["refined_bias"]["says"]) for family, r in rows.items()}
    assert said == {
        "Mixed Aug": ("texture", "shape"),
        "Texture Dist": ("shape", "shape"),
        "Shape Aug": ("neither", "shape"),
        "Contrastive": ("neither", "shape"),
        "Adversarial": ("shape", "neither"),
    }


def test_correlation_with_accuracy(published):
    found = accuracy_correlation(published, "shape_sensitivity", in_domain(published))
    own, accuracy = values_of(published, "shape_sensitivity", "faithful"), in_domain(published)
    expected = stats.pearsonr([own[m] for m in own], [accuracy[m] for m in own])
    assert found.value == pytest.approx(expected.statistic)
    assert found.value > 0.5
    assert found.n == 32


def test_comparison_of_partly_measured_models():
    rows = [row(m, "shape_bias", v, "partial", "cue_conflict") for m, v in (("a", 0.2), ("b", 0.4), ("c", 0.6))]
    rows += [row(m, "shape_preference", v) for m, v in (("a", 0.5), ("b", 0.6), ("c", 0.7), ("d", 0.1))]
    rows += [
        row("a", "shape_preference", 0.9, "native"),
        row("d", "shape_bias", float("nan"), "partial", "cue_conflict"),
    ]
    found = compare(rows)
    assert found.models == ("a", "b", "c", "d")
    assert found.rows()[3] == {"model": "d", "cue_conflict": None, "refined_bias": 0.1}
    assert found.conditions == {"cue_conflict": "partial", "refined_bias": "faithful"}
    assert found.agreement()["cue_conflict ~ refined_bias"].value == 1.0
    with pytest.raises(UserError, match="no benchmark to compare"):
        compare([])
    with pytest.raises(UserError, match="has the baseline 'z'"):
        compare(rows, Families("z", (Family("f", ("a",)),)))


def test_all_benchmarks_have_their_column():
    """The names that the other protocols use: a renamed metric would leave its column out without a word."""
    from cuebench.registry import metrics, protocols
    from cuebench.reports.comparison import MEASURES

    assert all(m.protocol in protocols and m.metric in metrics for m in MEASURES)
    assert all(m.metric in protocols.get(m.protocol).metrics for m in MEASURES)
    rows = [row("a", m.metric, 0.5, (m.conditions or ("experiment=1",))[0], m.protocol) for m in MEASURES]
    assert [m.protocol for m in compare(rows).measures] == [m.protocol for m in MEASURES]


def test_families_that_cannot_be_tested():
    families = Families("base", (Family("one", ("a",)), Family("gone", ("x", "a", "b"), "shape")))
    one, gone = family_tests({"base": 0.5, "a": 0.6, "b": 0.7}, families)
    assert (one.says, one.note) == ("", "1 model: no test")
    assert gone.note == "without x"
    with pytest.raises(UserError, match="baseline 'base' has no value"):
        family_tests({}, families)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "family file"),
        ('{"families": {}}', "baseline"),
        ('{"baseline": "b", "families": {"f": {"models": [], "expected": "up"}}}', "2 problems"),
    ],
)
def test_bad_family_files(tmp_path, text, message):
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(UserError, match=message):
        read_families(tmp_path / "f.json")


def classes(observer, metric, values, view="faithful"):
    return [row(observer, metric, v, f"{view}/class={c}") for c, v in values.items()]


def test_kendall_with_a_proxy():
    one = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.9}
    other = {"a": 0.2, "b": 0.3, "c": 0.5, "d": 0.8, "e": 0.1}
    found = proxy_agreement(classes("m", "texture_top1", one), classes("m", "texture_top1", other), "texture_top1")
    expected = stats.kendalltau([one[c] for c in "abcd"], [other[c] for c in "abcd"]).statistic
    assert found["m"].value == pytest.approx(expected)
    assert found["m"].n == 4
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
        row("m", "shape_accuracy", 0.30, "partial", "cue_conflict", 1200),
        row("m", "shape_accuracy", 0.04, "full", "cue_conflict", 1200),
    ]
    ours, theirs = distortions(rows)
    assert (ours.full, ours.restricted, ours.distorted) == (20, 30, 10)
    assert (theirs.full, theirs.restricted, theirs.distorted) == (48, 360, 312)


def test_people_beside_models():
    rows = classes("p1", "shape_top1", {"clock": 1.0}, "") + classes("p2", "shape_top1", {"clock": 0.8}, "")
    rows += classes("m", "shape_top1", {"clock": 0.5}) + classes("m", "shape_top1", {"clock": 0.1}, "native")
    (found,) = recognition(rows, ["p1", "p2"])
    assert found == ("shape", "clock", pytest.approx(0.9), 0.5, 2, 1)


def test_balance_levels_the_cues():
    rng = np.random.default_rng(0)
    shape = {f"s{i}": v for i, v in enumerate(rng.uniform(0.4, 0.9, 12))}
    texture = {f"t{i}": v for i, v in enumerate(rng.uniform(0.1, 0.6, 12))}
    found = balance(shape, texture, 5)
    assert sorted(found.texture.values()) == sorted(texture.values())[-5:]
    best_gap = np.mean(sorted(shape.values())[-5:]) - np.mean(list(found.texture.values()))
    assert abs(found.gap) < 0.02 < best_gap
    both = balance({"x": 0.9, "y": 0.2}, {"x": 0.1, "y": 0.8}, 1)
    assert (list(both.shape), list(both.texture)) == (["x"], ["y"])
    with pytest.raises(UserError, match="cannot choose 9"):
        balance(shape, {"t": 0.5}, 9)


def test_many_classes_are_balanced_without_trying_all():
    rng = np.random.default_rng(1)
    found = balance({f"s{i}": v for i, v in enumerate(rng.random(60))}, {f"t{i}": 0.55 for i in range(20)}, 15)
    assert abs(found.gap) < 1e-3


def test_a_panel_chooses_and_the_command_line_shows_it(tmp_path, capsys):
    rows = []
    for observer, bonus in (("m", 0.0), ("n", 0.1)):
        rows += classes(observer, "shape_sensitivity", {"a": 0.8 + bonus, "b": 0.3 + bonus, "c": 0.5 + bonus})
        rows += classes(observer, "texture_sensitivity", {"x": 0.4 + bonus, "y": 0.2 + bonus})
    found = balanced(rows, 2)
    assert set(found.shape) == {"b", "c"}
    assert found.shape["b"] == pytest.approx(0.35)
    write_scores(tmp_path, rows, {})
    assert invoke(["balance", str(tmp_path), "--classes", "2", "--out", str(tmp_path / "c.json")]) == 0
    assert json.loads((tmp_path / "c.json").read_text()) == {"shape": ["b", "c"], "texture": ["x", "y"]}
    assert "mean" in capsys.readouterr().out


def test_the_comparison_on_the_command_line(published, tmp_path, capsys):
    write_scores(tmp_path, published, {})
    families = str(HOME / "refined_bias_families.json")
    assert invoke(["comparison", str(tmp_path), "--families", families]) == 0
    assert "Kendall" in capsys.readouterr().out
    assert invoke(["comparison", str(tmp_path), "--families", families, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["families"][2]["refined_bias"]["says"] == "shape"
