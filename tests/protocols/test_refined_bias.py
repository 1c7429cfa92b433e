"""REFINED-BIAS end to end: planted sensitivities come back, both views are shown, defects are counted, people too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

import cuebench as cb
from cuebench import metrics
from cuebench.labels import label_map, label_space
from cuebench.metrics.accuracy import rank
from cuebench.observers.adapters.ideal import load
from cuebench.observers.base import Batch, LoadOptions, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.headline import headline_column
from cuebench.protocols.refined_bias import (
    PROTOCOL,
    check,
    data_report,
    faithful,
    faithful_of_fixed_size,
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
    return evaluate(observers, ["refined_bias"], data_root=data, out=out, resamples=400, workers=1, **options).rows


def rows_of(responses, resamples=50):
    return score_rows(PROTOCOL, score(responses, ScoreOptions(resamples=resamples)))


def value(rows, metric, condition="faithful", observer=None, kind="images"):
    (match,) = [
        r
        for r in rows
        if (r.metric, r.condition, r.ci_kind) == (metric, condition, kind) and observer in (None, r.observer)
    ]
    return match


def test_ideal_observers_give_back_what_is_planted(data, tmp_path):
    rows = run(["ideal:shape", "ideal:texture"], data, tmp_path / "run")
    for cue, other in (("shape", "texture"), ("texture", "shape")):
        name = f"ideal:{cue}"
        assert value(rows, f"{cue}_sensitivity", observer=name).value == 1.0
        assert value(rows, f"{cue}_top1", observer=name).value == 1.0
        # A random rank: H_1000/1000 for one member, a little more for clocks, cameras and elephants.
        assert HARMONIC / 3 < value(rows, f"{other}_sensitivity", observer=name).value < 5 * HARMONIC
        assert value(rows, f"{cue}_preference", observer=name).value == pytest.approx(0.99, abs=0.015)
        assert value(rows, f"{cue}_preference", observer=name, kind="classes").n == 360
    column = headline_column(rows, "refined_bias")
    assert (column.metric, column.condition) == ("shape_preference", "faithful")
    assert column.rows["ideal:shape"].value > 0.97 > 0.03 > column.rows["ideal:texture"].value
    shape, texture = (headline_column(rows, "refined_bias", axis) for axis in PROTOCOL.headline.plane)
    assert (shape.rows["ideal:shape"].value, texture.rows["ideal:texture"].value) == (1.0, 1.0)


def test_the_interval_of_a_mixture_holds_its_planted_value(data):
    """By shape with probability .7, else a random rank among 1,000: 95 % intervals of 24 observers, three each."""
    stimuli, hits = read(data), []
    targets = label_map("refined_bias")
    for seed in range(24):
        (observer,) = load(Spec.parse("ideal:mixture?shape=0.7"), LoadOptions(targets=targets.names, seed=seed))
        ranking = observer.among(targets.names, targets, "imagenet1k")
        logits = ranking.respond(Batch(stimuli.stimuli), ["logits"])["logits"]
        rows = rows_of([answers(stimuli, logits)], 300)
        shape, texture = 0.7 + 0.3 * HARMONIC, 0.3 + 0.7 * HARMONIC
        planted = {
            "shape_sensitivity": shape,
            "texture_sensitivity": texture,
            "shape_preference": shape / (shape + texture),
        }
        measured = {m: value(rows, m) for m in planted}
        hits += [measured[m].ci_low <= p <= measured[m].ci_high for m, p in planted.items()]
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
    patch = value(rows, "texture_sensitivity", "faithful/patch=4")
    assert patch.n_excluded == 90
    assert "90 with other patch sizes of 180" in patch.note
    assert all("360 of 6,000 stimuli" in r.note for r in rows)


def test_the_same_answers_give_the_same_rows(data, tmp_path):
    for name in "ab":
        run(["ideal:random"], data, tmp_path / name)
    first, second = ((tmp_path / name / "scores.parquet").read_bytes() for name in "ab")
    assert first == second


def answers(stimuli, logits, view="faithful"):
    space = label_space("imagenet1k")
    return Responses("m", "model", stimuli, np.arange(len(stimuli)), {"logits": logits}, space, view)


@pytest.fixture
def planted(tmp_path):
    """Return stimuli, logits, and the arguments of the public functions for each cue."""
    stimuli = read(write_set(tmp_path, per_class=12, size=8))
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(len(stimuli), 1000)).astype(np.float32)
    resolved = label_map("refined_bias").resolve(label_space("imagenet1k"))
    for i, s in enumerate(stimuli):  # some images are recognised, as the best class or as one of the best
        logits[i, resolved.members[resolved.names.index(s.shape or s.texture)][0]] += rng.choice([0, 0, 2, 3, 9])
    arguments = {}
    for cue in ("shape", "texture"):
        rows = [i for i, s in enumerate(stimuli) if getattr(s, cue)]
        target = np.array([resolved.names.index(getattr(stimuli.stimuli[i], cue)) for i in rows])
        arguments[cue] = (logits[rows], target, resolved.members)
    return stimuli, logits, arguments


def test_the_public_functions_give_what_the_protocol_writes(planted):
    stimuli, logits, arguments = planted
    rows = rows_of([answers(stimuli, logits)])
    expected = {}
    for cue in ("shape", "texture"):
        for measure in ("sensitivity", "top1", "top5"):
            expected[f"{cue}_{measure}", "faithful"] = getattr(metrics, f"{cue}_{measure}")(*arguments[cue])
        distortion = metrics.distorted_prediction(*arguments[cue])
        expected["distorted_prediction", f"faithful/cue={cue}"] = distortion
    sensitivities = [expected[f"{cue}_sensitivity", "faithful"] for cue in ("shape", "texture")]
    expected["shape_preference", "faithful"] = metrics.shape_preference(*sensitivities)
    expected["texture_preference", "faithful"] = metrics.texture_preference(*sensitivities)
    assert {metric for metric, _ in expected} == set(PROTOCOL.metrics)
    assert {key: value(rows, *key).value for key in expected} == expected
    assert all(0 < v < 1 for v in expected.values()), "a table that could not tell a wrong function"


def test_ranks_against_an_independent_loop(planted):
    stimuli, logits, _ = planted
    rows = rows_of([answers(stimuli, logits)])
    members = label_map("refined_bias").resolve(label_space("imagenet1k"))
    of = dict(zip(members.names, members.members))
    for cue in ("shape", "texture"):
        best = [
            min(int(rank(logits[i : i + 1], np.array([m]))[0]) for m in of[getattr(s, cue)])
            for i, s in enumerate(stimuli)
            if getattr(s, cue)
        ]
        assert value(rows, f"{cue}_sensitivity").value == pytest.approx(np.mean([1 / b for b in best]))
        assert value(rows, f"{cue}_top5").value == np.mean([b <= 5 for b in best])


def test_a_preference_without_classes_to_resample_says_which_cue_lacks_them(tmp_path):
    stimuli = read(write_set(tmp_path, per_class=4, size=8, classes=(("balloon",), TEXTURES)))
    logits = np.random.default_rng(0).normal(size=(len(stimuli), 1000)).astype(np.float32)
    rows = rows_of([answers(stimuli, logits)])
    by_class = value(rows, "shape_preference", kind="classes")
    assert math.isnan(by_class.ci_low)
    assert "shape cues: 1 cluster: nothing to resample" in by_class.note
    assert by_class.value == value(rows, "shape_preference").value
    assert value(rows, "shape_preference").ci_low < by_class.value


def test_scores_with_and_without_defects(tmp_path):
    """A wrong size, a greyscale file and a duplicate: all counted, and left out of the clean rows."""
    root = write_set(tmp_path, per_class=3)
    folder = root / "refined_bias" / "refined_bias_shape" / "balloon"
    Image.fromarray(np.zeros((129, 129, 3), np.uint8)).save(folder / "balloon_10.png")
    Image.fromarray(np.full((224, 224), 9, np.uint8)).save(folder / "balloon_11.png")
    (folder / "balloon_12.png").write_bytes((folder / "balloon_0.png").read_bytes())
    stimuli = read(root)
    result = score([answers(stimuli, np.eye(len(stimuli), 1000, dtype=np.float32))], ScoreOptions(resamples=20))
    rows = score_rows(PROTOCOL, result)
    assert value(rows, "shape_top1").n == 12
    clean = value(rows, "shape_top1", "faithful/clean")
    assert (clean.n, clean.n_excluded) == (9, 3)
    assert "3 defective of 12" in clean.note
    assert "1 not 224×224, 1 greyscale, 1 duplicates (3 of 21 files)" in clean.note
    assert result.tables["defects"].column("kind").to_pylist() == ["size", "greyscale", "duplicate"]
    assert result.tables["ranks"].num_rows == 21


def test_people_are_scored_by_their_decisions(tmp_path):
    stimuli = stimuli_from_recordings(["refined_bias_shape/balloon/balloon_0.png", "4x4_tiger_7.png", "clock_3"])
    assert [s.shape or s.texture for s in stimuli] == ["tiger", "balloon", "clock"]
    columns = {"decisions": np.array(["tiger", "balloon", "mouse"])}
    rows = rows_of([Responses("p", "person", stimuli, np.arange(3), columns)])
    assert value(rows, "shape_top1", "").value == 0.5
    for metric, total in (("shape_sensitivity", 2), ("texture_preference", 3)):
        missing = value(rows, metric, "")
        assert math.isnan(missing.value)
        assert (missing.n, missing.n_excluded) == (0, total)
        assert "ranks need logits" in missing.note


def test_unreadable_and_unanswered_stimuli_are_counted(data):
    stimuli = read(data)
    logits = np.zeros((len(stimuli) - 3, 1000), np.float32)
    space, answered = label_space("imagenet1k"), np.arange(3, len(stimuli))
    unreadable = {s.id: "broken" for s in stimuli.stimuli[:2]}
    responses = Responses("m", "model", stimuli, answered, {"logits": logits}, space, "faithful", unreadable)
    cue = "shape" if stimuli.stimuli[0].shape else "texture"
    row = value(rows_of([responses]), f"{cue}_top1")
    assert (row.n, row.n_excluded) == (177, 3)
    assert "2 unreadable, 1 unanswered of 180" in row.note


def test_pooled_people_have_an_interval_over_subjects(data):
    stimuli = read(data)
    classes = np.array([s.shape or s.texture for s in stimuli])
    rows = np.concatenate([np.arange(len(stimuli))] * 3)
    subject = np.repeat(["a", "b", "c"], len(stimuli))
    decisions = np.where(subject == "a", classes[rows], "na")
    pooled = Responses("all", "people", stimuli, rows, {"decisions": decisions, "subject": subject})
    row = value(rows_of([pooled]), "shape_top1", "", kind="subjects")
    assert (row.value, row.n, row.n_excluded) == (pytest.approx(1 / 3), 540, 0)
    assert (row.ci_low < 0.01, row.ci_high > 0.6) == (True, True), "one of three people answers everything correctly"


def test_both_views():
    preprocess = Preprocess(size=240, resize=272, interpolation="bicubic", mean=(0.5, 0.5, 0.5))
    as_published = faithful(preprocess).geometry
    assert (as_published.size, as_published.resize, as_published.interpolation) == ((224, 224), 256, "bilinear")
    assert faithful(preprocess).mean == preprocess.mean
    assert [v.name for v in PROTOCOL.views] == ["faithful", "native"]
    picture = np.arange(224 * 224 * 3, dtype=np.uint32).astype(np.uint8).reshape(224, 224, 3)
    native = PROTOCOL.views[1].change(Preprocess(224)).geometry.apply(Image.fromarray(picture))
    np.testing.assert_array_equal(native, picture)


@pytest.mark.torch
def test_the_view_of_a_fixed_size_is_the_transform_that_the_authors_gave_cmt_b():
    """Their settings, with torchvision's own transforms: Resize(int(256 / 224 · 256), bicubic), CenterCrop(256)."""
    import_torchvision()
    from torchvision import transforms

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (224, 230, 3), np.uint8))
    ours = faithful_of_fixed_size(Preprocess(size=256, resize=256, interpolation="bilinear", mean=(0.5,) * 3))
    assert ours.geometry.resize == 292
    published = transforms.Compose([transforms.Resize(292, interpolation=3), transforms.CenterCrop(256)])
    np.testing.assert_array_equal(ours.geometry.apply(picture), np.asarray(published(picture)))
    assert ours.mean == (0.5,) * 3
    assert faithful_of_fixed_size(Preprocess(size=384)).geometry.resize == 438


def _small_cmt():
    """Return a narrow CMT of one block for each stage, at the 256 pixels of CMT-B."""
    from cuebench.observers.torch.models.cmt import CMT

    network = CMT(256, (8, 16, 32, 64), 8, (1, 1, 1, 1))
    return cb.wrap(network, name="cmt", preprocess=network.preprocess, labels="imagenet1k", device="cpu")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("observer", "size", "resize"),
    [(lambda: "timm:vit_tiny_patch16_384?weights=random", 384, 438), (_small_cmt, 256, 292)],
    ids=["384", "256"],
)
def test_models_with_a_fixed_input_are_shown_their_own_size(tmp_path, observer, size, resize):
    data = write_set(tmp_path / "data", per_class=1, size=224, classes=(("balloon",), ("tiger",)))
    result = evaluate([observer()], ["refined_bias"], data_root=data, out=tmp_path / "run", resamples=100, workers=1)
    assert not result.failures
    values = {r.condition: r for r in result.rows if r.metric == "shape_preference" and r.ci_kind == "images"}
    assert {"faithful", "native"} <= set(values)
    said = f"accepts {size}×{size} pixels only, not the 224×224 of the faithful view: resize {resize} (bicubic)"
    assert said in values["faithful"].note
    assert "pixels only" not in values["native"].note


@pytest.mark.torch
def test_a_network_that_takes_any_size_is_shown_224_pixels(tmp_path):
    torch = pytest.importorskip("torch")
    sizes = []

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 1000)

        def forward(self, x):
            sizes.append(tuple(x.shape[2:]))
            return self.fc(x.mean(dim=(2, 3)))

    data = write_set(tmp_path / "data", per_class=1, size=224, classes=(("balloon",), ("tiger",)))
    observer = cb.wrap(Network(), name="any", preprocess=Preprocess(size=299, resize=342), labels="imagenet1k")
    rows = run([observer], data, tmp_path / "run")
    assert not any("pixels only" in r.note for r in rows)
    assert set(sizes) == {(224, 224), (299, 299)}, "Inception-v3 too was run at 224"


def test_a_label_space_without_a_class_is_refused(tmp_path):
    stimuli = read(write_set(tmp_path, per_class=1, size=8))
    assert check(label_space("imagenet1k"), stimuli) == []
    assert any("balloon" in p for p in check(label_space(["cat", "dog"]), stimuli))


def test_references_are_the_published_values():
    table = {(r.observer, r.metric): r.value for r in PROTOCOL.reference if "README" not in r.source}
    assert table["ResNet-18", "shape_sensitivity"] == 0.5741
    assert table["ResNet-18", "texture_sensitivity"] == 0.5674
    assert table["ResNet-50", "texture_sensitivity"] == 0.5684
    readme = {r.observer: r.value for r in PROTOCOL.reference if "README" in r.source}
    assert readme == {"BagNet-9": 0.0518, "BagNet-17": 0.0988, "BagNet-33": 0.2438}


def test_the_real_subset(shared):
    stimuli = read(shared)
    assert len(stimuli) == 327
    assert stimuli.partial == ("327 of 6,000 stimuli",)
    _, problems = data_report(shared)
    counts = {k: sum(d["kind"] == k for d in problems) for k in ("size", "greyscale", "duplicate")}
    assert counts == {"size": 5, "greyscale": 11, "duplicate": 9}
