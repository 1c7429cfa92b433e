"""Partly transparent pictures: one background for every reader, counted in a note, and part of what is asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cuebench as cb
from cuebench.errors import UserError
from cuebench.registry import readers
from cuebench.responses.pictures import files_of
from cuebench.stimuli.background import is_transparent, on_background
from cuebench.stimuli.image_files import read_rgb
from cuebench.stimuli.render import check_recipe, decode, render
from cuebench.study.design import read_design
from cuebench.study.stimuli import _read
from cuebench.types import Stimulus, StimulusSet

LEVELS = {"white": 255, "black": 0, "grey": 128}


def picture(path: Path, alpha: int = 255, mode: str = "RGBA", size: tuple[int, int] = (8, 6)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((*size[::-1], 4), (200, 10, 10, alpha), np.uint8)
    pixels[0, 0] = [*path.name.encode()[:3].ljust(3, b"x"), 255]  # no two files have the same bytes
    Image.fromarray(pixels).convert(mode).save(path)
    return path


def write_conflicts(root: Path) -> StimulusSet:
    for name in ("cat1-dog2", "dog1-cat1"):
        picture(root / name[:3] / f"{name}.png", 0 if name == "cat1-dog2" else 255)
    return readers.get("cue_conflict").read(root)


def write_classes(root: Path) -> StimulusSet:
    picture(root / "cat" / "a.png", 100)
    picture(root / "dog" / "b.png", mode="RGB")
    return readers.get("image_folder").read(root)


def write_textures(root: Path) -> StimulusSet:
    picture(root / "dotted" / "a.png", 0)
    picture(root / "grid" / "b.jpg", mode="RGB")
    return readers.get("texture_folder").read(root)


def write_table(root: Path) -> StimulusSet:
    picture(root / "a.png", 10)
    picture(root / "b.png")
    (root / "s.csv").write_text("path,label,recipe\na.png,cat,contrast?level=0.5\nb.png,dog,\n")
    return readers.get("csv_manifest").read(root / "s.csv")


def write_pairs(root: Path) -> StimulusSet:
    for name, alpha in (("a", 0), ("b", 255)):
        picture(root / "images" / f"{name}.png", alpha)
        picture(root / "masks" / f"{name}.png", mode="L")
    return readers.get("segmentation_pairs").read(root)


def write_refined(root: Path) -> StimulusSet:
    picture(root / "refined_bias_shape" / "cat" / "cat_1.png", 0)
    picture(root / "refined_bias_texture" / "cat" / "4x4_cat_1.png")
    return readers.get("refined_bias").read(root)


@pytest.mark.parametrize("colour", LEVELS)
@pytest.mark.parametrize(
    "write", [write_conflicts, write_classes, write_textures, write_table, write_pairs, write_refined]
)
def test_the_same_for_every_reader(write, colour, tmp_path: Path) -> None:
    plain = write(tmp_path)
    stimuli = on_background(plain, colour)
    assert stimuli.notes == (*plain.notes, f"1 partly transparent picture shown on {colour}")
    changed = [s for s, before in zip(stimuli, plain) if s != before]
    assert len(changed) == (colour != "white")
    assert all(s.recipe.startswith(f"background?colour={colour}") for s in changed)
    assert [s.key for s in stimuli] != [s.key for s in plain] or colour == "white"
    transparent = next(s for s in stimuli if is_transparent(tmp_path / s.path))
    alpha = np.asarray(Image.open(tmp_path / transparent.path))[3, 3, 3] / 255
    expected = alpha * np.array([200, 10, 10]) + (1 - alpha) * LEVELS[colour]
    assert np.abs(np.asarray(decode(tmp_path, transparent))[3, 3] - expected).max() <= 1
    with pytest.raises(UserError, match=r"\.png") as refused:
        on_background(plain, "refuse")
    assert "white, black or grey" in refused.value.hint


def test_a_background_comes_before_all_that_follows(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", 0)
    stimulus = Stimulus("a", "a.png", recipe="background?colour=black;contrast?level=0.5")
    shown = np.asarray(render(tmp_path, decode(tmp_path, stimulus), stimulus))
    assert shown[3, 3].tolist() == [64, 64, 64]
    for recipe in ("contrast?level=0.5;background?colour=black", "background?colour=pink"):
        with pytest.raises(UserError):
            check_recipe(recipe)
    check_recipe(stimulus.recipe)
    named = StimulusSet("s", (stimulus,), str(tmp_path))
    assert on_background(named, "grey") == named  # it says its own


def test_two_backgrounds_of_one_file_are_two_pictures(tmp_path: Path) -> None:
    stimuli = [Stimulus(c, "a.png", recipe=f"background?colour={c}") for c in ("white", "black")]
    assert len(files_of(stimuli)) == 2
    assert len(files_of([stimuli[0], replace(stimuli[0], id="again")])) == 1


@pytest.mark.parametrize(
    ("name", "mode", "transparent"),
    [
        ("a.png", "RGBA", True), ("a.png", "LA", True), ("a.png", "RGB", False),
        ("a.webp", "RGBA", True), ("a.tif", "RGBA", True), ("a.jpg", "RGB", False), ("a.bmp", "RGB", False),
        ("a.gif", "RGBA", True),
    ],
)  # fmt: skip
def test_transparent_parts_are_found_in_every_format(tmp_path: Path, name: str, mode: str, transparent: bool) -> None:
    picture(tmp_path / name, 0, mode)
    assert is_transparent(tmp_path / name) == transparent
    if mode == "RGBA":
        picture(tmp_path / name, 255, mode)
        assert not is_transparent(tmp_path / name)


def test_a_palette_with_a_transparent_colour_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([0, 0, 0, 200, 10, 10])
    image.save(tmp_path / "a.png", transparency=0)
    assert is_transparent(tmp_path / "a.png")
    for name, data in (("b.png", b"\x89PNG\r\n\x1a\n"), ("c.png", b""), ("d.gif", b"GIF89a")):
        (tmp_path / name).write_bytes(data)
        assert not is_transparent(tmp_path / name)


def test_figures_show_what_models_saw(tmp_path: Path) -> None:
    assert np.asarray(read_rgb(picture(tmp_path / "a.png", 0)))[3, 3].tolist() == [255] * 3


@pytest.fixture
def measured(tmp_path: Path):
    """Run cue conflict with four pictures, one transparent; the observer answers dog where it sees white."""
    for name in ("cat1-dog2", "cat2-dog1", "dog1-cat1", "dog2-cat2"):
        picture(
            tmp_path / "d" / "cue_conflict" / "stimuli" / name[:3] / f"{name}.png", 0 if name == "cat1-dog2" else 255
        )

    targets = {"targets": {"cat": ["cat"], "dog": ["dog"]}}
    (tmp_path / "d" / "cue_conflict" / "labels.json").write_text(json.dumps(targets))

    def respond(pixels: np.ndarray) -> np.ndarray:
        light = pixels.reshape(len(pixels), -1).mean(1)
        return np.stack([light < 0.9, light >= 0.9], 1).astype(np.float32)

    def run(out: str = "run", **options):
        plain = cb.Preprocess(size=8, mean=(0, 0, 0), std=(1, 1, 1))
        seen = cb.wrap(respond, preprocess=plain, labels=("cat", "dog"), name="seen", fingerprint="1")
        events = []
        options = {"workers": 0, "resamples": 100, "responses": tmp_path / "answers", **options}
        scores = cb.evaluate(
            seen, "cue_conflict", data_root=tmp_path / "d", out=tmp_path / out, on_event=events.append, **options
        )
        return scores, events

    return run


def test_a_run_says_it_and_another_background_is_asked_anew(measured, tmp_path: Path) -> None:
    white, _ = measured("white")
    assert all("1 partly transparent picture shown on white" in row.note for row in white)
    black, _ = measured("black", background="black")
    assert all("1 partly transparent picture shown on black" in row.note for row in black)
    assert white.value("seen", "shape_bias") != black.value("seen", "shape_bias")
    record = json.loads((tmp_path / "black" / "run.json").read_text())
    assert record["arguments"]["background"] == "black"
    again, _ = measured("again", background="black")
    assert again.value("seen", "shape_bias") == black.value("seen", "shape_bias")
    with pytest.raises(UserError, match="transparent"):
        measured("refused", background="refuse")
    with pytest.raises(UserError, match="background 'pink'; one of white, black, grey, refuse"):
        measured("pink", background="pink")


def test_a_run_says_that_a_picture_has_another_size(measured, tmp_path: Path) -> None:
    for number in range(20):
        name = f"cat{number + 10}-dog1"
        picture(tmp_path / "d" / "cue_conflict" / "stimuli" / "cat" / f"{name}.png")
    _, events = measured("same")
    assert not [e for e in events if "another size" in e.message]
    picture(tmp_path / "d" / "cue_conflict" / "stimuli" / "cat" / "cat99-dog1.png", size=(100, 80))
    _, events = measured("odd")
    (notice,) = [e.message for e in events if "another size" in e.message]
    assert notice.startswith("cue_conflict: 1 file of 25 have another size than 8×6")
    assert "cuebench data check cue_conflict" in notice


def test_backgrounds_of_made_sets(tmp_path: Path) -> None:
    from cuebench.stimuli.makers.cue_decomposition import make

    write_classes(tmp_path / "source")
    options = {"source": str(tmp_path / "source"), "cues": ("patch",), "size": 32, "resize": 32, "workers": 1}
    black = make(tmp_path / "black", background="black", **options)
    assert "1 partly transparent picture shown on black" in black.notes
    original = next(s for s in black if s.condition == "original" and s.label == "cat")
    assert not original.recipe  # the file that was made has no transparent parts
    assert np.asarray(decode(black.root, original))[16, 16].max() < 100
    with pytest.raises(UserError, match="already holds another set"):
        make(tmp_path / "black", **options)
    with pytest.raises(UserError, match="transparent"):
        make(tmp_path / "none", background="refuse", **options)
    assert not (tmp_path / "none").exists()


def test_a_study_counts_them_too(tmp_path: Path) -> None:
    write_conflicts(tmp_path / "cue_conflict" / "stimuli")
    assert "1 partly transparent picture shown on white" in _read(read_design("cue_conflict"), tmp_path).notes
