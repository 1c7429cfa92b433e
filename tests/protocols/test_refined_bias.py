"""REFINED-BIAS end to end: planted sensitivities come out, both views are shown, defects are counted, people fit in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

from cuebench.labels import label_map, label_space
from cuebench.metrics.accuracy import rank
from cuebench.observers.adapters.ideal import load
from cuebench.observers.base import Batch, LoadOptions, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.refined_bias import (
    PROTOCOL,
    check,
    data_report,
    faithful,
    read,
    score,
    stimuli_from_recordings,
)
from cuebench.responses.table import Responses
from cuebench.runs.evaluate import evaluate

SHAPES, TEXTURES = ("balloon", "camera", "clock"), ("tiger", "elephant", "zebra")
HARMONIC = sum(1 / k for k in range(1, 1001)) / 1000


def write_set(root, per_class=6, size=224, classes=(SHAPES, TEXTURES)):
    """Write a set in the published layout; each file has its own grey level."""
    home, level = root / "refined_bias", 0
    for cue, names in zip(("shape", "texture"), classes):
        for name in names:
            folder = home / f"refined_bias_{cue}" / name
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(per_class):
                level += 1
                stem = f"{name}_{i}" if cue == "shape" else f"{(4, 8)[i % 2]}x{(4, 8)[i % 2]}_{name}_{i}"
                pixels = np.full((size, size, 3), (level % 256, level // 256, 7), np.uint8)
                Image.fromarray(pixels).save(folder / f"{stem}.png")
    return root


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("rb"), per_class=60, size=8)


def run(observers, data, out, **options):
    rows = evaluate(observers, ["refined_bias"], data_root=data, out=out, resamples=400, workers=1, **options).rows
    return rows


def value(rows, metric, condition="faithful", observer=None, kind="images"):
    (found,) = [
        r
        for r in rows
        if (r.metric, r.condition, r.ci_kind) == (metric, condition, kind) and observer in (None, r.observer)
    ]
    return found


def test_ideal_observers_give_back_what_is_planted(data, tmp_path):
    rows = run(["ideal:shape", "ideal:texture"], data, tmp_path / "run")
    for own, other in (("shape", "texture"), ("texture", "shape")):
        name = f"ideal:{own}"
        assert value(rows, f"{own}_sensitivity", observer=name).value == 1.0
        assert value(rows, f"{own}_top1", observer=name).value == 1.0
        # A random rank: H_1000/1000 for one member, a little more for clocks, cameras and elephants.
        assert HARMONIC / 3 < value(rows, f"{other}_sensitivity", observer=name).value < 5 * HARMONIC
        assert value(rows, f"{own}_preference", observer=name).value == pytest.approx(0.99, abs=0.015)
        assert value(rows, f"{own}_preference", observer=name, kind="classes").n == 360


def test_the_interval_of_a_mixture_holds_its_planted_value(data):
    """By shape with probability .7, else a random rank among 1,000: 95 % intervals of 24 observers, three each."""
    stimuli, hits = read(data), []
    targets = label_map("refined_bias")
    for seed in range(24):
        (observer,) = load(Spec.parse("ideal:mixture?shape=0.7"), LoadOptions(targets=targets.names, seed=seed))
        told = observer.among(targets.names, targets, "imagenet1k")
        logits = told.respond(Batch(stimuli.stimuli), ["logits"])["logits"]
        rows = score([answers(stimuli, logits)], ScoreOptions(resamples=300)).scores
        shape, texture = 0.7 + 0.3 * HARMONIC, 0.3 + 0.7 * HARMONIC
        planted = {
            "shape_sensitivity": shape,
            "texture_sensitivity": texture,
            "shape_preference": shape / (shape + texture),
        }
        found = {m: value(rows, m) for m in planted}
        hits += [found[m].ci_low <= p <= found[m].ci_high for m, p in planted.items()]
    assert np.mean(hits) > 0.85


def test_rows_of_classes_and_patch_sizes(data, tmp_path):
    rows = run(["ideal:texture"], data, tmp_path / "run")
    conditions = {r.condition for r in rows}
    assert {f"faithful/class={c}" for c in (*SHAPES, *TEXTURES)} <= conditions
    assert {"faithful", "faithful/clean", "faithful/patch=4", "faithful/patch=8"} <= conditions
    assert value(rows, "texture_sensitivity", "faithful/patch=4").n == 90
    assert value(rows, "texture_top1", "faithful/class=tiger").n == 60
    assert not [r for r in rows if r.metric == "shape_top1" and r.condition == "faithful/class=tiger"]
    assert {r.ci_kind for r in rows if r.condition == "faithful"} == {"images", "classes"}
    assert [r.metric for r in rows[:4]] == ["shape_sensitivity"] * 2 + ["texture_sensitivity"] * 2
    assert set(PROTOCOL.metrics) == {r.metric for r in rows}
    assert all("360 of 6,000 stimuli" in r.note for r in rows)


def test_the_same_answers_give_the_same_rows(data, tmp_path):
    for name in "ab":
        run(["ideal:random"], data, tmp_path / name)
    first, second = ((tmp_path / name / "scores.parquet").read_bytes() for name in "ab")
    assert first == second


def answers(stimuli, logits, view="faithful"):
    space = label_space("imagenet1k")
    return Responses("m", "model", stimuli, np.arange(len(stimuli)), {"logits": logits}, space, view)


def test_logits_against_an_independent_loop(tmp_path):
    stimuli = read(write_set(tmp_path, per_class=4, size=8))
    logits = np.random.default_rng(0).normal(size=(len(stimuli), 1000)).astype(np.float32)
    rows = score([answers(stimuli, logits)], ScoreOptions(resamples=50)).scores
    members = label_map("refined_bias").resolve(label_space("imagenet1k"))
    of = dict(zip(members.names, members.members))
    for cue in ("shape", "texture"):
        own = [i for i, s in enumerate(stimuli) if getattr(s, cue)]
        best = [
            min(int(rank(logits[i : i + 1], np.array([m]))[0]) for m in of[getattr(stimuli.stimuli[i], cue)])
            for i in own
        ]
        assert value(rows, f"{cue}_sensitivity").value == pytest.approx(np.mean([1 / b for b in best]))
        assert value(rows, f"{cue}_top5").value == np.mean([b <= 5 for b in best])
    shape, texture = (value(rows, f"{c}_sensitivity").value for c in ("shape", "texture"))
    assert value(rows, "shape_preference").value == pytest.approx(shape / (shape + texture))


def test_scores_with_and_without_defects(tmp_path):
    """A wrong size, a greyscale file and a duplicate: all counted, and left out of the clean rows."""
    root = write_set(tmp_path, per_class=3)
    folder = root / "refined_bias" / "refined_bias_shape" / "balloon"
    Image.fromarray(np.zeros((129, 129, 3), np.uint8)).save(folder / "balloon_10.png")
    Image.fromarray(np.full((224, 224), 9, np.uint8)).save(folder / "balloon_11.png")
    (folder / "balloon_12.png").write_bytes((folder / "balloon_0.png").read_bytes())
    stimuli = read(root)
    result = score([answers(stimuli, np.eye(len(stimuli), 1000, dtype=np.float32))], ScoreOptions(resamples=20))
    assert value(result.scores, "shape_top1").n == 12
    clean = value(result.scores, "shape_top1", "faithful/clean")
    assert (clean.n, clean.n_excluded) == (9, 3)
    assert "1 not 224×224, 1 greyscale, 1 duplicates (3 of 21 files)" in clean.note
    assert result.tables["defects"].column("kind").to_pylist() == ["size", "greyscale", "duplicate"]
    assert result.tables["ranks"].num_rows == 21


def test_people_are_scored_by_their_decisions(tmp_path):
    stimuli = stimuli_from_recordings(["refined_bias_shape/balloon/balloon_0.png", "4x4_tiger_7.png", "clock_3"])
    assert [s.shape or s.texture for s in stimuli] == ["tiger", "balloon", "clock"]
    columns = {"decisions": np.array(["tiger", "balloon", "mouse"])}
    rows = score([Responses("p", "person", stimuli, np.arange(3), columns)], ScoreOptions(resamples=20)).scores
    assert value(rows, "shape_top1", "").value == 0.5
    missing = [r for r in rows if r.metric == "shape_sensitivity" and r.condition == ""]
    assert math.isnan(missing[0].value)
    assert "ranks need logits" in missing[0].note


def test_both_views():
    own = Preprocess(size=240, resize=272, interpolation="bicubic", mean=(0.5, 0.5, 0.5))
    as_published = faithful(own).geometry
    assert (as_published.size, as_published.resize, as_published.interpolation) == ((224, 224), 256, "bilinear")
    assert faithful(own).mean == own.mean
    assert [v.name for v in PROTOCOL.views] == ["faithful", "native"]
    picture = np.arange(224 * 224 * 3, dtype=np.uint32).astype(np.uint8).reshape(224, 224, 3)
    native = PROTOCOL.views[1].change(Preprocess(224)).geometry.apply(Image.fromarray(picture))
    np.testing.assert_array_equal(native, picture)


def test_a_label_space_without_a_class_is_refused(tmp_path):
    stimuli = read(write_set(tmp_path, per_class=1, size=8))
    assert check(label_space("imagenet1k"), stimuli) == []
    assert any("balloon" in p for p in check(label_space(["cat", "dog"]), stimuli))


def test_references_are_the_published_values():
    found = {(r.observer, r.metric): r.value for r in PROTOCOL.reference if "README" not in r.source}
    assert found["ResNet-18", "shape_sensitivity"] == 0.5741
    assert found["ResNet-18", "texture_sensitivity"] == 0.5674
    assert found["ResNet-50", "texture_sensitivity"] == 0.5684
    readme = {r.observer: r.value for r in PROTOCOL.reference if "README" in r.source}
    assert readme == {"BagNet-9": 0.0518, "BagNet-17": 0.0988, "BagNet-33": 0.2438}


def test_the_real_subset(shared):
    stimuli = read(shared)
    assert len(stimuli) == 327
    assert stimuli.partial == ("327 of 6,000 stimuli",)
    _, found = data_report(shared)
    counts = {k: sum(d["kind"] == k for d in found) for k in ("size", "greyscale", "duplicate")}
    assert counts == {"size": 5, "greyscale": 11, "duplicate": 9}
