"""Feature suppression: the plan of pictures, planted reliance recovered, one decode for a file, quality measures."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cuebench import metrics
from cuebench.labels import LabelSpace
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.feature_suppression import PROTOCOL, data_report, read
from cuebench.protocols.feature_suppression.suppressions import LEVELS, kinds_of, suppressions
from cuebench.protocols.headline import headline_column
from cuebench.responses.store import batches
from cuebench.responses.table import Responses
from cuebench.runs.evaluate import evaluate
from cuebench.stimuli.render import decode, render
from cuebench.types import REMOVED, Stimulus, StimulusSet

WNIDS = ("n02123045", "n02391049", "n02690373", "n04254680")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("fs")
    (root / "imagenet_val").mkdir()
    rng, rows = np.random.default_rng(0), []
    for i in range(40):
        name = f"p{i:02}.png"
        noise = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((96, 64), Image.Resampling.BICUBIC).save(root / "imagenet_val" / name)
        rows.append({"file": name, "wnid": WNIDS[i % 4]})
    with (root / "imagenet_val" / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["file", "wnid"])
        writer.writeheader()
        writer.writerows(rows)
    return root


def test_every_level_is_planned():
    found = suppressions("corrected")
    names = [c.condition for c in found]
    assert len(names) == len(set(names)) == 57
    assert {"original", "patch_shuffle/grid=16", "gaussian_blur/kernel=3", "channel_shuffle"} <= set(names)
    assert sum("+" in n for n in names) == 16
    assert {k for c in found for k in c.kinds} == set(LEVELS)
    for c in (*found, *suppressions()):
        assert kinds_of(c.name) == c.kinds, "scores know the kinds from the name"


def test_the_plan_of_the_authors():
    """Levels of definitions.md § 6: 8 + 8, 6 + 7 + 5, 5 + 1, and the pairs 8, 6 + 8 − 1 (in both lists), 6."""
    names = [c.condition for c in suppressions("faithful")]
    assert len(names) == len(set(names)) == 1 + 16 + 18 + 6 + 8 + 13 + 6
    blurs = [n.removeprefix("gaussian_blur/") for n in names if n.startswith("gaussian_blur/")]
    assert blurs == [
        "kernel=3&sigma=0.33", "kernel=5&sigma=0.66", "kernel=7&sigma=1.0", "kernel=9&sigma=1.33",
        "kernel=11&sigma=1.66", "kernel=13&sigma=2.0", "kernel=15&sigma=2.33",
    ]  # fmt: skip
    assert {n for n in names if n.startswith("bilateral/")} == {
        f"bilateral/diameter={d}&sigma_colour={c}"
        for d, c in ((4, 50), (6, 80), (8, 110), (10, 140), (12, 170), (14, 200))
    }
    assert "bilateral+patch_shuffle/diameter=14&sigma_colour=200&grid=12" in names
    assert "bilateral+patch_shuffle/diameter=12&sigma_colour=170&grid=16" in names
    assert "patch_shuffle+greyscale/grid=16&alpha=1.0&weights=rec601" in names
    assert "bilateral+greyscale/diameter=4&sigma_colour=50&alpha=1.0&weights=rec601" in names


@pytest.mark.parametrize("mode", ["faithful", "corrected"])
def test_small_pictures_are_suppressed_in_their_own_pixels(mode, data):
    chosen = PROTOCOL.configured({"mode": mode, "size": 64})
    small, usual = chosen.read(data), read(data, mode)
    assert [s.id for s in small] == [s.id for s in usual]
    assert "64 × 64 pixels" in small.notes[-1]
    number = len(suppressions(mode))
    for stimulus in small.stimuli[:number]:
        picture = np.asarray(render(small.root, decode(small.root, stimulus), stimulus))
        assert picture.shape == (64, 64, 3), stimulus.condition


def test_the_cue_that_is_taken_away_is_marked(data):
    stimuli = {s.condition: s for s in read(data, "corrected").stimuli[:57]}
    assert stimuli["original"].shape == stimuli["original"].label
    assert stimuli["patch_shuffle/grid=4"].shape == REMOVED
    assert stimuli["gaussian_blur/kernel=9"].texture == REMOVED
    assert stimuli["greyscale/alpha=1.0"].texture == stimuli["original"].label
    both = stimuli["patch_rotation+bilateral"]
    assert (both.shape, both.texture) == (REMOVED, REMOVED)
    assert both.recipe.index("bilateral") < both.recipe.index("patch_rotation")


def test_a_file_is_decoded_once(data):
    """All pictures of a photograph are in one batch, so one task makes them from one decode."""
    for _, batch in batches(read(data).stimuli, 32):
        files = [s.path for s in batch]
        assert all(files.count(f) == len(suppressions()) for f in set(files))


@pytest.mark.parametrize("mode", ["faithful", "corrected"])
def test_pictures_are_squares_and_shuffles_keep_every_pixel(data, mode):
    stimuli = read(data, mode)
    first = [s for s in stimuli if s.path == stimuli.stimuli[0].path]
    file = decode(stimuli.root, first[0])
    made = {s.condition: np.asarray(render(stimuli.root, file, s)) for s in first}
    assert {p.shape for p in made.values()} == {(224, 224, 3)}
    original, shuffled = made["original"], made["patch_shuffle/grid=2"]
    assert not np.array_equal(original, shuffled)
    # A shuffle keeps every pixel of the square: nothing was cut off after it.
    np.testing.assert_array_equal(np.sort(original.reshape(-1, 3), axis=0), np.sort(shuffled.reshape(-1, 3), axis=0))


@pytest.mark.parametrize(("observer", "planted"), [("shape", 1.0), ("texture", 0.0), ("mixture?shape=0.7", 0.7)])
def test_planted_reliance_is_recovered(data, tmp_path, observer, planted):
    rows = evaluate([f"ideal:{observer}"], ["feature_suppression"], data_root=data, out=tmp_path, resamples=300).rows
    by = {(r.metric, r.condition): r for r in rows}
    found = by["shape_reliance", "all"]
    assert found.ci_low - 0.02 <= planted <= found.ci_high + 0.02
    assert by["relative_accuracy", "suppress=colour"].value == 1.0
    assert by["accuracy", "original"].value == 1.0
    # Guessing among the four classes is right in a quarter of the cases.
    expected = (1 - planted) + planted / 4
    assert by["relative_accuracy", "suppress=shape"].value == pytest.approx(expected, abs=0.12)
    assert by["relative_accuracy", "patch_shuffle"].n == 320
    assert set(PROTOCOL.metrics) == {r.metric for r in rows}


def planted(images=12):
    """Stimuli without files, and logits of a model that needs shape more than texture."""
    names = ("cat", "dog", "car", "clock")
    photographs = [Stimulus(f"{i:02}", label=names[i % 4]) for i in range(images)]
    stimuli = StimulusSet("planted", tuple(c.stimulus(p) for p in photographs for c in suppressions()))
    target = np.array([names.index(s.label) for s in stimuli])
    hint = np.array([0.8 if s.shape == REMOVED else 1.5 if s.texture == REMOVED else 3.0 for s in stimuli])
    logits = np.eye(4)[target] * hint[:, None] + np.random.default_rng(3).normal(size=(len(stimuli), 4))
    return stimuli, target, logits, LabelSpace("four", names)


def answered(stimuli, logits, space, keep=None, excluded=()):
    columns = PROTOCOL.reduce(stimuli, space)({"logits": logits}, stimuli.stimuli)
    rows = np.arange(len(stimuli)) if keep is None else keep
    return Responses("net", "model", stimuli, rows, {k: v[rows] for k, v in columns.items()}, space,
                     excluded=dict.fromkeys(excluded, "broken"))  # fmt: skip


def test_the_scores_are_the_public_metrics_of_the_same_answers():
    stimuli, target, logits, space = planted()
    result = PROTOCOL.score([answered(stimuli, logits, space)], ScoreOptions(resamples=100))
    found = {(m.metric, m.condition): m.estimate.value for m in result.measurements}
    condition = np.array([s.condition for s in stimuli])
    correct = {c.condition: (logits.argmax(axis=1) == target)[condition == c.condition] for c in suppressions()}
    for c, right in correct.items():
        rows = condition == c
        assert found["accuracy", c] == pytest.approx(metrics.accuracy(logits[rows], target[rows]), abs=1e-12)
        if c != "original":
            expected = metrics.relative_accuracy(right, correct["original"])
            assert found["relative_accuracy", c] == pytest.approx(expected, abs=1e-12)
    kinds = {}
    for kind, members in LEVELS.items():
        names = {}
        for name in members:
            levels = np.concatenate([correct[c.condition] for c in suppressions() if c.name == name])
            names[name] = metrics.relative_accuracy(levels, correct["original"])
            assert found["relative_accuracy", name] == pytest.approx(names[name], abs=1e-12)
        kinds[kind] = np.mean(list(names.values()))
        assert found["relative_accuracy", f"suppress={kind}"] == pytest.approx(kinds[kind], abs=1e-12)
    expected = metrics.shape_reliance(kinds["shape"], kinds["texture"])
    assert 0.5 < expected < 1
    assert found["shape_reliance", "all"] == pytest.approx(expected, abs=1e-12)
    assert {metric for metric, _ in found} == set(PROTOCOL.metrics)
    rows = score_rows(PROTOCOL, result)
    assert (headline_column(rows, PROTOCOL.name).metric, len(rows)) == ("shape_reliance", len(found))
    plane = [headline_column(rows, PROTOCOL.name, axis).rows["net"].value for axis in PROTOCOL.headline.plane]
    assert plane == pytest.approx([kinds["texture"], kinds["shape"]])


def test_an_unreadable_photograph_is_counted_in_pictures():
    stimuli, _, logits, space = planted()
    lost = {s.id for s in stimuli if s.image == "03"}
    keep = np.array([i for i, s in enumerate(stimuli) if s.id not in lost])
    result = PROTOCOL.score([answered(stimuli, logits, space, keep, lost)], ScoreOptions(resamples=100))
    counted = {
        (m.metric, m.condition): (m.estimate.n, {why: k for why, k in m.estimate.excluded.items() if k})
        for m in result.measurements
    }
    assert counted["accuracy", "original"] == (11, {"unreadable": 1})
    assert counted["relative_accuracy", "patch_shuffle"] == (88, {"unreadable": 8})
    assert counted["relative_accuracy", "suppress=shape"] == (176, {"unreadable": 16})
    assert all("11 photographs" in m.estimate.notes for m in result.measurements)


def test_without_the_unchanged_photographs_there_is_no_reliance():
    stimuli, _, logits, space = planted()
    rows = [i for i, s in enumerate(stimuli) if s.condition != "original"]
    fewer = StimulusSet("planted", tuple(stimuli.stimuli[i] for i in rows))
    result = PROTOCOL.score([answered(fewer, logits[rows], space)], ScoreOptions(resamples=100))
    assert {m.metric for m in result.measurements} == {"shape_reliance", "accuracy"}
    (row,) = [r for r in score_rows(PROTOCOL, result) if r.metric == "shape_reliance"]
    assert np.isnan(row.value)
    assert "needs the unchanged photographs" in row.note


def test_quality_of_the_suppressions(data):
    title, rows = data_report(data, images=2, mode="corrected")
    assert "56 corrected suppressions, mean of 2 photographs" in title
    by = {r["suppression"]: r for r in rows}
    weak, strong = by["gaussian_blur/kernel=3"], by["gaussian_blur/kernel=15"]
    assert strong["high_frequency"] < weak["high_frequency"] <= 1.0 + 1e-6
    assert by["patch_shuffle/grid=16"]["gradient_correlation"] < by["greyscale/alpha=1.0"]["gradient_correlation"]


def test_every_row_says_in_which_mode(data, tmp_path):
    both = {
        mode: evaluate(["ideal:shape"], ["feature_suppression"], data_root=data, out=tmp_path / mode, resamples=100,
                       limit=120, settings={"feature_suppression.mode": mode}).rows
        for mode in ("faithful", "corrected")
    }  # fmt: skip
    for mode, rows in both.items():
        assert all(f"{mode} suppressions" in r.note and r.protocol_version == 5 for r in rows)


# --------------------------------------------------------------------------------------- as the authors' code does it


@pytest.fixture(scope="module")
def photograph():
    rng = np.random.default_rng(1)
    coarse = Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8))
    return coarse.resize((300, 200), Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def made(photograph):
    """Return condition → picture, and the stretched photograph."""
    stimulus = Stimulus("p", label="cat")
    pictures = {
        c.condition: np.asarray(render("", photograph, replace(c.stimulus(stimulus), path="p.png")))
        for c in suppressions()
        if "+" not in c.name or "grid=2" in c.condition or "diameter=4&" in c.condition
    }
    return pictures, np.asarray(photograph.resize((224, 224), Image.Resampling.BILINEAR))


def test_filters_are_those_of_opencv(made):
    """The calls of the authors' repository on 8-bit RGB; ours compute in floats, which rounds once."""
    cv2 = pytest.importorskip("cv2")
    pictures, plain = made
    np.testing.assert_array_equal(pictures["original"], plain)
    grey = np.repeat(cv2.cvtColor(plain, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)
    expected = {
        "gaussian_blur/kernel=9&sigma=1.33": cv2.GaussianBlur(plain, (9, 9), sigmaX=1.33),
        "gaussian_blur/kernel=15&sigma=2.33": cv2.GaussianBlur(plain, (15, 15), sigmaX=2.33),
        "bilateral/diameter=10&sigma_colour=140": cv2.bilateralFilter(plain, d=10, sigmaColor=140, sigmaSpace=75),
        "non_local_means/strength=25&patch=15&colour=rgb": cv2.fastNlMeansDenoising(
            plain, h=25, templateWindowSize=14, searchWindowSize=21
        ),
        "greyscale/alpha=1.0&weights=rec601": grey,
        "greyscale/alpha=0.4&weights=rec601": np.floor(0.6 * plain + 0.4 * grey + 1e-9),
        "bilateral+greyscale/diameter=4&sigma_colour=50&alpha=1.0&weights=rec601": np.repeat(
            cv2.cvtColor(cv2.bilateralFilter(plain, 4, 50, 75), cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2
        ),
    }
    for condition, theirs in expected.items():
        difference = np.abs(pictures[condition].astype(int) - theirs.astype(int))
        assert difference.max() <= (2 if "bilateral" in condition else 1), condition
        assert difference.mean() < 0.6, condition
        assert "greyscale/alpha=0.4" not in condition or (difference == 0).mean() > 0.999


def test_turned_patches_are_squares_of_the_resized_image(made):
    """A grid of 6 does not divide 224: the authors turn 38 × 38 patches of the image at 228 × 228."""
    pictures, plain = made
    large = Image.fromarray(plain).resize((228, 228), Image.Resampling.BILINEAR)
    turned = [np.asarray(large)]
    for quarters in (1, 2, 3):
        patches = np.asarray(large).reshape(6, 38, 6, 38, 3).transpose(0, 2, 1, 3, 4)
        back = np.rot90(patches, quarters, axes=(2, 3)).transpose(0, 2, 1, 3, 4).reshape(228, 228, 3)
        turned.append(np.ascontiguousarray(back))
    small = np.stack([np.asarray(Image.fromarray(t).resize((224, 224), Image.Resampling.BILINEAR)) for t in turned])
    picture = pictures["patch_rotation/grid=6"].astype(int)
    centres = (np.arange(6) * 224 / 6 + 224 / 12).astype(int)
    for y in centres:
        for x in centres:  # away from the seams, each patch is one of the four turned ones
            window = np.s_[y - 12 : y + 12, x - 12 : x + 12]
            assert min(np.abs(picture[window] - t[window]).max() for t in small.astype(int)) <= 1


def test_channels_may_keep_their_order():
    """The authors draw among all six orders, so that a sixth of the photographs is unchanged."""
    (shuffle,) = [c for c in suppressions() if c.name == "channel_shuffle"]
    recipes = [shuffle.stimulus(Stimulus(str(i), label="cat")).recipe for i in range(600)]
    share = np.mean([r.endswith("order=[0,1,2]") for r in recipes])
    assert 0.11 < share < 0.23
    assert len(set(recipes)) == 6


def test_golden_quality_on_real_photographs(shared):
    """definitions.md § 6: the 4th to 23rd file of imagenet_val, resized to 224 × 224 bilinear."""
    from cuebench.cues.by_name import call
    from cuebench.metrics.suppression_quality import suppression_quality

    files = sorted(p for p in (shared / "imagenet_val").iterdir() if p.suffix != ".csv")[3:23]
    photographs = [
        np.asarray(Image.open(f).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)) for f in files
    ]
    golden = {
        ("gaussian_blur", "kernel", 9, "sigma", 1.33, "quantised", True): (0.597, 0.514, 0.777),
        ("bilateral", "diameter", 10, "sigma_colour", 140): (0.595, 0.517, 0.836),
    }
    for (cue, *options), values in golden.items():
        keywords = dict(zip(options[::2], options[1::2]))
        mean = np.mean([suppression_quality(p, call(cue, p, **keywords)) for p in photographs], axis=0)
        np.testing.assert_allclose(mean, values, atol=1e-3)
