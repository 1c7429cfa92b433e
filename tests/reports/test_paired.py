"""Pairs of observers in real runs: who differs, who is tied, what it would take, and how it is written."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

import cuebench as cb
from cuebench import cli
from cuebench.errors import UserError
from cuebench.reports.comparison import compare_runs, write_pairs
from cuebench.reports.paired import p_is, p_text
from cuebench.reports.power import plan_runs
from small_data import write_cue_conflict

CLASSES = ("cat", "dog", "car", "clock", "bear", "chair")
SHAPE, MIXED, OTHER, TEXTURE = ("ideal:shape", "ideal:mixture?shape=0.6", "ideal:mixture?shape=0.5", "ideal:texture")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of cue conflict: four observers, and one of them again with another seed."""
    root = tmp_path_factory.mktemp("paired")
    data = write_cue_conflict(root / "data", CLASSES, instances=4, size=8)
    common = {"data_root": data, "resamples": 100}
    cb.evaluate([SHAPE, MIXED, OTHER, TEXTURE], "cue_conflict", out=root / "one", **common)
    cb.evaluate([MIXED], "cue_conflict", out=root / "two", seed=2, **common)
    return root


@pytest.fixture(scope="module")
def found(root: Path):
    return compare_runs([root / "one"])


def test_planted_differences_are_found(found) -> None:
    paired = found.paired["cue_conflict"]
    # The two mixtures draw the same random numbers: one is the other and a few shape decisions more.
    assert list(paired.groups.items()) == [(SHAPE, "a"), (MIXED, "b"), (OTHER, "c"), (TEXTURE, "d")]
    by_name = {(p.first, p.second): p for p in paired.pairs}
    assert len(by_name) == 6
    clear = by_name[SHAPE, MIXED]
    assert clear.difference.n == 120, "conflict images only"
    assert clear.verdict == "different"
    assert clear.difference.interval.kind == "two_way"
    assert clear.p_holm >= clear.difference.p
    extreme = by_name[SHAPE, TEXTURE]
    assert (extreme.difference.value, extreme.difference.interval.high) == (1.0, 1.0)
    assert 0.5 < extreme.difference.interval.low < 0.9, "no decision varies, but 24 textures are not all textures"


def test_an_observer_that_decided_once_is_neither_compared_nor_planned_from(tmp_path: Path) -> None:
    """One shape decision is no certainty: neither a p, nor a letter, nor a plan."""
    images = [(f"{s}{i}-{t}{i}", s, t) for s in CLASSES for t in CLASSES if s != t for i in (1, 2)]
    (tmp_path / "answers").mkdir()
    for name, decide in {
        "often": lambda k, s, t: s if k % 3 == 0 else t,
        "other": lambda k, s, t: s if k % 5 == 0 else t,
        "once": lambda k, s, t: s if k == 30 else "na",
        "four": lambda k, s, t: s if k in (0, 13, 30, 45) else "na",
    }.items():
        rows = [f"{image},{decide(k, s, t)}" for k, (image, s, t) in enumerate(images)]
        (tmp_path / "answers" / f"{name}.csv").write_text("image,response\n" + "\n".join(rows) + "\n")
    cb.evaluate(f"recorded:{tmp_path / 'answers'}", "cue_conflict", out=tmp_path / "run", data_root=tmp_path)
    paired = compare_runs([tmp_path / "run"]).paired["cue_conflict"]
    assert set(paired.groups) == {"often", "other", "four"}
    assert paired.too_few == {"once": "1 decided trial"}
    assert "once is not compared: too few decided trials (1 decided trial)" in paired.notes
    four = [p for p in paired.pairs if "four" in (p.first, p.second)]
    assert all(p.difference.p > 1e-4 and p.difference.interval.width > 0.3 for p in four)
    (plan,) = plan_runs([tmp_path / "run"])
    assert plan.pairs == 1
    assert "left out: four − often: one of them decided 4 trials, and a plan needs 10" in plan.notes
    with pytest.raises(UserError, match="no pair of observers") as refused:
        plan_runs([tmp_path / "run"], observers=["often", "four"])
    assert "decided 4 trials" in refused.value.hint


def test_the_values_are_those_of_the_scores(root: Path, found) -> None:
    scores = cb.load(root / "one")
    for pair in found.paired["cue_conflict"].pairs:
        assert pair.difference.first == pytest.approx(scores.value(pair.first))
        assert pair.difference.second == pytest.approx(scores.value(pair.second))


def test_one_observer_of_two_runs_is_named_with_its_run(root: Path) -> None:
    found = compare_runs([root / "one", root / "two"], observers=[MIXED])
    (pair,) = found.paired["cue_conflict"].pairs
    assert {pair.first, pair.second} == {f"{MIXED} (one)", f"{MIXED} (two)"}
    assert not pair.separable, "the same mixture with other random numbers"
    assert pair.verdict.startswith("not separable")
    assert set(found.paired["cue_conflict"].groups.values()) == {"a"}
    with pytest.raises(UserError, match="Did you mean 'ideal:shape'"):
        compare_runs([root / "one"], observers=["ideal:shap"])


def test_every_pair_can_be_written(root: Path, found, tmp_path: Path) -> None:
    write_pairs(found, tmp_path / "pairs.csv")
    rows = list(csv.DictReader((tmp_path / "pairs.csv").open()))
    assert len(rows) == 6
    assert {"low_images", "high_shape_sources", "low_two_way", "p", "p_holm", "needed_images"} <= set(rows[0])
    latex = write_pairs(found, tmp_path / "pairs.tex").read_text()
    assert "\\toprule" in latex
    assert r"first & second & difference [95 \%] & p & p (Holm) & n & verdict" in latex
    head, _, *lines = write_pairs(found, tmp_path / "pairs.md").read_text().split("\n\n", 1)[1].splitlines()
    assert head == "| first | second | difference [95 %] | p | p (Holm) | n | verdict |"
    shown = f"{float(rows[0]['difference']):+.3f} [{float(rows[0]['low']):+.3f}, {float(rows[0]['high']):+.3f}]"
    assert shown in lines[0]
    assert {row["protocol_version"] for row in rows} == {str(found.columns[0].rows[MIXED].protocol_version)}
    assert {row["partial"] for row in rows} == {""}
    for text in (latex.replace("\\", ""), lines[-1]):
        assert "Differences on the same stimuli, 95 % intervals over two way" in text
        assert re.search(r"Values: cue_conflict, version \d; n = [\d,]+( to [\d,]+)?; 95 % intervals over ", text)


def test_pairs_of_a_part_of_the_stimuli_say_so(found, tmp_path: Path) -> None:
    (column,) = found.columns
    rows = {o: replace(row, note="partial set: 60 of 1,280 stimuli") for o, row in column.rows.items()}
    part = replace(found, columns=(column._replace(rows=rows),))
    for ending in ("csv", "md", "tex"):
        assert "partial set: 60 of 1,280 stimuli" in write_pairs(part, tmp_path / f"pairs.{ending}").read_text()


def test_other_endings_are_refused(found, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not known"):
        write_pairs(found, tmp_path / "pairs.doc")


@pytest.mark.parametrize("width", [80, 120])
def test_the_command_line(root: Path, capsys, monkeypatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert cli.invoke(["compare", str(root / "one")]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    assert "6 of 6 pairs differ" in shown
    assert cli.invoke(["compare", str(root / "one"), str(root / "two"), "-o", MIXED]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "0 of 1 pairs differ" in shown
    assert f"{MIXED} (one) and {MIXED} (two) are not separable" in shown or "(one) are not separable" in shown
    assert cli.invoke(["compare", str(root / "one"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["groups"]["cue_conflict"][SHAPE] == "a"
    assert len(data["pairs"]) == 6


@pytest.mark.parametrize(
    ("p", "cell", "words"),
    [
        (0.0, "< 0.0001", "p < 0.0001"),
        (4e-5, "< 0.0001", "p < 0.0001"),
        (0.0123, "0.0123", "p = 0.0123"),
        (0.52, "0.52", "p = 0.52"),
        (math.nan, "–", "p = –"),
    ],
)
def test_no_p_is_printed_as_0(p, cell, words):
    assert p_text(p) == cell
    assert p_is(p) == words
