"""Cue decomposition from the maker to the scores: planted biases come back, masks move, one decode serves all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import cuebench
from cuebench import metrics
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.preprocess import Preprocess
from cuebench.options import parse as parse_options
from cuebench.protocols import correctness, corruption_robustness
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.corruption_robustness.corruptions import CORRECTED, LEVELS, TYPES, corruptions
from cuebench.protocols.cue_decomposition import PROTOCOL
from cuebench.protocols.headline import headline_column
from cuebench.registry import protocols
from cuebench.responses.table import Responses
from cuebench.runs.evaluate import evaluate
from cuebench.runs.score import score
from cuebench.stimuli.decomposition import conflicts, shape_files
from cuebench.stimuli.decomposition.cue_list import keeps, parse
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.render import decode, render
from cuebench.types import Stimulus, StimulusSet

CLASSES = ("cat", "dog", "car", "clock")
QUICK = {"steps": 4, "size": 32, "resize": 32, "workers": 1, "device": "cpu"}
COLOURS = np.array([[200, 30, 30], [30, 200, 30], [30, 30, 200], [128, 128, 128]], np.uint8)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Eight images of noise in four class folders."""
    root = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(0)
    for name in CLASSES:
        (root / name).mkdir()
        for i in range(2):
            Image.fromarray(rng.integers(0, 256, (40, 48, 3), np.uint8)).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def made(photographs, tmp_path_factory):
    out = tmp_path_factory.mktemp("data")
    return make("cue_decomposition", out, source=str(photographs), cues="all,voronoi8", conflicts="published", **QUICK)


@pytest.fixture(scope="module")
def data_root(made):
    return Path(made.root).parent


def test_the_set_holds_every_cue_of_every_image_and_the_ten_candidates(made):
    parts = ["original", "eed", "voronoi", "patch", "diamond", "tex_eed", "tex_eed_pat", "voronoi8"]
    counts = {c: sum(s.condition == c for s in made) for c in {s.condition for s in made}}
    assert counts == dict.fromkeys([*parts, *(c.condition for c in conflicts.PUBLISHED)], 8)
    record = json.loads((Path(made.root) / "made.json").read_text())
    assert record["cues"]["voronoi8"] == {"cue": "voronoi_shuffle", "of": "original", "sites": 8}
    assert record["cues"]["eed"] == {"cue": "eed", "of": "original", "rounding": "round", "steps": 4}


def test_the_same_command_gives_the_same_bytes_anywhere(made, photographs, tmp_path):
    again = make(
        "cue_decomposition", tmp_path, source=str(photographs), cues="all,voronoi8", conflicts="published", **QUICK
    )
    names = sorted(p.relative_to(again.root) for p in Path(again.root).rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(made.root) for p in Path(made.root).rglob("*") if p.is_file())
    assert all((Path(again.root) / n).read_bytes() == (Path(made.root) / n).read_bytes() for n in names)


def test_a_folder_made_in_another_way_is_refused(made, photographs, data_root):
    with pytest.raises(UserError, match="seed was 0, now 1"):
        make("cue_decomposition", data_root, seed=1, source=str(photographs), cues="eed", **QUICK)


def test_the_residual_and_the_shape_cue_add_up_to_the_original(made):
    home = Path(made.root)
    one = {p: np.asarray(Image.open(home / p / "cat" / "0.png"), int) for p in ("original", "eed", "tex_eed")}
    inside = (one["tex_eed"] > 0) & (one["tex_eed"] < 255)
    np.testing.assert_array_equal((one["eed"] + one["tex_eed"] - 128)[inside], one["original"][inside])


def test_conflicts_pair_other_classes_once_and_mix_the_two_files(made):
    mixed = [s for s in made if s.condition == "conflict/blend/voronoi/0.5/0.5"]
    assert all(s.shape != s.texture for s in mixed)
    assert len({s.texture_source for s in mixed}) == len(mixed) == 8
    one, root = mixed[0], Path(made.root)
    shown = np.asarray(render(root, decode(root, one), one), int)
    two = [np.asarray(Image.open(root / part / f"{source}.png"), int)
           for part, source in (("eed", one.shape_source), ("voronoi", one.texture_source))]  # fmt: skip
    assert np.abs(shown - (two[0] + two[1]) / 2).max() <= 0.51
    other = {s.shape_source: s.texture_source for s in made if s.condition.startswith("conflict/sum/tex_eed_pat/1/2")}
    assert other == {s.shape_source: s.texture_source for s in mixed}  # every candidate has the same pairs


def test_partners_need_another_class():
    labels = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    found = conflicts.partners(labels, 3)
    assert sorted(found) == list(range(10))
    assert all(labels[i] != labels[j] for i, j in enumerate(found))
    with pytest.raises(UserError, match="6 of 10 images show 'a'"):
        conflicts.partners(["a"] * 6 + ["b"] * 4, 0)


@pytest.mark.parametrize("text", ["mix/voronoi/1/1", "blend/voronoi/1", "blend/voronoi/x/1", "sum/tex_eed/0/0"])
def test_bad_conflicts_are_refused(text):
    with pytest.raises(UserError, match="conflict"):
        conflicts.parse(text)


def test_unknown_cues_are_refused():
    with pytest.raises(UserError, match="Did you mean 'voronoi'"):
        parse("voronoy", {})
    assert [p.name for p in parse("tex.EEDpat", {})] == ["original", "eed", "tex_eed", "tex_eed_pat"]
    assert (keeps("original"), keeps("eed"), keeps("voronoi64")) == ("both", "shape", "texture")


@pytest.fixture(scope="module")
def ideal(data_root, tmp_path_factory):
    observers = ["ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7"]
    out = tmp_path_factory.mktemp("run")
    return evaluate(observers, "cue_decomposition", data_root=data_root, out=out, workers=0, resamples=200)


def test_ideal_observers_get_back_their_planted_bias(ideal):
    def value(observer, metric, condition):
        return ideal.value(observer, metric, condition)

    for observer, q_s, q_t in (("ideal:shape", 1, None), ("ideal:texture", None, 1)):
        assert value(observer, "quality_original", "original") == 1
        found = [value(observer, "quality_shape", "eed"), value(observer, "quality_texture", "voronoi")]
        assert [f for f, planted in zip(found, (q_s, q_t)) if planted] == [1]
        assert all(f < 0.7 for f, planted in zip(found, (q_s, q_t)) if not planted)  # guesses among four classes
    assert value("ideal:shape", "shape_bias", "conflict/blend/voronoi/0.5/0.5") == 1
    assert value("ideal:texture", "shape_bias", "conflict/blend/voronoi/0.5/0.5") == 0
    assert value("ideal:texture", "texture_accuracy", "conflict/sum/tex_eed/1/1") == 1
    order = [value(o, "shape_bias_cd", "eed+voronoi H=heinert2025") for o in ("ideal:texture", "ideal:shape")]
    assert order[0] < 0.5 < order[1]


def test_scores_are_the_formulas_of_their_parts_and_name_their_population(ideal):
    q = [ideal.value("ideal:shape", m, c) for m, c in
         (("quality_original", "original"), ("quality_shape", "eed"), ("quality_texture", "patch"))]  # fmt: skip
    assert ideal.value("ideal:shape", "robustness_cd", "eed+patch") == pytest.approx((q[1] + q[2]) / (2 * q[0]))
    table = pq.read_table(next((ideal.out / "tables").glob("*population*"))).to_pylist()
    own = [r for r in table if r["population"] == "run" and r["cues"] == "eed+patch"]
    assert [r["model"] for r in own] == ["ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7"]
    s, t = own[0]["s"], own[0]["t"]
    assert s == pytest.approx(np.mean([r["quality_shape"] for r in own]))
    expected = (q[1] / s) / (q[1] / s + q[2] / t)
    assert ideal.value("ideal:shape", "shape_bias_cd", "eed+patch H=run") == pytest.approx(expected)
    assert len([r for r in table if r["population"] == "heinert2025" and r["cues"] == "eed+voronoi"]) == 43
    assert not [r for r in table if r["population"] == "heinert2025" and r["cues"] == "eed+voronoi8"]
    row = next(r for r in ideal.rows if r.metric == "shape_bias_cd" and r.condition.endswith("heinert2025"))
    assert "43 models, s = 0.58" in row.note
    assert row.ci_low <= row.value <= row.ci_high


def test_a_model_can_be_left_out_of_the_population(ideal):
    settings = {"cue_decomposition.population": "run", "cue_decomposition.leave_out": "ideal:texture"}
    rows = score(ideal.out, settings=settings)
    assert not [r for r in rows if "heinert" in r.condition]
    table = pq.read_table(next((ideal.out / "tables").glob("*population*"))).to_pylist()
    assert {r["model"] for r in table} == {"ideal:shape", "ideal:mixture?shape=0.7"}
    assert [r for r in rows if r.observer == "ideal:texture" and r.metric == "shape_bias_cd"]  # it still has a score
    with pytest.raises(UserError, match="option of protocol 'cue_decomposition': 'leave'"):
        score(ideal.out, settings={"cue_decomposition.leave": "x"})


def test_only_the_answered_class_is_stored(ideal):
    shard = next((ideal.out / "responses").glob("*/*.parquet"))
    assert set(pq.read_table(shard).column_names) == {"answer", "stimulus"}


def test_sixteen_classes_by_a_label_map(photographs, tmp_path):
    made = make("cue_decomposition", tmp_path, source=str(photographs), labels="in16", cues="voronoi", **QUICK)
    assert made.targets == "in16"
    assert {s.label for s in made} == {"cat", "dog", "car", "clock"}
    found = evaluate(
        ["ideal:shape"], "cue_decomposition", data_root=tmp_path, out=tmp_path / "r", workers=0, resamples=100
    )
    assert found.value("ideal:shape", "quality_original", "original") == 1
    assert "accuracy among in16" in found.rows[0].note


def test_no_set_says_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match="holds no cue decomposition"):
        protocols.get("cue_decomposition").read(tmp_path)
    with pytest.raises(UserError, match="needs images"):
        make("cue_decomposition", tmp_path)


def test_a_diffusion_of_more_than_a_day_is_refused_before_it_starts(photographs, tmp_path, monkeypatch):
    monkeypatch.setattr(shape_files, "seconds_for", lambda pixels, options: 40_000.0)
    with pytest.raises(UserError, match=r"8 images \(32×32\) would take about 3.7 days") as refused:
        make("cue_decomposition", tmp_path, source=str(photographs), cues="eed", **QUICK)
    assert "accuracy=45" in refused.value.hint
    assert not list((tmp_path / "cue_decomposition").glob("eed/**/*.png"))
    assert len(make("cue_decomposition", tmp_path, source=str(photographs), cues="eed", hours=0, **QUICK)) == 16


def test_the_estimate_is_the_pace_of_the_first_steps(monkeypatch):
    now = iter(range(100))

    def slow(pixels, progress, workers, steps):
        for done in range(0, 1000, 10):
            progress(done, 1000)

    monkeypatch.setattr(shape_files.cues.module("eed"), "eed", slow)
    monkeypatch.setattr(shape_files.time, "perf_counter", lambda: next(now))
    assert shape_files.seconds_for(np.zeros((4, 4, 3), np.uint8), {"steps": 1000}) == 100  # 10 steps in each second


# --- what is explained is what runs ----------------------------------------------------------------------------------

SPACE = LabelSpace("four", CLASSES)
QUICK_SCORES = ScoreOptions(resamples=100)


def answered(protocol, stimuli, logits, name="net", kind="model", **more):
    """The answers of an observer with these logits, reduced as a run stores them."""
    columns = protocol.reduce(stimuli, SPACE)({"logits": logits}, stimuli.stimuli)
    return Responses(name, kind, stimuli, np.arange(len(stimuli)), columns, SPACE, **more)


def positions(stimuli, field="label"):
    return np.array([CLASSES.index(getattr(s, field)) for s in stimuli])


def values_of(result):
    return {(m.responses.observer, m.metric, m.condition): m.estimate.value for m in result.measurements}


@pytest.fixture(scope="module")
def decomposed():
    """30 images as original, shape cue, texture cue and cue conflict, without files."""
    stimuli = []
    for i in range(30):
        label, other = CLASSES[i % 4], CLASSES[(i + 1) % 4]
        stimuli += [Stimulus(f"{i:02}|{c}", label=label, condition=c) for c in ("original", "eed", "voronoi", "patch")]
        mixed = "conflict/blend/voronoi/0.5/0.5"
        stimuli.append(Stimulus(f"{i:02}|{mixed}", label=label, shape=label, texture=other, condition=mixed,
                                shape_source=f"s{i}", texture_source=f"t{i}"))  # fmt: skip
    return StimulusSet("decomposed", tuple(stimuli))


@pytest.fixture(scope="module")
def two_models(decomposed):
    rng = np.random.default_rng(0)
    truth = np.eye(4)[positions(decomposed)]
    return {name: truth * hint + rng.normal(size=truth.shape) for name, hint in (("good", 2.0), ("poor", 0.5))}


def test_the_scores_are_the_public_metrics_of_the_same_answers(decomposed, two_models):
    result = PROTOCOL.score([answered(PROTOCOL, decomposed, x, n) for n, x in two_models.items()], QUICK_SCORES)
    found = values_of(result)
    condition = np.array([s.condition for s in decomposed])
    kept = {}
    for name, logits in two_models.items():
        correct = logits.argmax(axis=1) == positions(decomposed)
        metric = {"original": metrics.quality_original, "eed": metrics.quality_shape}
        for c in ("original", "eed", "voronoi", "patch"):
            quality = metric.get(c, metrics.quality_texture)
            kept[name, c] = quality(int(correct[condition == c].sum()), 30)
            assert found[name, quality.name, c] == pytest.approx(kept[name, c], abs=1e-12)
        mixed = [s for s in decomposed if s.condition.startswith("conflict/")]
        decisions = [CLASSES[k] for k in logits[np.char.startswith(condition, "conflict/")].argmax(axis=1)]
        for conflict in (metrics.shape_bias, metrics.texture_accuracy):
            expected = conflict(decisions, [s.shape for s in mixed], [s.texture for s in mixed])
            assert found[name, conflict.name, mixed[0].condition] == pytest.approx(expected, abs=1e-12)
    for texture in ("voronoi", "patch"):
        s, t = (np.mean([kept[m, c] for m in two_models]) for c in ("eed", texture))
        for name in two_models:
            q_s, q_t, q_o = (kept[name, c] for c in ("eed", texture, "original"))
            bias, robustness = metrics.shape_bias_cd(q_s, q_t, s, t), metrics.robustness_cd(q_s, q_t, q_o)
            assert found[name, "shape_bias_cd", f"eed+{texture} H=run"] == pytest.approx(bias, abs=1e-12)
            assert found[name, "robustness_cd", f"eed+{texture}"] == pytest.approx(robustness, abs=1e-12)
    assert {metric for _, metric, _ in found} == set(PROTOCOL.metrics)


def test_the_headline_is_s_cd_in_the_published_population(decomposed, two_models):
    responses = [answered(PROTOCOL, decomposed, x, n) for n, x in two_models.items()]
    rows = score_rows(PROTOCOL, PROTOCOL.score(responses, QUICK_SCORES))
    column = headline_column(rows, PROTOCOL.name)
    assert (column.metric, column.condition) == ("shape_bias_cd", "eed+voronoi H=heinert2025")
    assert list(column.rows) == ["good", "poor"]
    shape, texture = (headline_column(rows, PROTOCOL.name, axis) for axis in PROTOCOL.headline.plane)
    assert (shape.metric, shape.condition) == ("quality_shape", "eed")
    assert (texture.metric, texture.condition) == ("quality_texture", "voronoi")
    options = ScoreOptions(resamples=100, values={"population": "run", "leave_out": ("poor",)})
    other = score_rows(PROTOCOL, PROTOCOL.score(responses, options))
    assert headline_column(other, PROTOCOL.name).condition == "eed+voronoi H=run less 1"


def test_exclusions_name_their_reasons_and_people_are_pooled(decomposed, two_models):
    """One shape cue is unreadable, one original was left out; three people answered everything else."""
    lost, skipped = 1, 5  # the shape cue of image 0, the original of image 1
    reduced = answered(PROTOCOL, decomposed, two_models["good"])
    rows = np.repeat([i for i in range(len(decomposed)) if i not in (lost, skipped)], 3)
    people = Responses("people", "people", decomposed, rows, {"answer": reduced.columns["answer"][rows]}, SPACE,
                       excluded={decomposed.stimuli[lost].id: "broken"})  # fmt: skip
    result = PROTOCOL.score([people], QUICK_SCORES)
    excluded = {
        (m.metric, m.condition): (m.estimate.n, {why: k for why, k in m.estimate.excluded.items() if k})
        for m in result.measurements
    }
    assert excluded["quality_shape", "eed"] == (29, {"unreadable": 1})
    assert excluded["quality_original", "original"] == (29, {"unanswered": 1})
    assert excluded["robustness_cd", "eed+voronoi"] == (88, {"unreadable": 1, "unanswered": 1})
    n, reasons = excluded["shape_bias", "conflict/blend/voronoi/0.5/0.5"]
    assert n + sum(reasons.values()) == 90
    assert set(reasons) <= {"other", "no answer"}


@pytest.mark.parametrize("name", ["cue_decomposition", "cue_decomposition_segmentation"])
def test_wrong_options_fail_before_anything_is_spent(name, tmp_path):
    protocol = protocols.get(name)

    def configured(**options):
        return protocol.configured(parse_options(protocol.options, options, name))

    assert configured(population="run", leave_out="a, b") is protocol
    assert parse_options(protocol.options, {"leave_out": "a, b"}, name)["leave_out"] == ("a", "b")
    with pytest.raises(UserError, match="Did you mean 'heinert2025'"):
        configured(population="heinert")
    with pytest.raises(UserError, match="does not exist"):
        configured(population=str(tmp_path / "none.json"))
    with pytest.raises(UserError, match="Did you mean 'leave_out'"):
        configured(leave="x")


def test_relative_robustness_is_the_public_metric_of_the_same_answers():
    protocol = corruption_robustness.PROTOCOL
    images = [Stimulus(f"{i:02}", label=CLASSES[i % 4]) for i in range(12)]
    planned = corruptions(keep_colour=False)
    stimuli = StimulusSet("corrupted", tuple(c.stimulus(image, "") for image in images for c in planned))
    target = positions(stimuli)
    logits = np.eye(4)[target] * 1.5 + np.random.default_rng(1).normal(size=(len(stimuli), 4))
    result = protocol.score([answered(protocol, stimuli, logits)], QUICK_SCORES)
    found = {(metric, condition): value for (_, metric, condition), value in values_of(result).items()}
    condition = np.array([s.condition for s in stimuli])
    accuracy = {c.condition: metrics.accuracy(logits[condition == c.condition], target[condition == c.condition])
                for c in planned}  # fmt: skip
    clean, types = accuracy["clean"], {}
    for kind in (*TYPES, CORRECTED):
        levels = [accuracy[c.condition] for c in planned if c.kind == kind]
        types[kind] = metrics.relative_robustness(levels, clean)
        assert found["relative_robustness", kind] == pytest.approx(types[kind], abs=1e-12)
    for c in planned:
        assert found["accuracy", c.condition] == pytest.approx(accuracy[c.condition], abs=1e-12)
        if c.condition != "clean":
            expected = metrics.relative_robustness([accuracy[c.condition]], clean)
            assert found["relative_robustness", c.condition] == pytest.approx(expected, abs=1e-12)
    assert found["relative_robustness", "mean"] == pytest.approx(np.mean([types[kind] for kind in TYPES]), abs=1e-12)
    corrected = np.mean([types[CORRECTED if kind == "phase_noise" else kind] for kind in TYPES])
    assert found["relative_robustness", "mean_corrected"] == pytest.approx(corrected, abs=1e-12)
    assert {metric for metric, _ in found} == set(protocol.metrics) - {"mean_iou"}
    column = headline_column(score_rows(protocol, result), protocol.name)
    assert (column.metric, column.condition) == ("relative_robustness", "mean")
    (mean,) = [m.estimate for m in result.measurements if (m.metric, m.condition) == ("relative_robustness", "mean")]
    assert mean.intervals[0].low < mean.value < mean.intervals[0].high
    assert mean.n == 12 * 39


# --- corruptions ---------------------------------------------------------------------------------------------------


def test_the_published_levels():
    planned = corruptions(keep_colour=False)
    counts = {k: sum(c.kind == k for c in planned) for k in (*TYPES, CORRECTED)}
    assert counts == {"contrast": 8, "high_pass": 8, "low_pass": 8, "uniform_noise": 8, "phase_noise": 7, CORRECTED: 7}
    assert len({c.condition for c in planned}) == len(planned) == 47
    assert all("keep_colour=true" in c.recipe for c in corruptions(keep_colour=True) if c.recipe)


def test_the_levels_of_figure_3_can_be_added():
    """The cue-decomposition paper shows contrast .2 and low-pass σ 8, which the levels of 2018 lack."""
    published, both = (corruptions(keep_colour=False, levels=name) for name in LEVELS)
    added = [c.condition for c in both if c.condition not in {p.condition for p in published}]
    assert added == ["contrast/level=0.2", "low_pass/sigma=8"]
    contrast = [c.level for c in both if c.kind == "contrast"]
    assert contrast == [1.0, 0.5, 0.3, 0.2, 0.15, 0.1, 0.05, 0.03, 0.01]
    assert [c.condition for c in both if c.condition not in added] == [c.condition for c in published]


def test_further_corruptions_are_shown_but_not_in_the_mean(data_root, tmp_path):
    planned = corruptions(keep_colour=False, also=("saturation", "salt_and_pepper"))
    added = [c for c in planned if c.kind in ("saturation", "salt_and_pepper")]
    assert {c.condition for c in added} >= {"saturation/factor=0.25", "salt_and_pepper/probability=0.1"}
    assert all("keep_colour" not in c.recipe for c in added)
    run = evaluate(["ideal:shape"], "corruption_robustness", data_root=data_root, out=tmp_path, workers=0,
                   resamples=100, settings={"corruption_robustness.also": "saturation"})  # fmt: skip
    assert run.value("ideal:shape", "relative_robustness", "saturation/factor=0.25") == 1
    mean = next(r for r in run.rows if r.metric == "relative_robustness" and r.condition == "mean")
    assert mean.n == 39 * 8  # the published levels alone


def test_the_texture_cue_of_others_can_be_made_beside_the_published_ones(photographs, tmp_path):
    made = make("cue_decomposition", tmp_path, source=str(photographs), cues="eed,edge_blur", **QUICK)
    assert {s.condition for s in made} == {"original", "eed", "edge_blur"}
    assert keeps("edge_blur") == "texture"


def test_a_run_with_the_levels_of_figure_3_says_so(data_root, tmp_path):
    run = evaluate(["ideal:shape"], "corruption_robustness", data_root=data_root, out=tmp_path, workers=0,
                   resamples=100, settings={"corruption_robustness.levels": "with_figure3"})  # fmt: skip
    assert run.value("ideal:shape", "relative_robustness", "contrast/level=0.2") == 1
    assert all("levels with_figure3" in r.note for r in run.rows)


def test_every_image_is_decoded_once_for_all_corruptions(data_root, tmp_path):
    run = evaluate(["ideal:shape", counting("seen")], "corruption_robustness", data_root=data_root, out=tmp_path,
                   workers=0, resamples=100, shard_size=32)  # fmt: skip
    assert run.record.images_decoded == 8
    assert run.value("ideal:shape", "relative_robustness", "mean") == 1
    assert run.value("ideal:shape", "relative_robustness", "contrast/level=0.3") == 1
    shown = [r for r in run.rows if r.observer == "seen" and r.metric == "accuracy"]
    assert len(shown) == 47
    assert all(r.n == 8 for r in shown)


def counting(name):
    """A model that answers by the mean colour: right on nothing in particular, but it looks at pixels."""
    return cuebench.wrap(lambda x: np.stack([x.mean((1, 2, 3)) * k for k in range(4)], 1), name=name, fingerprint="1",
                         preprocess=Preprocess(32), labels=list(CLASSES))  # fmt: skip


def test_corruptions_really_reach_the_observer(data_root, tmp_path):
    """A model that tells grey from colour is right on clean pictures only."""

    def colourful(x):
        spread = x.std(axis=1).mean((1, 2)) > 1e-3
        return np.eye(4)[np.where(spread, 0, 1)]

    plain = Preprocess(32, std=(1, 1, 1), mean=(0, 0, 0))
    model = cuebench.wrap(colourful, name="grey", fingerprint="1", preprocess=plain, labels=list(CLASSES))
    run = evaluate([model], "corruption_robustness", data_root=data_root, out=tmp_path, workers=0, resamples=100)
    assert run.value("grey", "accuracy", "clean") == 0.25
    assert run.value("grey", "accuracy", "contrast/level=1") == 0.25  # always "dog": right on another quarter
    assert run.value("grey", "relative_robustness", "mean") == 1


def test_a_data_root_with_two_sets_is_ambiguous(data_root, tmp_path):
    for name in ("cue_decomposition", "cue_decomposition_segmentation"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.parquet").write_bytes(b"")
    with pytest.raises(UserError, match="which images"):
        corruption_robustness.read(tmp_path)


# --- making it -----------------------------------------------------------------------------------------------------


def test_batches_of_a_gpu_make_the_same_pictures(made, photographs, tmp_path, monkeypatch):
    """The path of a GPU, run by the CPU's kernels: batches change no pixel, and what is done is kept."""
    monkeypatch.setattr(shape_files, "on_gpu", lambda device: True)
    monkeypatch.setitem(shape_files.BACKEND, True, "cpu")
    monkeypatch.setattr("cuebench.stimuli.makers.cue_decomposition.GPU_BATCH", 3)
    again = make("cue_decomposition", tmp_path, source=str(photographs), cues="eed", **QUICK)
    for path in sorted((Path(made.root) / "eed").rglob("*.png")):
        assert (Path(again.root) / path.relative_to(made.root)).read_bytes() == path.read_bytes()
    stamps = {p: p.stat().st_mtime_ns for p in (Path(again.root) / "eed").rglob("*.png")}
    make("cue_decomposition", tmp_path, source=str(photographs), cues="eed", **QUICK)
    assert stamps == {p: p.stat().st_mtime_ns for p in stamps}


def test_the_same_command_goes_on_where_it_stopped_and_further_cues_can_be_added(photographs, tmp_path):
    def again(cues):
        return make("cue_decomposition", tmp_path, source=str(photographs), cues=cues, **QUICK)

    home = Path(again("eed").root)
    stamps = {p: p.stat().st_mtime_ns for p in home.rglob("*.png")}
    lost = home / "eed" / "dog" / "1.png"
    lost.unlink()
    assert len(again("eed,patch")) == 24
    assert [p for p in stamps if p.stat().st_mtime_ns != stamps[p]] == [lost]
    assert set(json.loads((home / "made.json").read_text())["cues"]) == {"eed", "patch"}


def test_a_draw_of_some_images_says_so(photographs, tmp_path):
    made = make("cue_decomposition", tmp_path, source=str(photographs), count=3, cues="patch", **QUICK)
    assert (len(made), made.partial) == (6, ("3 of 8 images, drawn by seed 0",))


def test_the_command_line_from_images_to_scores(photographs, tmp_path, capsys):
    from cuebench import cli

    options = [f"--set={k}={v}" for k, v in QUICK.items()]
    place = ["--source", str(photographs), "--out", str(tmp_path / "data"), "--cues", "eed,voronoi"]
    assert cli.invoke(["make", "cue_decomposition", *place, "-q", *options]) == 0
    run = ["run", "-p", "cue_decomposition", "-p", "corruption_robustness", "-o", "ideal:shape", "-o", "ideal:texture"]
    where = ["--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--resamples", "100", "--json"]
    assert cli.invoke([*run, *where]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    metrics = {r["metric"] for r in rows}
    assert {"quality_original", "quality_shape", "quality_texture", "shape_bias_cd", "robustness_cd"} <= metrics
    assert "relative_robustness" in metrics
    assert cli.invoke(["make", "cue_decomposition", "--out", str(tmp_path)]) == 2
    assert "--source DIR" in capsys.readouterr().err.replace("\n", " ")


def manifest(home):
    return {s.condition for s in protocols.get("cue_decomposition").read(home)}


def test_a_cue_that_is_added_later_leaves_the_earlier_ones_in_the_set(photographs, tmp_path):
    first = make("cue_decomposition", tmp_path, source=str(photographs), cues="eed,patch",
                 conflicts="blend/patch/0.5/0.5", **QUICK)  # fmt: skip
    before = {s.condition for s in first}
    make("cue_decomposition", tmp_path, source=str(photographs), cues="diamond", **QUICK)
    assert manifest(tmp_path) == before | {"diamond"} == {"original", "eed", "patch", "diamond",
                                                          "conflict/blend/patch/0.5/0.5"}  # fmt: skip


def test_a_refused_command_changes_nothing(photographs, tmp_path):
    make("cue_decomposition", tmp_path, source=str(photographs), cues="eed", **QUICK)
    files = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(UserError, match="eed made with steps=4, now steps=8"):
        make("cue_decomposition", tmp_path, source=str(photographs), cues="eed", **{**QUICK, "steps": 8})
    assert files == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    # Adding another cue does not need the options of the diffusion again.
    make("cue_decomposition", tmp_path, source=str(photographs), cues="patch", **{**QUICK, "steps": 8})
    assert json.loads((tmp_path / "cue_decomposition" / "made.json").read_text())["cues"]["eed"]["steps"] == 4


def test_a_new_set_with_bad_files_leaves_nothing_behind(photographs, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(photographs, source)
    (source / "dog" / "bad.png").write_bytes(b"\x89PNG no picture")
    with pytest.raises(UserError):
        make("cue_decomposition", tmp_path / "d", source=str(source), cues="patch", **QUICK)
    (source / "dog" / "bad.png").unlink()
    assert len(make("cue_decomposition", tmp_path / "d", source=str(source), cues="patch", **QUICK)) == 16


def test_scores_say_that_the_diffusion_is_not_the_published_one(photographs, tmp_path):
    made = make("cue_decomposition", tmp_path, source=str(photographs), cues="eed,patch", accuracy=45, **QUICK)
    assert made.notes[:2] == ("eed with 4 steps, published 16,384", "eed by the fast scheme, accuracy=45")
    found = evaluate(
        "ideal:shape", "cue_decomposition", data_root=tmp_path, out=tmp_path / "r", workers=0, resamples=100
    )
    assert all("eed with 4 steps, published 16,384" in row.note for row in found)
    other = evaluate("ideal:shape", "corruption_robustness", data_root=tmp_path, out=tmp_path / "c", workers=0,
                     resamples=100)  # fmt: skip
    assert not any("eed" in row.note for row in other)


def test_truncated_grey_levels_are_recorded(photographs, tmp_path):
    record = lambda home: json.loads((tmp_path / home / "cue_decomposition" / "made.json").read_text())  # noqa: E731
    make("cue_decomposition", tmp_path / "a", source=str(photographs), cues="eed", **QUICK)
    made = make("cue_decomposition", tmp_path / "b", source=str(photographs), cues="eed", rounding="truncate", **QUICK)
    assert record("a")["cues"]["eed"]["rounding"] == "round"
    assert record("b")["cues"]["eed"]["rounding"] == "truncate"
    assert "eed truncated to grey levels, as in the authors' files" in made.notes
    first, *_ = sorted((tmp_path / "a" / "cue_decomposition" / "eed").rglob("*.png"))
    rounded, truncated = (
        np.asarray(Image.open(tmp_path / home / first.relative_to(tmp_path / "a")), int) for home in ("a", "b")
    )
    assert set(np.unique(rounded - truncated)) == {0, 1}
    with pytest.raises(UserError, match="eed made with steps=4, now steps=4, rounding=truncate"):
        make("cue_decomposition", tmp_path / "a", source=str(photographs), cues="eed", rounding="truncate", **QUICK)
    # A set continues with the options that it was made with.
    make("cue_decomposition", tmp_path / "a", source=str(photographs), cues="eed,patch", **QUICK)


def test_a_set_with_a_label_map_of_the_user_s_own_can_be_moved(photographs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("two.json").write_text(json.dumps({"animal": ["cat", "dog"], "thing": ["car", "clock"]}))
    make("cue_decomposition", Path("d"), source=str(photographs), cues="patch", labels="two.json", **QUICK)
    Path("two.json").unlink()
    Path("d").rename("e")
    found = evaluate("ideal:shape", "cue_decomposition", data_root="e", out="r", workers=0, resamples=100)
    assert found.value("ideal:shape", "quality_original", "original") == 1
    assert {s.label for s in protocols.get("cue_decomposition").read(Path("e"))} == {"animal", "thing"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"classes": "c.json"}, "classes= is for masks"),
        ({"size": -7}, "size=-7"),
        ({"cues": "eeed"}, "Did you mean 'eed'"),
    ],
)
def test_options_that_cannot_be_meant(photographs, tmp_path, options, words):
    with pytest.raises(UserError, match=words) as error:
        make("cue_decomposition", tmp_path, source=str(photographs), **{**QUICK, "cues": "patch", **options})
    assert error.value
    assert not list(tmp_path.iterdir())


def test_people_who_answered_the_same_picture_are_averaged(made, data_root, tmp_path):
    """Three people, of whom one is always right: a third of the pool is right, not the last of them."""
    lines = ["observer,image,response"]
    for who in ("one", "two", "three"):
        lines += [f"{who},{s.id},{s.label if who == 'one' else 'na'}" for s in made if "/" not in s.condition]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    found = evaluate(f"recorded:{tmp_path / 'people.csv'}?kind=person", "cue_decomposition", data_root=data_root,
                     out=tmp_path / "r", workers=0, resamples=100)  # fmt: skip
    assert found.value("people", "quality_original", "original") == pytest.approx(1 / 3)
    assert found.value("one", "quality_original", "original") == 1


@pytest.mark.parametrize(
    ("targets", "words", "answers"),
    [("in16", ["n02123045", "golden retriever", "oak"], [7, 10, -1]), ("", ["tench"], [0])],
)
def test_decisions_are_summarised_in_the_label_space_of_the_observer(targets, words, answers):
    kept = correctness.reduce(StimulusSet("s", (), targets=targets), label_space("imagenet1k"))
    assert kept({"decisions": np.array(words)}, ())[correctness.ANSWER].tolist() == answers
