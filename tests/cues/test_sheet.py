"""The contact sheet shows every cue and says what it could not draw."""

import numpy as np
import pytest
from PIL import Image

from cuebench.cli import invoke as run
from cuebench.registry import cues
from cuebench.stimuli import sheet
from cuebench.stimuli.masks import guess_mask
from cuebench.stimuli.sheet_layout import Group, Tile, draw
from cuebench.testing import object_mask, sample_image


@pytest.fixture
def scene(monkeypatch):
    monkeypatch.setattr(sheet, "EED", {"steps": 2})
    quick = {name: cues.get(name).info.quick for name in cues if cues.get(name).info.quick}
    monkeypatch.setattr(sheet, "OPTIONS", quick)
    image = sample_image((48, 48, 3), np.uint8)
    return sheet.Scene(image, object_mask((48, 48)), image[::-1])


def test_every_cue_is_on_the_sheet(scene):
    picture, problems = sheet.contact_sheet(scene, title="test", columns=9)
    assert problems == {}
    assert picture.size[0] > 9 * 48
    assert {cues.get(name).info.kind for name in cues} <= set(sheet.KINDS)


def test_a_cue_that_cannot_be_drawn_is_named(scene):
    _, problems = sheet.contact_sheet(scene._replace(mask=np.zeros((48, 48), bool)), title="test")
    assert set(problems) == {"interior_patches"}
    assert "fits inside" in problems["interior_patches"]


def test_the_verb_draws_a_sheet(scene, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sheet.save_sheet, "__kwdefaults__", {**sheet.save_sheet.__kwdefaults__, "size": 48})
    Image.fromarray(sample_image((60, 50, 3), np.uint8)).save(tmp_path / "photo.png")
    assert run(["cue", "--sheet", str(tmp_path / "sheet.png"), str(tmp_path / "photo.png")]) == 0
    assert "sheet.png" in capsys.readouterr().out
    assert Image.open(tmp_path / "sheet.png").size[0] > 400


def test_squared_cuts_the_middle():
    image = np.zeros((40, 80, 3), np.uint8)
    image[:, 20:60] = 200
    assert np.all(sheet.squared(image, 20)[:, 3:-3] == 200)
    assert sheet.squared(image[..., 0] > 0, 20).dtype == np.bool_


def test_guessed_mask_finds_a_bright_object():
    y, x = np.mgrid[:100, :100]
    disc = (y - 50) ** 2 + (x - 50) ** 2 < 30**2
    image = np.where(disc[..., None], 220, 30).astype(np.uint8) + np.zeros((1, 1, 3), np.uint8)
    guess = guess_mask(image)
    assert (guess & disc).sum() / (guess | disc).sum() > 0.9


def test_neighbouring_groups_share_a_row_where_they_fit():
    tile = Tile(
        "name", "a note that is much too long for one small tile of ten pixels", np.zeros((10, 10, 3), np.uint8)
    )
    together = draw([Group("A", [tile] * 2), Group("B", [tile] * 3)], title="t", columns=5)
    apart = draw([Group("A", [tile] * 3), Group("B", [tile] * 3)], title="t", columns=5)
    assert together.size[1] < apart.size[1]
    assert draw([Group("A", [tile] * 11), Group("B", [Tile("x", "why", None)])], title="t", columns=5).size[1] > 0


def test_a_sheet_is_no_vector_picture(tmp_path):
    from cuebench.errors import UserError
    from cuebench.stimuli.sheet import save_sheet

    with pytest.raises(UserError, match=r"cannot write a sheet as 's\.svg'"):
        save_sheet(tmp_path / "in.png", tmp_path / "s.svg")
