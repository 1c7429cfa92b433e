"""Placement: rules follow the protocols, a published model finds itself, and what is not comparable is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.protocols.cue_conflict import RESIZED_NOTE
from cuebench.published.measures import measures
from cuebench.published.place import RULES, place, placed
from cuebench.published.readme_layout import export_readme_layout
from cuebench.registry import protocols
from cuebench.runs.evaluate import evaluate
from cuebench.runs.results import write_scores
from cuebench.types import REMOVED, Stimulus, StimulusSet
from planted_scores import answers, data_root, planted_scores, score

MIXTURE = "ideal:mixture?shape=0.6"


# ----------------------------------------------------------------------------------- rules and declarations


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.protocol}-{r.metric}-{r.condition}")
def test_every_rule_names_what_its_protocol_emits(rule):
    protocol = protocols.get(rule.protocol)
    assert rule.version == protocol.version
    assert rule.metric in protocol.metrics
    assert measures()[rule.measure].protocol == rule.protocol
    rows = planted_scores(rule.protocol)
    assert any(r.metric == rule.metric and fnmatchcase(r.condition, rule.condition) for r in rows)


def test_published_columns_belong_to_protocols():
    assert {m.protocol for m in measures().values()} <= set(protocols)


# --------------------------------------------------------------------- a real run on sets of the published size


@pytest.fixture(scope="module")
def refined_bias():
    """The scores of an ideal observer on 6,000 stimuli of the published classes and layout, and the stimuli."""
    classes = label_map("refined_bias").names
    shapes, textures = classes[:10], classes[10:]
    names = [f"{c}_{i}" for c in shapes for i in range(300)]
    names += [f"{g}x{g}_{c}_{i}" for c in textures for g in (4, 8, 16, 32) for i in range(75)]
    stimuli = protocols.get("refined_bias").stimuli_from_recordings(names)
    assert (len(stimuli), stimuli.partial) == (6000, ())
    return score("refined_bias", answers("refined_bias", stimuli, (MIXTURE,))), stimuli


@pytest.fixture(scope="module")
def decomposition():
    """1,200 images of the 16 classes with their shape and texture cues; no file is needed for ideal observers."""
    classes = label_map("in16").names
    stimuli = [
        Stimulus(f"{i}|{condition}", label=label, shape=label if shape else REMOVED,
                 texture=label if texture else REMOVED, condition=condition)
        for i in range(1200)
        for label in [classes[i % 16]]
        for condition, shape, texture in (("original", 1, 1), ("eed", 1, 0), ("voronoi", 0, 1))
    ]  # fmt: skip
    return StimulusSet("cue_decomposition", tuple(stimuli), targets="in16")


def sets(rows, stimuli):
    return {(r.protocol, r.observer): stimuli for r in rows}


def test_a_real_run_of_refined_bias_is_placed(refined_bias):
    rows, stimuli = refined_bias
    placement = placed(rows, sets(rows, stimuli))
    values = {r.metric: r.value for r in rows if r.condition == "faithful"}
    assert {p.measure: p.value for p in placement.positions} == {
        "refined_bias/shape_sens": values["shape_sensitivity"],
        "refined_bias/texture_sens": values["texture_sensitivity"],
        "refined_bias/shape_preference": values["shape_preference"],
    }
    assert {(n.by, n.paper) for n in placement.neighbours} == {("plane", "refined_bias"), ("profile", "refined_bias")}
    assert len(placement.rows()) == 3 + 6


def test_a_real_run_of_cue_decomposition_is_placed(decomposition):
    rows = score("cue_decomposition", answers("cue_decomposition", decomposition, (MIXTURE,)))
    placement = placed(rows, sets(rows, decomposition))
    values = {(r.metric, r.condition): r.value for r in rows}
    assert {p.measure: p.value for p in placement.positions} == {
        "cue_decomposition/Q_S": values["quality_shape", "eed"],
        "cue_decomposition/Q_T": values["quality_texture", "voronoi"],
        "cue_decomposition/R_cd": values["robustness_cd", "eed+voronoi"],
        "cue_decomposition/S_cd": values["shape_bias_cd", "eed+voronoi H=heinert2025"],
    }
    assert {p.models for p in placement.positions} == {43}
    assert [reason.partition(":")[0] for reason in placement.refused] == ["cue_decomposition eed+voronoi H=run"]
    assert "another population H" in placement.refused[0]


def test_both_papers_have_their_own_profile(refined_bias, decomposition):
    """The papers share one model: a profile over the measures of both would have one candidate."""
    rows = score("cue_decomposition", answers("cue_decomposition", decomposition, (MIXTURE,)))
    more, stimuli = refined_bias
    placement = placed([*rows, *more], {**sets(rows, decomposition), **sets(more, stimuli)})
    profiles = [n for n in placement.neighbours if n.by == "profile"]
    assert {n.paper: sum(m.paper == n.paper for m in profiles) for n in profiles} == {
        "cue_decomposition": 3, "refined_bias": 3}  # fmt: skip
    assert all(math.isfinite(n.distance) for n in profiles)


# ------------------------------------------------------------------------------------------- percentiles and neighbours


def at(refined_bias, shape, texture, reach=0.004):
    """Move a real run to other sensitivities; its preference is left out."""
    rows, stimuli = refined_bias
    moved = {"shape_sensitivity": shape, "texture_sensitivity": texture}
    rows = [
        replace(r, value=moved[r.metric], ci_low=moved[r.metric] - reach, ci_high=moved[r.metric] + reach)
        for r in rows
        if r.metric in moved and r.condition == "faithful"
    ]
    return rows, sets(rows, stimuli)


@pytest.mark.parametrize("model", ["ResNet-50", "BagNet-33", "CMT-B", "PRIME", "PGD-AT (l2, eps=3)"])
def test_a_published_model_finds_itself(refined_bias, model):
    shape, texture = measures()["refined_bias/shape_sens"], measures()["refined_bias/texture_sens"]
    weights = next(w for w, name in shape.labels.items() if name == model)
    placement = placed(*at(refined_bias, shape.values[weights], texture.values[weights], reach=0.0005))
    nearest = next(n for n in placement.neighbours if n.by == "plane")
    assert (nearest.model, nearest.distance) == (model, 0)
    assert nearest.probability > 0.99


def test_percentiles_by_counting(refined_bias):
    placement = placed(*at(refined_bias, 0.60, 0.55))
    position = next(p for p in placement.positions if p.measure.endswith("shape_sens"))
    published = list(measures()["refined_bias/shape_sens"].values.values())
    assert position.models == len(published) == 51
    assert position.percentile == pytest.approx(100 * sum(v < 0.60 for v in published) / 51)
    assert position.percentile_low == pytest.approx(100 * sum(v < 0.596 for v in published) / 51)
    assert position.percentile_low <= position.percentile <= position.percentile_high


def test_ties_count_half(refined_bias):
    value = measures()["refined_bias/shape_sens"].values["torchvision/resnet50.IMAGENET1K_V1"]
    placement = placed(*at(refined_bias, value, 0.5))
    published = list(measures()["refined_bias/shape_sens"].values.values())
    below, equal = sum(v < value for v in published), sum(v == value for v in published)
    assert placement.positions[0].percentile == pytest.approx(100 * (below + equal / 2) / 51)


def test_a_wide_interval_leaves_the_neighbour_open(refined_bias):
    sharp, vague = (placed(*at(refined_bias, 0.60, 0.55, r)).neighbours for r in (0.0005, 0.08))
    assert [n.model for n in sharp] == [n.model for n in vague]
    assert sharp[0].probability > 0.9 > vague[0].probability


def test_the_widest_interval_counts(refined_bias):
    rows, stimuli = refined_bias
    kinds = {r.ci_kind: (r.ci_low, r.ci_high) for r in rows
             if (r.metric, r.condition) == ("shape_sensitivity", "faithful")}  # fmt: skip
    assert len(kinds) == 2
    position = next(p for p in placed(rows, sets(rows, stimuli)).positions if p.measure.endswith("shape_sens"))
    assert (position.low, position.high) == max(kinds.values(), key=lambda ends: ends[1] - ends[0])


# --------------------------------------------------------------------------------------------------- refusals


def refused(rows, stimuli):
    placement = placed(rows, sets(rows, stimuli))
    assert not placement.positions
    return " | ".join(placement.refused)


def test_other_stimuli_and_partial_data_are_refused(refined_bias, decomposition):
    rows, stimuli = refined_bias
    rows = [r for r in rows if r.condition == "faithful"]
    part = stimuli.only(stimuli.stimuli[:500], "500 of 6,000 stimuli")
    assert "partial data: 500 of 6,000 stimuli" in refused(rows, part)
    assert "other stimuli: 500 images, published 6,000" in refused(rows, replace(part, partial=()))
    noted = [replace(r, note="partial set: limited to 10") for r in rows]
    assert "partial data: limited to 10" in refused(noted, stimuli)
    assert "version 4 of the protocol" in refused([replace(r, protocol_version=4) for r in rows], stimuli)
    without = [replace(r, value=math.nan, note="no logits") for r in rows if r.metric == "shape_sensitivity"]
    assert "no value: no logits" in refused(without, stimuli)
    other = replace(decomposition, notes=("eed by the fast scheme, accuracy=45",))
    rows = score("cue_decomposition", answers("cue_decomposition", decomposition, (MIXTURE,)))
    assert "other stimuli: eed by the fast scheme" in refused(rows, other)


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ("cue_conflict", "cue_conflict 16-way: other preprocessing: view native does not resize"),
        ("cue_conflict", "cue_conflict 1000-way: other preprocessing"),
        ("refined_bias", "refined_bias native: other preprocessing: view native shows the whole image"),
        ("refined_bias", "refined_bias faithful: partial data: 24 of 6,000 stimuli"),
        ("cue_decomposition", "cue_decomposition eed: other stimuli: 8 images, published 1,200"),
        ("cue_decomposition", "cue_decomposition eed+voronoi H=run: another population H"),
        ("triplets", "triplets: no published table"),
        ("feature_suppression", "feature_suppression: no published table"),
    ],
)
def test_real_rows_of_every_protocol_are_refused_with_the_reason(protocol, reason):
    stimuli = protocols.get(protocol).read(data_root(protocol))
    assert reason in refused(planted_scores(protocol), stimuli)


# ------------------------------------------------------------------------------------------------- run folders


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("place") / "run"
    evaluate(["ideal:shape", "ideal:texture"], "refined_bias", data_root=data_root("refined_bias"), out=out,
             workers=0, resamples=100)  # fmt: skip
    return out


def test_a_run_folder_is_placed_by_its_manifests(run, capsys):
    assert any("faithful: partial data: 24 of 6,000 stimuli" in reason for reason in place(run).refused)
    assert invoke(["published", "place", str(run)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("not compared: refined_bias faithful"), "a table without rows is no empty line"
    assert invoke(["published", "place", str(run), "--json"]) == 1, "as without --json"
    assert json.loads(capsys.readouterr().out)["positions"] == []


def test_mistakes(run, tmp_path):
    with pytest.raises(UserError, match="not a run folder"):
        place(tmp_path)
    with pytest.raises(UserError, match="no scores to compare"):
        placed([], {})


def test_layout_of_the_readme(run, tmp_path):
    written = export_readme_layout(run, tmp_path / "out")
    names = [str(p.relative_to(tmp_path / "out" / "results")) for p in written]
    assert names == [
        "across_model_architecture/refined_bias_shape_mrr.json",
        "across_model_architecture/refined_bias_texture_mrr.json",
    ]
    table = json.loads(written[0].read_text())
    assert table["ideal:shape"] == {"score": 1.0, "class_match": {"balloon": 1.0, "camera": 1.0, "clock": 1.0}}
    assert set(table) == {"ideal:shape", "ideal:texture"}


def test_layout_of_the_readme_by_list_of_models(run, tmp_path, refined_bias):
    """Models of the list of learning strategies go to a file of their own."""
    rows, _ = refined_bias
    write_scores(tmp_path, [replace(r, observer="PRIME") for r in rows], {})
    written = export_readme_layout(tmp_path, tmp_path / "out")
    assert {p.parent.name for p in written} == {"across_learning_strategy"}
    write_scores(tmp_path, [], {})
    with pytest.raises(UserError, match="no scores of refined_bias"):
        export_readme_layout(tmp_path, tmp_path)


def test_cue_conflict_shown_as_in_the_paper_is_placed():
    """Resized to 256 and cut to 224, all 1,280 images: then Tables B and C can be compared with."""
    names = label_map("in16").names
    stems = [f"{a}{i}-{b}{i}.png" for i in range(1, 6) for a in names for b in names]
    stimuli = protocols.get("cue_conflict").stimuli_from_recordings(stems)
    assert len(stimuli) == 1280
    rows = score("cue_conflict", answers("cue_conflict", stimuli, (MIXTURE,)))
    assert "run it with --set cue_conflict.view=resized" in refused(rows, stimuli)
    shown = replace(stimuli, notes=(RESIZED_NOTE,))
    placement = placed(rows, sets(rows, shown))
    assert "refined_bias/cue_conflict_16-way" in {p.measure for p in placement.positions}
    assert "other stimuli: another note" in refused(rows, replace(shown, notes=(RESIZED_NOTE, "another note")))
