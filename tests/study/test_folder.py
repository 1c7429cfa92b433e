"""Study folders: what `cuebench study new` writes, and what is checked when a study is opened."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.stimuli.render import decode
from cuebench.study.folder import NewStudy, _picture, _write_image, new_study, open_study, read_settings
from cuebench.study.types import StudyImage
from cuebench.types import Stimulus
from small_data import write_cue_conflict
from small_study import make_study, write_design


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"), seed=3, participants=20, languages=("de",))


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made.folder, tmp_path / "copy")


def test_a_new_study_has_everything_and_opens_again(made):
    names = {path.name for path in made.folder.iterdir()}
    wanted = {"study.toml", "design", "exclusions.toml", "stimuli.parquet", "images", "secret"}
    assert names == wanted
    again = open_study(made.folder)
    assert again == replace(made, design=again.design)
    assert (again.settings.seed, again.settings.participants, again.languages) == (3, 20, ["de"])
    assert again.facts == made.facts
    assert again.rules_note == ""
    group, trials = again.assign(1)
    assert (group, len(trials)) == ("B", 10)


def test_names_and_order_of_images_say_nothing(made, tmp_path):
    for image in made.images.values():
        assert image.file == f"{image.id}.png"
        assert image.name not in image.file
        assert Image.open(made.folder / "images" / image.file).size in ((32, 32), (16, 16))
    rows = list(made.images.values())
    assert [image.id for image in rows] == sorted(image.id for image in rows)
    other = make_study(tmp_path, seed=3)
    same = {image.name: image.id for image in other.images.values() if image.role == "trial"}
    assert not set(same.values()) & set(made.images)  # of another study the same image has another name
    assert {image.sha256 for image in made.images.values() if image.role == "trial"} == {
        image.sha256 for image in other.images.values() if image.role == "trial"
    }


def test_people_are_sent_what_models_are_shown(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 9, 4)).astype(np.uint8)
    whole = pixels.copy()
    whole[..., 3] = 255
    images = {
        "rgb.png": Image.fromarray(pixels[..., :3]), "grey.jpg": Image.fromarray(pixels[..., 0]),
        "whole.png": Image.fromarray(whole), "palette.gif": Image.fromarray(pixels[..., :3]).quantize(8),
        "cut_out.png": Image.fromarray(pixels), "cut_out.webp": Image.fromarray(pixels),
        "inks.jpg": Image.fromarray(pixels, "CMYK"),
        "deep.png": Image.fromarray(pixels[..., 0].astype(np.uint16) * 200),
    }  # fmt: skip
    for name, image in images.items():
        image.save(tmp_path / name)
        stimulus = Stimulus(name, name)
        data, ending = _picture(str(tmp_path), stimulus)
        seen = Image.open(io.BytesIO(data))
        assert np.array_equal(seen.convert("RGB"), decode(tmp_path, stimulus)), name
        assert seen.mode in ("RGB", "L", "P", "RGBA"), name
        as_stored = name.startswith(("rgb", "grey", "whole", "palette"))
        assert (data == (tmp_path / name).read_bytes()) == as_stored, name
        assert ending == ((tmp_path / name).suffix if as_stored else ".png")


def test_people_are_shown_no_picture_that_models_are_not_shown(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 9)).save(tmp_path / "turned.jpg", exif=exif)
    Image.new("RGB", (8, 9)).save(tmp_path / "moving.gif", save_all=True, append_images=[Image.new("RGB", (8, 9), 1)])
    for name, reason in (("turned.jpg", "EXIF orientation 6"), ("moving.gif", "2 frames")):
        with pytest.raises(UserError, match=reason):
            _picture(str(tmp_path), Stimulus(name, name))


def test_the_same_seed_shows_the_same_images(made, tmp_path):
    def shown(study, slot):
        return [([study.images[i].name for i in t.stimuli], t.options) for t in study.assign(slot)[1]]

    again = make_study(tmp_path / "a", seed=3)
    other = make_study(tmp_path / "b", seed=4)
    assert {image.name for image in again.images.values()} == {image.name for image in made.images.values()}
    assert shown(other, 0) != shown(again, 0)


def test_two_stimuli_with_the_same_pixels_are_two(made, tmp_path):
    row = StudyImage("", "", "", 0, "cat1-dog1")
    first = _write_image(tmp_path, made.secrets, row, b"pixels", ".png", {})
    second = _write_image(tmp_path, made.secrets, replace(row, name="cat2-dog2"), b"pixels", ".png", {first.id: first})
    assert first.id != second.id
    assert first.sha256 == second.sha256


def test_a_folder_that_is_there_stays_as_it_is(made, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("…")
    with pytest.raises(UserError, match="is there already"):
        new_study(tmp_path / "mine", NewStudy(design="cue_conflict"))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_a_study_that_cannot_be_made_leaves_nothing(tmp_path):
    design = write_design(tmp_path / "small")
    data = write_cue_conflict(tmp_path / "data")
    for broken in (data / "cue_conflict" / "stimuli").rglob("cat1-*.png"):
        broken.write_bytes(b"")
    with pytest.raises(UserError):
        new_study(tmp_path / "study", NewStudy(design=str(design), data_root=data))
    with pytest.raises(UserError, match="no texts in 'fr'"):
        new_study(tmp_path / "study", NewStudy(design=str(design), data_root=data, languages=("fr",)))
    with pytest.raises(UserError):
        new_study(tmp_path / "study", NewStudy(design=str(design), data_root=tmp_path / "nowhere"))
    assert not (tmp_path / "study").exists()


def test_what_is_missing_is_named_at_once(copy):
    gone = sorted((copy / "images").iterdir())[:2]
    for path in gone:
        path.unlink()
    with pytest.raises(UserError) as refused:
        open_study(copy)
    assert all(path.name in refused.value.message for path in gone)
    with pytest.raises(UserError, match="no study folder"):
        open_study(copy / "images")


def test_a_lost_secret_is_not_made_anew(copy):
    (copy / "secret").unlink()
    with pytest.raises(UserError, match="secret") as refused:
        open_study(copy)
    assert "backup" in refused.value.hint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("seeds = 1", "unknown name 'seeds'"),
        ('drop_out_minutes = "long"', "drop_out_minutes"),
        ("participants = -1", "participants is below 0"),
        ('return_url = "javascript:alert(1)"', "no address of the web"),
        ("frame_ancestors = [\"x; script-src 'unsafe-inline'\"]", "frame_ancestors"),
        ("seed =", "not valid TOML"),
    ],
)
def test_wrong_settings_are_refused(copy, change, message):
    name = change.partition(" ")[0]
    lines = (copy / "study.toml").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(f"{name} =")]
    (copy / "study.toml").write_text("\n".join([*kept, change]) + "\n")
    with pytest.raises(UserError) as refused:
        read_settings(copy / "study.toml")
    assert message in str(refused.value)


def test_rules_that_were_changed_later_are_noticed(copy):
    rules = copy / "exclusions.toml"
    rules.write_text("# a comment changes nothing\n" + rules.read_text())
    assert open_study(copy).rules_note == ""
    rules.write_text("[trials]\nrt_min_ms = 100\n")
    assert "was changed after the study was made" in open_study(copy).rules_note


def test_a_changed_design_is_another_one(copy, made):
    before = open_study(copy).facts
    path = copy / "design" / "design.toml"
    path.write_text(path.read_text().replace("attention = 1", "attention = 2"))
    assert open_study(copy).facts.design_sha256 != before.design_sha256


def test_a_table_that_names_files_elsewhere_is_refused(copy):
    import pyarrow.parquet as pq

    table = pq.read_table(copy / "stimuli.parquet")
    files = ["../secret", *table["file"].to_pylist()[1:]]
    column = table.column_names.index("file")
    pq.write_table(table.set_column(column, "file", [files]), copy / "stimuli.parquet")
    with pytest.raises(UserError, match="outside of images/"):
        open_study(copy)


def test_new_and_export_on_the_command_line(tmp_path, capsys):
    design, data, folder = write_design(tmp_path / "small"), write_cue_conflict(tmp_path / "data"), tmp_path / "study"
    new = ["study", "new", str(folder), "--design", str(design), "--data-root", str(data)]
    assert invoke([*new, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["design"], shown["trials"]) == ("small", 10)
    assert shown["images"] == len(list((folder / "images").iterdir()))
    assert invoke(["study", "export", str(folder), "--out", str(tmp_path / "answers.csv")]) == 0
    assert "0 answers of 0 people" in capsys.readouterr().out
    assert Path(tmp_path / "answers.csv").read_text().startswith("study,design,participant")
    assert invoke(new) == 2
    assert "is there already" in capsys.readouterr().err


def test_too_few_images_are_said_for_all_blocks(tmp_path):
    root = write_cue_conflict(tmp_path / "data")
    with pytest.raises(UserError, match=r"shape 'car' has 6 images; 48 are needed"):
        new_study(tmp_path / "study", NewStudy(design="cue_conflict", data_root=root))


@pytest.mark.parametrize(("address", "problem"), [
    ("foo", "'foo' is no address of the web"),
    ("https://x.org/{foo}?cc={code}", "nothing replaces {foo}"),
])  # fmt: skip
def test_where_people_return_to_is_checked_before_anything_is_made(made, copy, tmp_path, address, problem):
    with pytest.raises(UserError) as caught:
        make_study(tmp_path / "new", return_url=address)
    assert problem in caught.value.message
    assert not (tmp_path / "new" / "study").exists()
    text = (copy / "study.toml").read_text().replace('return_url = ""', f'return_url = "{address}"')
    (copy / "study.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        read_settings(copy / "study.toml")
    assert problem in caught.value.message
