"""Textures as files: made, continued, refused, and read back in all layouts that textures come in."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.registry import makers, readers
from cuebench.stimuli.drawing.textures import names
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.readers.texture_folder import read
from cuebench.stimuli.sources.texture import draw

SMALL = {"size": 24}


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def picture(path, value=90):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(path)


def test_registries_find_them():
    assert "textures" in makers
    assert "texture_folder" in readers


def test_made_set_is_balanced_repeats_and_goes_on(tmp_path):
    count = len(names()) + 3
    first = make("textures", tmp_path / "a", count=count, **SMALL)
    assert len(first) == count
    assert first.partial == ()
    assert {s.texture for s in first} == set(names())
    make("textures", tmp_path / "b", count=4, **SMALL)
    make("textures", tmp_path / "b", count=count, **SMALL)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    shown = np.asarray(Image.open(tmp_path / "a" / "textures" / "agate" / "agate_0001.png"))
    assert np.array_equal(shown, draw(seed=1, name="agate", size=24))


def test_other_settings_are_not_mixed_into_a_folder(tmp_path):
    make("textures", tmp_path, count=2, **SMALL)
    with pytest.raises(UserError, match="already holds another set"):
        make("textures", tmp_path, count=2, seed=1, **SMALL)
    with pytest.raises(UserError, match="not among the 1 asked for"):
        make("textures", tmp_path, count=1, **SMALL)
    with pytest.raises(UserError, match="size=2: expected a whole number ≥ 8"):
        make("textures", tmp_path / "c", count=2, size=2)


def test_a_set_that_lost_files_says_so(tmp_path):
    make("textures", tmp_path, count=3, **SMALL)
    next((tmp_path / "textures").glob("*/*.png")).unlink()
    assert read(tmp_path / "textures").partial == ("2 of 3 stimuli",)


@pytest.mark.parametrize("prefix", ["", "images/"])
def test_plain_and_dtd_layouts(tmp_path, prefix):
    for name in ("banded/banded_0001.jpg", "woven/woven_0001.jpg"):
        picture(tmp_path / "dtd" / (prefix + name))
    if prefix:
        (tmp_path / "dtd" / "labels").mkdir()
        (tmp_path / "dtd" / "labels" / "train1.txt").write_text("banded/banded_0001.jpg\n")
        (tmp_path / "dtd" / "imdb").mkdir()
    found = read(tmp_path / "dtd", expected=5640)
    assert [(s.id, s.texture) for s in found] == [("banded/banded_0001", "banded"), ("woven/woven_0001", "woven")]
    assert found.partial == ("2 of 5,640 stimuli",)


def test_ptd_layout_shows_what_its_list_names(tmp_path):
    for name in ("banded/a.png", "banded/rejected.png", "woven/b.png"):
        picture(tmp_path / "ptd" / "images" / name)
    (tmp_path / "ptd" / "metafile.txt").write_text("banded/a.png\nwoven/b.png\n")
    assert [s.id for s in read(tmp_path / "ptd")] == ["banded/a", "woven/b"]
    (tmp_path / "ptd" / "metafile.txt").write_text("banded/a.png\nwoven/gone.png\nwoven/lost.png\n")
    with pytest.raises(UserError, match=r"2 problems(.|\n)*gone(.|\n)*lost"):
        read(tmp_path / "ptd")


def test_all_problems_of_a_folder_at_once(tmp_path):
    picture(tmp_path / "t" / "banded" / "a.png")
    picture(tmp_path / "t" / "loose.png")
    (tmp_path / "t" / "woven").mkdir()
    (tmp_path / "t" / "woven" / "empty.png").write_bytes(b"")
    with pytest.raises(UserError, match=r"2 problems(.|\n)*loose(.|\n)*empty"):
        read(tmp_path / "t")
    with pytest.raises(UserError, match="does not exist"):
        read(tmp_path / "nowhere")
    (tmp_path / "u").mkdir()
    with pytest.raises(UserError, match="no stimuli"):
        read(tmp_path / "u")


def test_real_photographs_of_textures(shared):
    found = read(shared / "dtd", expected=5640)
    assert (len(found), len({s.texture for s in found})) == (120, 10)
    assert found.partial == ("120 of 5,640 stimuli",)
