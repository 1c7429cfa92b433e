"""Do the protocols agree: correlations against scipy, weights and not names, and the user's own runs."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from scipy import stats

from cuebench.errors import UserError
from cuebench.published.agree import Agreement, agree, figure
from cuebench.published.measures import measures, shared
from cuebench.runs.record import JobRecord, RunRecord
from cuebench.runs.results import write_scores
from cuebench.types import Score


@pytest.fixture(scope="module")
def published():
    return agree(resamples=500)


def one(found, first, second):
    return next(f for f in found if (f.first, f.second) == (first, second))


def test_values_equal_scipy(published):
    found = one(published, "refined_bias/cue_conflict_partial", "refined_bias/shape_preference")
    a, b = measures()[found.first], measures()[found.second]
    both = shared(a, b)
    x, y = ([m.values[w] for w in both] for m in (a, b))
    assert found.spearman == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.kendall == pytest.approx(stats.kendalltau(x, y).statistic)
    assert found.low < found.spearman < found.high
    assert found.n == 51


def test_the_known_answer_of_cue_decomposition(published):
    found = one(published, "cue_decomposition/cue_conflict", "cue_decomposition/S_cd")
    assert found.spearman == pytest.approx(0.903, abs=0.001)
    assert found.n == 43


def test_papers_that_share_too_few_weights_have_no_number(published):
    found = one(published, "refined_bias", "cue_decomposition")
    assert (found.n, math.isnan(found.spearman)) == (1, True)
    assert "InceptionV3" in found.note
    assert found.row()["spearman"] is None


def test_the_same_architecture_with_other_weights_is_another_model():
    """Both papers have a ResNet-50; torchvision's and timm's weights are not the same model."""
    rb, cd = measures()["refined_bias/shape_sens"], measures()["cue_decomposition/S_cd"]
    ours = {w for w, name in {**rb.labels, **cd.labels}.items() if name in {"ResNet-50", "ResNet50"}}
    assert ours == {"torchvision/resnet50.IMAGENET1K_V1", "timm/resnet50.a1_in1k"}


def test_a_model_in_two_tables_counts_once():
    values = measures()["refined_bias/shape_sens"].values
    assert len(values) == 20 + 32 - 1


def run(path, values, protocol, condition, metric, first="m"):
    path.mkdir()
    jobs = [
        JobRecord(protocol, "v", f"{first}{i}", "model", "s", (), "x", "f", None, {"weights": f"hash{i}"})
        for i in range(len(values))
    ]
    RunRecord(arguments={}, batch_size=1, seed=0, jobs=jobs).write(path)
    rows = [Score(protocol, 1, f"{first}{i}", condition, metric, v) for i, v in enumerate(values)]
    write_scores(path, rows, {})
    return path


def test_own_runs_are_matched_by_weights(tmp_path):
    a = run(tmp_path / "a", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "cue_conflict", "partial", "shape_bias", "one")
    b = run(tmp_path / "b", [1, 2, 3, 4, 6, 5], "refined_bias", "faithful", "shape_sensitivity", "other names ")
    found = [f for f in agree([a, b], resamples=200) if f.source == "own runs"]
    assert [(f.n, round(f.spearman, 4)) for f in found] == [(6, 0.9429)]
    assert found[0].first == "cue_conflict/partial/shape_bias"


def test_few_own_models_have_no_number(tmp_path):
    a = run(tmp_path / "a", [0.1, 0.2], "cue_conflict", "partial", "shape_bias")
    b = run(tmp_path / "b", [1, 2], "refined_bias", "faithful", "shape_sensitivity")
    found = [f for f in agree([a, b], resamples=200) if f.source == "own runs"]
    assert found[0].note == "2 shared models; at least 5 are needed"


def test_figure(published, tmp_path):
    path = figure(published, tmp_path / "agree.svg")
    root = ET.parse(path).getroot()
    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    assert len(circles) == sum(not math.isnan(f.spearman) for f in published)
    assert path.read_bytes() == figure(published, tmp_path / "again.svg").read_bytes()


def test_figure_escapes_names(tmp_path):
    odd = Agreement("a/<b>&", "c/d", "own runs", 9, 0.5, 0.1, 0.8, 0.4)
    assert "&lt;b&gt;&amp;" in figure([odd], tmp_path / "x.svg").read_text()


def test_mistakes(tmp_path, published):
    with pytest.raises(UserError, match=r"ends in \.svg"):
        figure(published, tmp_path / "x.png")
    with pytest.raises(UserError, match="enough models to draw"):
        figure([f for f in published if math.isnan(f.spearman)], tmp_path / "x.svg")
    with pytest.raises(UserError, match="not a run folder"):
        agree([tmp_path])
