"""Feature suppression: the plan of pictures, planted reliance recovered, one decode for a file, quality measures."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

from cuebench.protocols.feature_suppression import PROTOCOL, data_report, read
from cuebench.protocols.feature_suppression.suppressions import LEVELS, suppressions
from cuebench.responses.store import batches
from cuebench.runs.evaluate import evaluate
from cuebench.stimuli.render import decode, render
from cuebench.types import REMOVED

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
    found = suppressions()
    names = [c.condition for c in found]
    assert len(names) == len(set(names)) == 57
    assert {"original", "patch_shuffle/grid=16", "gaussian_blur/kernel=3", "channel_shuffle"} <= set(names)
    assert sum("+" in n for n in names) == 16
    assert {k for c in found for k in c.kinds} == set(LEVELS)


def test_the_cue_that_is_taken_away_is_marked(data):
    stimuli = {s.condition: s for s in read(data).stimuli[:57]}
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
        assert all(files.count(f) == 57 for f in set(files))


def test_pictures_are_squares_and_the_original_is_the_centre(data):
    stimuli = read(data)
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


def test_quality_of_the_suppressions(data):
    title, rows = data_report(data, images=2)
    assert "56 suppressions, mean of 2 photographs" in title
    by = {r["suppression"]: r for r in rows}
    weak, strong = by["gaussian_blur/kernel=3"], by["gaussian_blur/kernel=15"]
    assert strong["high_frequency"] < weak["high_frequency"] <= 1.0 + 1e-6
    assert by["patch_shuffle/grid=16"]["gradient_correlation"] < by["greyscale/alpha=1.0"]["gradient_correlation"]
