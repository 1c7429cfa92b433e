"""Novel shapes and objects: distinct, the same bytes, the maker, a user's own parts, bad masks."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.stimuli.drawing import novel_shapes as shapes
from cuebench.stimuli.drawing.textures import names as texture_names
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.makers.novel_objects import plan
from cuebench.stimuli.manifest import read_manifest
from cuebench.stimuli.render import decode, render
from cuebench.stimuli.sources import novel_object
from cuebench.types import Stimulus


def test_sixteen_shapes_four_of_each_kind_and_sixteen_textures():
    assert len(set(novel_object.SHAPES)) == 16
    assert [shapes.kind(n) for n in novel_object.SHAPES[::4]] == ["smooth", "angular", "concave", "holes"]
    assert len(set(novel_object.TEXTURES)) == 16
    assert set(novel_object.TEXTURES) <= set(texture_names())


def test_the_same_bytes_on_every_machine():
    """A change of a pixel is a new version of the drawings."""
    masks = hashlib.sha256(b"".join(shapes.mask(n, 64).tobytes() for n in novel_object.SHAPES)).hexdigest()
    assert masks[:16] == "e354ef0010a0d39d"
    flat = np.dstack([np.tile(np.arange(256, dtype=np.uint8), (256, 1))] * 3)
    made = [
        novel_object.draw(seed=k, shape="dax", texture=flat, size=s, position=p, background=b)
        for k, (s, p, b) in enumerate([(0.2, "random", "noise"), (0.6, "centre", "grey"), (1.0, "random", "white")])
    ]
    assert hashlib.sha256(b"".join(m.tobytes() for m in made)).hexdigest()[:16] == "a7c0055df7765471"


def test_two_stimuli_share_the_texture_but_not_the_patch():
    first, second = (novel_object.draw(seed=s, shape="ruk", texture="bricks") for s in (1, 2))
    again = novel_object.draw(seed=1, shape="ruk", texture="bricks")
    inside = shapes.mask("ruk", 224) == 255
    assert np.array_equal(first, again)
    assert (first[inside] != second[inside]).mean() > 0.5
    assert (first[shapes.mask("ruk", 224) == 0] == 255).all()


@pytest.mark.parametrize(("size", "side"), [(0.2, 45), (0.4, 90), (0.6, 135), (0.8, 180), (1.0, 224)])
def test_published_sizes_and_places(size, side):
    black = np.zeros((300, 300, 3), np.uint8)
    whole = np.full((224, 224), 255, np.uint8)
    centred = novel_object.draw(seed=0, shape=whole, texture=black, size=size) == 0
    assert centred.any(axis=2).sum() == side * side
    rows = np.flatnonzero(centred.any(axis=(1, 2)))
    assert rows[0] == (224 - side) // 2
    corners = set()
    for seed in range(30):
        moved = novel_object.draw(seed=seed, shape=whole, texture=black, size=size, position="random") == 0
        assert moved.any(axis=2).sum() == side * side
        corners.add(tuple(np.argwhere(moved.any(axis=2))[0]))
    assert (len(corners) > 20) == (size < 1)


def test_backgrounds_and_grey():
    kwargs = {"seed": 0, "shape": "dax", "texture": "woven"}
    white, grey, noise = (novel_object.draw(background=b, **kwargs) for b in novel_object.BACKGROUNDS)
    assert (white[0, 0] == 255).all()
    assert (grey[0, 0] == 128).all()
    assert noise[:3, :3, 0].std() > 10
    plain = novel_object.draw(colour=False, **kwargs)
    assert (plain[..., 0] == plain[..., 1]).all()
    assert (white[..., 0] != white[..., 2]).any()


def test_a_recipe_draws_the_stimulus_without_a_file():
    recipe = novel_object.recipe("dax", "scaly", size=0.4, position="random", background="grey", series=0)
    stimulus = Stimulus("x", recipe=recipe, seed=7)
    shown = np.asarray(render("", decode("", stimulus), stimulus))
    drawn = novel_object.draw(seed=7, shape="dax", texture="scaly", size=0.4, position="random", background="grey")
    assert np.array_equal(shown, drawn)
    old = Stimulus("x", recipe=recipe.replace(novel_object.VERSION, "s0t0"))
    with pytest.raises(UserError, match="version 's0t0'"):
        decode("", old)


def test_the_plan_is_the_experiment_and_grows_by_patches():
    forms, fills = dict.fromkeys(novel_object.SHAPES), dict.fromkeys(novel_object.TEXTURES)
    whole = plan(forms, fills)
    assert len(whole) == len({o.path for o in whole}) == 9 * 256
    more = plan(forms, fills, 3000)
    assert more[: len(whole)] == whole
    assert len({o.path for o in more}) == 3000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("novel")
    return root, make("novel_objects", root, seed=0, shapes="dax,ruk,snee", textures="bricks,striped")


def files(root):
    return {p.relative_to(root): p.read_bytes() for p in sorted(root.rglob("*.*")) if p.is_file()}


def test_the_maker_writes_set_manifest_and_sheet_the_same_bytes_twice(made, tmp_path):
    root, found = made
    assert len(found) == 9 * 6
    home = root / "novel_objects"
    assert Image.open(home / "contact_sheet.png").width > 500
    assert read_manifest(home / "manifest.parquet").stimuli == found.stimuli
    first = next(s for s in found if s.condition == "experiment3/size=0.4/unaligned")
    assert (first.shape_source, first.texture_source) == ("dax", "bricks.0")
    shown = np.asarray(Image.open(home / first.path))
    drawn = novel_object.draw(
        seed=novel_object.seed_of(first.id), shape="dax", texture="bricks", size=0.4, position="random"
    )
    assert np.array_equal(shown, drawn)
    make("novel_objects", tmp_path, seed=0, shapes="dax,ruk,snee", textures="bricks,striped")
    assert files(tmp_path) == files(root)


def test_the_maker_goes_on_and_refuses_another_set(made):
    root, _ = made
    gone = root / "novel_objects" / "size=0.2" / "aligned" / "dax-bricks.png"
    before = gone.read_bytes()
    gone.unlink()
    make("novel_objects", root, seed=0, shapes="dax,ruk,snee", textures="bricks,striped")
    assert gone.read_bytes() == before
    with pytest.raises(UserError, match="already holds another set"):
        make("novel_objects", root, seed=1, shapes="dax,ruk,snee", textures="bricks,striped")


def user_parts(folder, bad=False):
    masks, fills = folder / "masks", folder / "fills"
    masks.mkdir()
    fills.mkdir()
    for k, name in enumerate(("one", "two")):
        plane = np.full((100, 80), 255, np.uint8)
        plane[20:80, 20 + 10 * k : 60] = 0
        if bad:
            plane[0, : k + 3] = 100
        Image.fromarray(plane).save(masks / f"{name}.png")
        noise = np.random.default_rng(k).integers(256, size=(100 if bad else 240, 250, 3), dtype=np.uint8)
        Image.fromarray(noise).save(fills / f"cloth{k}.png")
    return masks, fills


def test_a_users_own_masks_and_textures(tmp_path):
    masks, fills = user_parts(tmp_path)
    found = make("novel_objects", tmp_path, shapes=str(masks), textures=str(fills))
    assert {(s.shape, s.texture) for s in found} == {(a, b) for a in ("one", "two") for b in ("cloth0", "cloth1")}
    full = next(s for s in found if s.condition == "experiment3/size=1.0/aligned")
    shown = np.asarray(Image.open(tmp_path / "novel_objects" / full.path))
    assert (shown[:40] == 255).all()
    assert (shown[60:170, 75:150] != 255).mean() > 0.9


def test_masks_that_are_not_binary_and_small_textures_are_all_named(tmp_path):
    masks, fills = user_parts(tmp_path, bad=True)
    with pytest.raises(
        UserError, match=r"2 problems\n  - one.png: not binary: 3 grey levels \(0, 100, 255\)"
    ) as caught:
        make("novel_objects", tmp_path, shapes=str(masks))
    assert "two.png" in caught.value.message
    with pytest.raises(UserError, match="250×100 pixels; at least 224"):
        make("novel_objects", tmp_path, textures=str(fills))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": "dx"}, "Did you mean"),
        ({"shapes": "dax"}, "one shape gives no match"),
        ({"background": "whit"}, "Did you mean 'white'"),
        ({"count": -1}, "count=-1: expected a whole number ≥ 0"),
    ],
)
def test_wrong_options_of_the_maker(tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        make("novel_objects", tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "message"), [({"size": 0}, "size 0"), ({"size": 1.5}, "size 1.5"), ({"position": "left"}, "position")]
)
def test_wrong_options_of_the_source(options, message):
    with pytest.raises(UserError, match=message):
        novel_object.draw(seed=0, shape="dax", texture="bricks", **options)


def test_a_few_objects_are_in_all_conditions_and_say_that_they_are_few(tmp_path):
    made = make("novel_objects", tmp_path, count=36, shapes="dax,ruk,snee", textures="bricks,striped,dotted")
    by = {}
    for s in made:
        by.setdefault(s.condition, set()).add((s.shape, s.texture))
    assert len(by) == 9
    assert set(map(frozenset, by.values())) == {
        frozenset((a, b) for a in ("dax", "ruk") for b in ("bricks", "striped"))
    }
    assert made.partial == ("36 of 81 stimuli",)


def test_a_negative_seed_is_refused(tmp_path):
    with pytest.raises(UserError, match="seed=-1: expected a whole number ≥ 0"):
        make("novel_objects", tmp_path, seed=-1)


def test_small_objects_take_the_nearest_pixel():
    """As published: a picture at 40 % has the pixels of the large one at the middles of its own, nothing is mixed."""
    full, small = (
        novel_object.draw(seed=5, shape="dax", texture=novel_object.TEXTURES[0], size=size) for size in (1.0, 0.4)
    )
    side = 90
    top = (novel_object.PIXELS - side) // 2
    middles = (np.arange(side) + 0.5) * novel_object.PIXELS / side
    between = np.flatnonzero(middles != np.floor(middles))  # where a middle lies on a border, both pixels are nearest
    inner, source = small[top : top + side, top : top + side], middles[between].astype(int)
    assert len(between) > 80
    np.testing.assert_array_equal(inner[np.ix_(between, between)], full[np.ix_(source, source)])


def test_grey_pictures_of_an_album_are_textures(tmp_path):
    """Brodatz's textures come as grey GIF or TIFF files: they are read, and each stimulus shows its own patch."""
    rng = np.random.default_rng(0)
    (tmp_path / "brodatz").mkdir()
    for name, kind in (("D1", "gif"), ("D2", "tif")):
        Image.fromarray(rng.integers(0, 256, (240, 260), np.uint8)).save(tmp_path / "brodatz" / f"{name}.{kind}")
    made = make("novel_objects", tmp_path / "data", seed=0, shapes="dax,ruk", textures=str(tmp_path / "brodatz"))
    assert {s.texture for s in made} == {"D1", "D2"}
    picture = np.asarray(Image.open(tmp_path / "data" / "novel_objects" / made.stimuli[-1].path))
    assert (picture[..., 0] == picture[..., 1]).all()
    assert len(np.unique(picture)) > 50
