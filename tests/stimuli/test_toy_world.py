"""The toy world: every layout can be read, both cues are where they should be, nothing of the user's is overwritten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.labels import label_map, label_space
from cuebench.protocols import cue_conflict, imagenet_accuracy, pure_shape, texture_association
from cuebench.stimuli import toy_world
from cuebench.stimuli.decomposition.sources import read_source
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.toy_world import CLASSES, THINGS


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    make("toy_world", folder, size=32, scene_size=32)
    return folder


def test_every_pair_of_classes_is_shown_twice(root):
    stimuli = cue_conflict.read(root)
    pairs = [(s.shape, s.texture) for s in stimuli]
    assert len(stimuli) == 128
    assert all(pairs.count(pair) == 2 for pair in set(pairs))
    assert sum(s.shape != s.texture for s in stimuli) == 112
    assert not stimuli.partial
    assert len({s.shape_source for s in stimuli}) == 32
    assert len({s.texture_source for s in stimuli}) == 24


def test_the_protocols_read_it(root):
    photographs = imagenet_accuracy.read(root)
    assert len(photographs) == 48
    assert not photographs.partial
    space = label_space("imagenet1k")
    assert all(space.find(s.label) is not None for s in photographs)
    assert {s.condition for s in pure_shape.read(root)} == {"silhouettes", "edges"}
    textures = [s.texture for s in texture_association.read(root) if s.texture]
    assert set(textures) == {thing.texture for thing in THINGS.values()}


def test_no_class_of_imagenet_belongs_to_two_things(root):
    resolved = label_map(cue_conflict.read(root).targets).resolve(label_space("imagenet1k"))
    assert not resolved.uncovered
    assert not resolved.missing


def test_scenes_are_labelled(root):
    source = read_source(str(root / "scenes"), "auto", classes="", labels="", count=0, seed=0)
    assert source.classes.names == (toy_world.BACKGROUND, *CLASSES)
    mask = np.asarray(Image.open(root / "scenes" / "masks" / "scene_000.png"))
    drawn = toy_world.scene(0, size=32)
    assert np.array_equal(mask, drawn.mask)
    assert 3 <= len(np.unique(mask)) <= 5


def test_the_material_fills_the_shape():
    cover, filling = np.zeros((32, 32)), np.full((32, 32, 3), 0.5)
    cover[8:24, 8:24] = 1
    picture = toy_world.picture(cover, filling)
    assert set(np.unique(picture[8:24, 8:24])) == {128}
    assert picture[0, 0, 0] == 255


def test_an_outline_is_where_the_shape_ends():
    cover = toy_world.shape("bottle", 1, size=64)
    line = toy_world.outline(cover)
    inside, outside = cover == 1, cover == 0
    assert line[~inside & ~outside].mean() > 0.5 > 0.1 > line[inside].mean()


def test_more_pictures_have_more_shapes_and_materials(tmp_path):
    numbers = {"photographs": 9, "patches": 8, "objects": 8, "scenes": 2}
    stimuli = make("toy_world", tmp_path, count=320, size=32, scene_size=32, **numbers)
    assert len(stimuli) == 320
    assert len({s.shape_source for s in stimuli}) == 64
    assert len({s.texture_source for s in stimuli}) == 48
    shown = pure_shape.read(tmp_path)
    assert {Path(s.path).stem for s in shown} == {s.shape_source for s in stimuli}
    assert len(imagenet_accuracy.read(tmp_path)) == 9
    assert len(list((tmp_path / "scenes" / "images").iterdir())) == 2


def test_folders_of_others_are_refused(tmp_path):
    (tmp_path / "imagenet_val" / "n01440764").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(tmp_path / "imagenet_val" / "n01440764" / "photograph.png")
    with pytest.raises(UserError, match="already holds another set"):
        make("toy_world", tmp_path, size=32, scene_size=32)
