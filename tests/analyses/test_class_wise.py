"""Class-wise recognition of people and models, its agreement with cue conflict, and the gap of difficulty."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from scipy import stats

from cuebench.analyses.class_agreement import ALL_MODELS, class_agreement, mean_taus
from cuebench.analyses.class_wise import Cell, Panel, by_class, read_panel
from cuebench.analyses.difficulty import difficulty_gaps
from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.reports.published_gaps import published_gaps
from cuebench.runs.results import write_scores
from cuebench.statistics.estimates import difference_from_intervals, share
from cuebench.types import Score

CLASSES = label_map("in16").names
SETS = {"silhouettes": "cue_conflict/silhouettes", "edges": "model_vs_human/stimuli/edge"}


def cells(observer, source, values, kind="model"):
    return [Cell(observer, kind, source, c, v, 10) for c, v in values.items()]


def panel(found, scores=(), view="faithful"):
    return Panel(scores, {c.observer: c.kind for c in found} | {s.observer: "model" for s in scores}, found,
                 "16-way", view)  # fmt: skip


# ---------------------------------------------------------------------------------------------- from planted values


@pytest.fixture(scope="module")
def planted():
    """Three models whose answers by shape follow edges exactly, and silhouettes not at all."""
    rng = np.random.default_rng(0)
    found = []
    for model in ("a", "b", "c"):
        edges = dict(zip(CLASSES, rng.permutation(16) / 16))
        found += cells(model, "edges", edges)
        found += cells(model, "shape answers", {c: v / 2 for c, v in edges.items()})
        found += cells(model, "silhouettes", dict(zip(CLASSES, rng.random(16))))
        found += cells(model, "texture answers", dict(zip(CLASSES, rng.random(16))))
    return panel(found)


def test_tau_is_that_of_scipy_and_finds_what_was_planted(planted):
    taus = {(a.observer, a.outcome, a.pure): a.tau for a in class_agreement(planted)}
    for (observer, outcome, pure), tau in taus.items():
        if observer != ALL_MODELS:
            x, y = planted.of(observer, outcome), planted.of(observer, pure)
            expected = stats.kendalltau([x[c] for c in CLASSES], [y[c] for c in CLASSES]).statistic
            assert tau.value == pytest.approx(expected)
        assert tau.low <= tau.value <= tau.high
        assert tau.n == 16
    assert taus["a", "shape answers", "edges"].value == pytest.approx(1)
    assert taus[ALL_MODELS, "shape answers", "edges"].value == pytest.approx(1)
    assert taus["a", "texture answers", "edges"].low < 0 < taus["a", "texture answers", "edges"].high


def test_mean_of_the_models_taus(planted):
    agreements = class_agreement(planted)
    means = {(m.outcome, m.pure): m for m in mean_taus(agreements, planted.models, resamples=200)}
    own = [a.tau.value for a in agreements
           if a.observer in "abc" and (a.outcome, a.pure) == ("texture answers", "silhouettes")]  # fmt: skip
    found = means["texture answers", "silhouettes"]
    assert (found.value, found.n) == (pytest.approx(np.mean(own)), 3)
    assert min(own) - 1e-12 <= found.low <= found.value <= found.high <= max(own) + 1e-12
    assert mean_taus(agreements, ["a", "b"]) == []


def test_a_seed_that_cannot_be(planted):
    with pytest.raises(UserError, match="seed=-1"):
        mean_taus(class_agreement(planted), planted.models, seed=-1)


def test_names_that_no_run_holds_are_refused(tmp_path):
    row = Score("pure_shape", 1, "a", "silhouettes/1000-way/class=cat", "top1", 1.0)
    faithful = Score("refined_bias", 3, "a", "faithful/class=cat", "shape_top1", 1.0)
    write_scores(tmp_path, [row, replace(row, condition="silhouettes/16-way/class=cat"), faithful], {})
    assert read_panel([tmp_path], space="1000-way").of("a", "silhouettes") == {"cat": 1.0}
    with pytest.raises(UserError, match=r"unknown label space of these runs: '17-way'\. Did you mean '16-way'"):
        read_panel([tmp_path], space="17-way")
    with pytest.raises(UserError, match=r"unknown view of these runs: 'nativ'\. Did you mean 'native'"):
        read_panel([tmp_path], view="nativ")
    for name in ("classes", "difficulty"):
        assert invoke(["validity", name, str(tmp_path), "--space", "foo"]) == 2


def test_nothing_to_correlate():
    with pytest.raises(UserError, match="both outcomes of cue conflict and a pure cue"):
        class_agreement(panel(cells("a", "edges", dict.fromkeys(CLASSES, 0.5))))


def test_a_table_of_conflicts_whose_conditions_are_no_label_space(tmp_path):
    counts = {"condition": ["4-way", "odd"], "shape": ["cat"] * 2, "texture": ["dog"] * 2, "response": ["cat"] * 2}
    table = pa.table({"observer": ["a", "b"], **counts, "count": [3, 0]})
    score = Score("cue_conflict", 1, "a", "4-way", "shape_bias", 1.0)
    write_scores(tmp_path, [score], {"cue_conflict.confusion": table})
    found = read_panel([tmp_path])
    assert found.of("a", "shape answers") == {"cat": 1.0}
    assert found.of("b", "shape answers") == {}  # nothing was counted


def test_people_beside_models():
    found = [*cells("p1", "shape cues", {"clock": 1.0}, "person"), *cells("p2", "shape cues", {"clock": 0.8}, "person"),
             *cells("people", "shape cues", {"clock": 0.9}, "people"),
             *cells("ideal", "shape cues", {"clock": 1.0}, "ideal"),
             *cells("m", "shape cues", {"clock": 0.5})]  # fmt: skip
    (row,) = by_class(panel(found))
    assert (row.source, row.label) == ("shape cues", "clock")
    assert (row.people.value, row.people.n) == (pytest.approx(0.9), 2)
    assert (row.models.value, row.models.n) == (0.5, 1)
    # Student's interval over two people, written out.
    half = stats.t.ppf(0.975, 1) * np.std([1.0, 0.8], ddof=1) / np.sqrt(2)
    assert row.people.intervals[0].high == pytest.approx(0.9 + half)


# ------------------------------------------------------------------------------------------------- gap of difficulty


def test_difference_of_two_shares_is_newcombes():
    """56/70 against 48/80, method 10 in Table II of Newcombe 1998: .0524 to .3339."""
    first, second = ((e.value, e.intervals[0].low, e.intervals[0].high) for e in (share(56, 70), share(48, 80)))
    assert difference_from_intervals(first, second) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def score(observer, metric, value, condition, protocol, n=100, ci=(0.0, 1.0), kind="images"):
    return Score(protocol, 1, observer, condition, metric, value, *ci, kind, n)


def test_gaps_of_observers_and_groups():
    rows = []
    for observer, shape, texture in (("m", 0.5, 0.3), ("n", 0.9, 0.4), ("o", 0.6, 0.5)):
        rows += [score(observer, "shape_top1", shape, "faithful", "refined_bias", ci=(shape - 0.1, shape + 0.05)),
                 score(observer, "texture_top1", texture, "faithful", "refined_bias",
                       ci=(texture - 0.2, texture + 0.1)),
                 score(observer, "shape_top1", 0.0, "native", "refined_bias"),
                 score(observer, "shape_accuracy", shape / 2, "16-way", "cue_conflict", 400),
                 score(observer, "texture_accuracy", texture / 2, "16-way", "cue_conflict", 400)]  # fmt: skip
    gaps = {(g.benchmark, g.observer): g for g in difficulty_gaps(panel([], rows))}
    group = gaps["refined_bias", "mean of models"]
    values = np.array([0.2, 0.5, 0.1])
    half = stats.t.ppf(0.975, 2) * values.std(ddof=1) / np.sqrt(3)
    assert (group.gap, group.low, group.high) == pytest.approx((0.8 / 3, 0.8 / 3 - half, 0.8 / 3 + half))
    own = gaps["refined_bias", "m"]
    assert (own.gap, own.low) == pytest.approx((0.2, 0.2 - np.hypot(0.1, 0.1)))
    # Of the same answers: 100 of 400 by shape, 60 by texture, 240 others; the mean of ±1 and 0.
    answers = np.repeat([1.0, -1.0, 0.0], [100, 60, 240])
    conflict = gaps["cue_conflict", "m"]
    assert conflict.gap == pytest.approx(answers.mean())
    assert conflict.high - conflict.gap == pytest.approx(1.96 * answers.std() / 20, rel=1e-3)


def test_the_papers_gaps():
    conflict, refined = published_gaps()
    assert (conflict.gap, refined.gap) == pytest.approx((0.36, 0.12))
    assert refined.high < conflict.low


# ------------------------------------------------------------------------------------------------------- from a run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Ideal observers on cue conflict, silhouettes and edges of four classes, and two recorded people."""
    root = tmp_path_factory.mktemp("data")
    chosen = ("cat", "dog", "car", "clock")
    for folder in SETS.values():
        for name in chosen:
            for i in (1, 2):
                path = root / folder / name / f"{name}{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(np.full((16, 16, 3), 17 * i, np.uint8)).save(path)
    people = ["subj,session,trial,rt,object_response,category,condition,imagename"]
    trial = 0
    for shape in chosen:
        for texture in chosen:
            path = root / "cue_conflict/stimuli" / shape / f"{shape}1-{texture}1.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((16, 16, 3), 40, np.uint8)).save(path)
            for person, answer in (("subject-01", shape), ("subject-02", texture)):
                trial += 1
                people.append(f"{person},1,{trial},0.5,{answer},{shape},0,{shape}1-{texture}1.png")
    (root / "people.csv").write_text("\n".join(people))
    out = root / "run"
    observers = ["-o", "ideal:shape", "-o", f"recorded:{root / 'people.csv'}"]
    options = ["--data-root", str(root), "--out", str(out), "--resamples", "100", "-q"]
    assert invoke(["run", "-p", "cue_conflict", "-p", "pure_shape", *observers, *options]) in (0, 1)
    return out


def test_a_run_is_read_by_who_answered(run, capsys):
    found = read_panel([run])
    assert found.people == ["subject-01", "subject-02"]
    assert found.of("ideal:shape", "silhouettes") == dict.fromkeys(("cat", "dog", "car", "clock"), 1.0)
    assert found.of("subject-02", "texture answers") == dict.fromkeys(("cat", "dog", "car", "clock"), 1.0)
    assert found.of("subject-02", "shape answers") == dict.fromkeys(("cat", "dog", "car", "clock"), 0.0)
    for command in (["classes"], ["difficulty"], ["distortion"]):
        capsys.readouterr()
        assert invoke(["validity", *command, str(run), "--json"]) in (0, 2)
    capsys.readouterr()
    assert invoke(["validity", "classes", str(run), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {r["people"]["value"] for r in rows if r["source"] == "texture answers"} == {0.5}
    assert invoke(["validity", "classes", str(run), "--space", "1000-way"]) == 0  # people decide among 16
    assert invoke(["validity", "classes", str(run), "--space", "3-way"]) == 2  # nobody was asked among three
    assert invoke(["validity", "agreement", str(run)]) == 2
    assert "cuebench run -p cue_conflict -p pure_shape" in capsys.readouterr().err
    assert invoke(["validity", "difficulty", str(run)]) == 0
    assert "mean of people" in capsys.readouterr().out
