"""Training images: the planted cue predicts the class, the other one says nothing of it."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.controls.images import INSTANCES, PICTURES, Parts, labelled, scenes, varied
from cuebench.stimuli.toy_world import CLASSES

SIDE = 16
N = len(CLASSES)


@pytest.fixture(scope="module")
def parts() -> Parts:
    """Shapes that are vertical bars of a class's width, and materials of a class's grey level: both can be read."""
    covers = np.zeros((N, 2, SIDE, SIDE), np.float32)
    for label in range(N):
        covers[label, :, :, : 4 + label] = 1
    materials = np.empty((N, 2, SIDE, SIDE, 3), np.float32)
    materials[:] = (0.05 + 0.06 * np.arange(N))[:, None, None, None, None]
    return Parts(covers, materials, np.full((3, SIDE, SIDE, 3), 0.6, np.float32))


def seen(image: np.ndarray) -> tuple[int, int]:
    """Read width and grey level of a bar: the class of the shape and of the material, −1 where there is none."""
    row = image[SIDE // 2, :, 0].astype(int)
    inside = row < 140
    width, level = int(inside.sum()), row[inside]
    grey = (level[0] / 255 - 0.05) / 0.06 if len(level) else -1
    return width - 4, round(grey) if abs(grey - round(grey)) < 0.1 else -1


def association(kind: str, cue: int, parts: Parts) -> float:
    """Return how often a cue is of the class of the label, among images where the cue can be read."""
    data = labelled(kind, 40 * N, parts, np.random.default_rng(0))
    read = [(seen(image)[cue], label) for image, label in zip(data.images, data.labels)]
    there = [(value, label) for value, label in read if 0 <= value < N]
    assert len(there) > 100
    return float(np.mean([value == label for value, label in there]))


def test_both_cues_agree(parts):
    assert association("both", 0, parts) == 1
    assert association("both", 1, parts) == 1


def test_only_the_shape_predicts(parts):
    # Line drawings are left out by the reading of a grey level; the shape is read from filled ones.
    assert association("shape", 1, parts) < 0.3


def test_only_the_material_predicts(parts):
    assert association("texture", 1, parts) == 1
    assert association("texture", 0, parts) < 0.3


def test_a_pattern_has_no_colour_of_its_own(parts):
    data = labelled("pattern", 40 * N, parts, np.random.default_rng(0))
    middle = data.images[:, SIDE // 2, SIDE // 2].mean(axis=1)
    by_class = [middle[data.labels == label] for label in range(N)]
    assert np.std([values.mean() for values in by_class]) < 0.4 * np.mean([values.std() for values in by_class])


def test_a_stylised_image_has_a_foreign_texture(parts):
    data = labelled("style", 8 * N, parts, np.random.default_rng(0))
    assert {int(image.min()) for image in data.images} == {153}  # the grey of the foreign texture, no class's own


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k == "eed")) for k in PICTURES])
def test_every_kind_is_balanced_and_seeded(kind, parts):
    first, second = (labelled(kind, 2 * N, parts, np.random.default_rng(3)) for _ in range(2))
    assert np.bincount(first.labels).tolist() == [2] * N
    assert first.images.dtype == np.uint8
    assert first.images.shape == (2 * N, SIDE, SIDE, 3)
    assert np.array_equal(first.images, second.images)


@pytest.mark.parametrize(("kind", "predicts"), [("both", True), ("texture", True), ("shape", False)])
def test_scenes_are_labelled_by_the_planted_cue(kind, predicts, parts):
    data = scenes(kind, 30, parts, 2 * SIDE, np.random.default_rng(0))
    assert 0 < (data.labels > 0).mean() < 0.9
    grey = (data.images[..., 0] / 255 - 0.05) / 0.06
    inside = data.labels > 0
    agree = float((np.round(grey[inside]) == data.labels[inside] - 1).mean())
    assert agree == 1 if predicts else agree < 0.4


@pytest.mark.slow
def test_drawn_parts_are_of_the_right_form():
    drawn = Parts.draw(0, 16, 32, instances=1)
    assert drawn.covers.shape == (N, 2, 16, 16)
    assert drawn.materials.shape == (N, 1, 32, 32, 3)
    assert drawn.others.min() >= 0
    assert drawn.others.max() <= 1
    assert INSTANCES > 1
    assert Parts.draw(0, 16, 32, instances=1) is drawn


def test_variation_stays_in_range():
    images = np.random.default_rng(0).random((8, 4, 4, 3)).astype(np.float32)
    other = varied(images, np.random.default_rng(1))
    assert other.min() >= 0
    assert other.max() <= 1
    assert not np.array_equal(images, other)
