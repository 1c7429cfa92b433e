"""The comparison of protocols and what they say about training families, from scores tables."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

import cuebench.reports
from cuebench.analyses.families import Families, Family, family_tests, read_families
from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.registry import protocols
from cuebench.reports.comparison import compare
from cuebench.runs.results import write_scores
from cuebench.types import Score
from planted_scores import MIXTURES, planted_scores

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
            row(model, "shape_bias", cells[model, "shape_bias", "cue_conflict/partial"], "16-way", "cue_conflict")
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
    values = {s.observer: s.value for s in published if s.metric == "shape_preference"}
    corrected = {**values, "A3": 0.7364 / (0.7364 + 0.6927)}
    as_printed = {t.family: t.p for t in family_tests(corrected, PAPER)}["Mixed Aug"]
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


def test_comparison_of_partly_measured_models():
    rows = [row(m, "shape_bias", v, "16-way", "cue_conflict") for m, v in (("a", 0.2), ("b", 0.4), ("c", 0.6))]
    rows += [row(m, "shape_preference", v) for m, v in (("a", 0.5), ("b", 0.6), ("c", 0.7), ("d", 0.1))]
    rows += [
        row("a", "shape_preference", 0.9, "native"),
        row("d", "shape_bias", float("nan"), "16-way", "cue_conflict"),
    ]
    comparison = compare(rows)
    assert comparison.observers == ("a", "b", "c", "d")
    assert comparison.rows()[3] == {"model": "d", "cue_conflict": None, "refined_bias": 0.1}
    conditions = {c.protocol: c.condition for c in comparison.columns}
    assert conditions == {"cue_conflict": "16-way", "refined_bias": "faithful"}
    assert comparison.agreement()["cue_conflict ~ refined_bias"].value == 1.0
    with pytest.raises(UserError, match="no headline to compare"):
        compare([])
    with pytest.raises(UserError, match="has the baseline 'z'"):
        compare(rows, Families("z", (Family("f", ("a",)),)))


@pytest.fixture(scope="module")
def every_protocol():
    """The scores of ideal observers in all protocols."""
    return [r for protocol in protocols for r in planted_scores(protocol)]


def test_the_columns_are_the_declared_headlines(every_protocol):
    comparison = compare(every_protocol)
    directions = {name: protocol.headline.direction for name, protocol in protocols.usable()}
    shape_first = sorted(directions, key=lambda p: (directions[p] != "shape", p))
    assert [c.protocol for c in comparison.columns] == shape_first
    assert not comparison.omitted
    for column in comparison.columns:
        assert column.metric == protocols.get(column.protocol).headline.metric
        assert set(MIXTURES) <= set(column.rows)


def test_other_headlines_can_be_asked_for(every_protocol):
    comparison = compare(every_protocol, protocols=["imagenet_accuracy", "cue_conflict"])
    assert [c.protocol for c in comparison.columns] == ["imagenet_accuracy", "cue_conflict"]
    assert not comparison.omitted
    with pytest.raises(UserError, match="no observer has the headline of triplets"):
        compare(planted_scores("cue_conflict"), protocols=["triplets"])
    with pytest.raises(UserError, match="Did you mean 'triplets'"):
        compare(every_protocol, protocols=["triplet"])


def test_the_interval_is_the_widest_one(every_protocol):
    comparison = compare(every_protocol)
    for column in comparison.columns:
        for observer, shown in comparison.intervals()[column.protocol].items():
            rows = [r for r in every_protocol if (r.protocol, r.metric, r.condition, r.observer)
                    == (column.protocol, column.metric, column.condition, observer)]  # fmt: skip
            widths = [r.ci_high - r.ci_low for r in rows if math.isfinite(r.ci_high - r.ci_low)]
            if widths:
                assert shown["high"] - shown["low"] == max(widths)
    kinds = {shown["kind"] for shown in comparison.intervals()["cue_conflict"].values()}
    assert kinds - {"images"}, "the images are not the widest here"


def test_protocols_that_are_not_installed_are_named():
    rows = [*planted_scores("cue_conflict"), row("a", "thing", 0.5, "x", "gone_protocol")]
    comparison = compare(rows)
    assert "gone_protocol" in comparison.omitted["gone_protocol"]


def test_the_comparison_on_the_command_line(published, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    write_scores(tmp_path, published, {})
    families = str(HOME / "refined_bias_families.json")
    assert invoke(["compare", str(tmp_path), "--families", families]) == 0
    shown = capsys.readouterr().out
    assert "Kendall" in shown
    assert "larger means more correct answers" in shown
    assert "holds scores without answers" in shown, "no pairs can be compared"
    assert invoke(["compare", str(tmp_path), "--families", families, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["families"][2]["refined_bias"]["says"] == "shape"
    assert data["measures"]["cue_conflict"] == "shape_bias@16-way"
