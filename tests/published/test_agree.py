"""Do the protocols agree: correlations against scipy, weights and not names, and the user's own runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cuebench.errors import UserError
from cuebench.protocols.headline import headline_column
from cuebench.published.agree import agree
from cuebench.published.measures import measures, shared
from cuebench.published.one_thing import CUE_CONFLICT, PHOTOGRAPHS, _s_cd, published_structures
from cuebench.registry import figures, protocols
from cuebench.runs.record import JobRecord, RunRecord
from cuebench.runs.results import write_scores
from planted_scores import MIXTURES, planted_scores


@pytest.fixture(scope="module")
def published():
    return agree()


def one(found, first, second):
    return next(f for f in found if (f.first, f.second) == (first, second))


def test_values_equal_scipy(published):
    found = one(published, "refined_bias/cue_conflict_16-way", "refined_bias/shape_preference")
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


def run(path, protocol, prefix="", only=MIXTURES):
    """Write a run folder of the real scores of ideal observers; their weights are the same in all of them."""
    rows = [r for r in planted_scores(protocol) if r.observer in only]
    jobs = [
        JobRecord(
            protocol, "native", f"{prefix}{name}", "model", "s", (), "x", "f", None, {"weights": f"hash of {name}"}
        )
        for name in only
    ]
    path.mkdir()
    RunRecord(arguments={}, jobs=jobs, status="complete").write(path)
    write_scores(path, [replace(r, observer=f"{prefix}{r.observer}") for r in rows], {})
    return path


def own(agreements):
    return {(a.first, a.second): a for a in agreements if a.source == "own runs"}


def test_own_runs_are_matched_by_weights_not_names(tmp_path):
    runs = [run(tmp_path / "a", "cue_conflict"), run(tmp_path / "b", "refined_bias", "another name of ")]
    ((pair, agreement),) = own(agree(runs)).items()
    assert pair == ("cue_conflict/16-way/shape_bias", "refined_bias/faithful/shape_preference")
    values = [
        [
            next(r.value for r in planted_scores(p) if (r.observer, r.condition, r.metric) == (m, c, metric))
            for m in MIXTURES
        ]
        for p, c, metric in (("cue_conflict", "16-way", "shape_bias"), ("refined_bias", "faithful", "shape_preference"))
    ]
    assert agreement.n == len(MIXTURES)
    assert agreement.spearman == pytest.approx(stats.spearmanr(*values).statistic)


@pytest.mark.parametrize("protocol", [p for p in protocols if p != "cue_conflict"])
def test_every_protocol_is_compared_by_its_declared_headline(tmp_path, protocol):
    runs = [run(tmp_path / name, name) for name in ("cue_conflict", protocol)]
    ((pair, agreement),) = own(agree(runs)).items()
    column = headline_column(planted_scores(protocol), protocol)
    assert pair[1] == f"{protocol}/{column.condition}/{protocols.get(protocol).headline.metric}"
    assert agreement.n == len(MIXTURES)


def test_planted_shape_biases_agree(tmp_path):
    """Observers that answer more by shape do so in every protocol in which larger means more shape."""
    names = ("cue_conflict", "feature_suppression", "cue_decomposition", "refined_bias", "triplets")
    agreements = own(agree([run(tmp_path / n, n) for n in names]))
    assert len(agreements) == 10
    assert ("cue_conflict/16-way/shape_bias", "cue_decomposition/eed+voronoi H=heinert2025/shape_bias_cd") in agreements
    assert ("cue_conflict/16-way/shape_bias", "feature_suppression/all/shape_reliance") in agreements
    assert min(a.spearman for a in agreements.values()) > 0


def test_few_own_models_have_no_number(tmp_path):
    runs = [run(tmp_path / p, p, only=MIXTURES[:2]) for p in ("cue_conflict", "refined_bias")]
    (agreement,) = own(agree(runs)).values()
    assert agreement.note == "2 shared models; at least 5 are needed"


def test_figure(published):
    picture = figures.get("published_agreement")(published)
    assert len(picture.data) == sum(not math.isnan(f.spearman) for f in published)
    assert picture.data[0]["spearman"] == max(row["spearman"] for row in picture.data)


def test_mistakes(tmp_path, published):
    with pytest.raises(UserError, match="enough models to draw"):
        figures.get("published_agreement")([f for f in published if math.isnan(f.spearman)])
    with pytest.raises(UserError, match="not a run folder"):
        agree([tmp_path])


def test_published_headlines_corrected_for_error():
    found = published_structures()
    cd = found["cue_decomposition"]
    assert len(cd.observers) == 43
    link = next(p for p in cd.links if {p.first, p.second} == {"cue_conflict", "S_cd"})
    known = measures()
    values = [[m.values[w] for w in known["cue_decomposition/S_cd"].values] for m in
              (known["cue_decomposition/cue_conflict"], known["cue_decomposition/S_cd"])]  # fmt: skip
    assert link.observed.value == pytest.approx(stats.pearsonr(*values).statistic)
    variance = np.var(values[0], ddof=1)
    assert cd.reliability["cue_conflict"].value == pytest.approx(1 - CUE_CONFLICT**2 / variance)
    assert link.corrected.value > link.observed.value
    assert cd.factor is not None
    assert cd.factor.number == 1
    rb = found["refined_bias"]
    assert rb.factor is not None
    assert rb.factor.number == 2


def test_the_error_of_s_cd_is_that_of_simulated_photographs():
    known = measures()
    model = next(iter(known["cue_decomposition/S_cd"].values))
    q_s, q_t, s_cd = (known[f"cue_decomposition/{n}"].values[model] for n in ("Q_S", "Q_T", "S_cd"))
    ratio = q_s / q_t * (1 - s_cd) / s_cd  # s/t that gives the printed value
    rng = np.random.default_rng(0)
    shape, texture = (rng.binomial(PHOTOGRAPHS, q, 20_000) / PHOTOGRAPHS for q in (q_s, q_t))
    simulated = (shape / ratio) / (shape / ratio + texture)
    assert _s_cd(known, model) == pytest.approx(simulated.var(), rel=0.1)


def test_figure_of_one_thing(tmp_path):
    found = published_structures()
    picture = figures.get("one_thing")(found)
    assert len(picture.data) == sum(len(s.links) for s in found.values())
    assert "51 observers" in picture.subtitle
    svg = picture.save(tmp_path / "x.svg").file.read_text()
    assert "its own, repeatable" in svg
    with pytest.raises(UserError, match="nothing to draw"):
        figures.get("one_thing")({})
