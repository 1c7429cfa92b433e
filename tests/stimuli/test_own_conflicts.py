"""Cue conflicts from a user's own shapes and textures, in three ways; where each mask came from."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench import cli
from cuebench.errors import UserError
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.refined_bias.sources import find_sources

SIZE = 64


def disc(radius: float, side: int = 80) -> np.ndarray:
    y, x = np.mgrid[:side, :side] - side / 2
    return y**2 + x**2 < (radius * side / 2) ** 2


def stripes(side: int = 80, period: int = 8, down: bool = False) -> np.ndarray:
    wave = (np.arange(side) // (period // 2)) % 2 * 255
    picture = np.broadcast_to(wave[:, None] if down else wave, (side, side)).astype(np.uint8)
    return np.stack([picture, picture // 2, 255 - picture], axis=-1)


def save(pixels: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shapes with a mask beside the image and with an alpha channel; two textures, one of the class of a shape."""
    folder = tmp_path_factory.mktemp("own")
    photograph = np.where(disc(0.7)[..., None], 200, 30).astype(np.uint8).repeat(3, axis=2)
    save(photograph, folder / "shapes" / "ball" / "a.png")
    save(disc(0.7).astype(np.uint8) * 255, folder / "shapes" / "ball" / "a_mask.png")
    alpha = np.dstack([photograph, (disc(0.4) * 255).astype(np.uint8)])
    save(alpha, folder / "shapes" / "zebra" / "b.png")
    save(stripes(), folder / "textures" / "zebra" / "x.png")
    save(stripes(period=20, down=True), folder / "textures" / "brick" / "y.png")
    return folder


def made(own: Path, out: Path, **options: object) -> object:
    folders = {"shapes": str(own / "shapes"), "textures": str(own / "textures")}
    return make("cue_conflict", out, size=SIZE, **folders, **options)


def pixels(out: Path, name: str) -> np.ndarray:
    return np.asarray(Image.open(out / "cue_conflict" / "stimuli" / name.split("1")[0] / f"{name}.png"))


def test_composition_fills_the_mask_with_the_texture(own: Path, tmp_path: Path) -> None:
    stimuli = made(own, tmp_path)
    assert {s.id for s in stimuli} == {"ball1-zebra1", "ball1-brick1", "zebra1-brick1"}  # no zebra in zebra
    picture = pixels(tmp_path, "ball1-zebra1").astype(int)
    assert (picture[0, 0] == 255).all()
    middle = picture[SIZE // 2, 16:48, 0]
    assert middle.max() - middle.min() > 100  # stripes, not the grey of the photograph
    rows = list(csv.DictReader((tmp_path / "cue_conflict" / "sources.csv").open()))
    masks = {row["shape"]: row["mask"] for row in rows}
    assert masks == {"a.png": "from mask files beside the images", "b.png": "from alpha channels"}
    assert any("masks: 1 from alpha channels" in note for note in stimuli.notes)
    assert any("classes of these names" in note and "ball" in note for note in stimuli.notes)


def test_the_same_command_gives_the_same_bytes_and_continues(own: Path, tmp_path: Path) -> None:
    made(own, tmp_path / "a")
    made(own, tmp_path / "b", count=1)
    made(own, tmp_path / "b", count=3)
    for file in (tmp_path / "a" / "cue_conflict" / "stimuli").glob("*/*.png"):
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()
    with pytest.raises(UserError, match="already holds another set"):
        made(own, tmp_path / "b", seed=1)


def test_quilting_keeps_the_texture_and_the_mask(own: Path, tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    made(own, tmp_path, by="quilting", block=16)
    picture = pixels(tmp_path, "ball1-zebra1").astype(int)
    assert (picture[0, 0] == 255).all()
    assert picture[SIZE // 2, 16:48, 0].std() > 50


def test_a_run_answers_the_own_stimuli(own: Path, tmp_path: Path) -> None:
    folders = ["--shapes", str(own / "shapes"), "--textures", str(own / "textures"), "--set", f"size={SIZE}"]
    assert cli.invoke(["make", "cue_conflict", *folders, "--out", str(tmp_path), "-q"]) == 0
    run = ["run", "-p", "cue_conflict", "-o", "ideal:shape", "--data-root", str(tmp_path), "--resamples", "100"]
    assert cli.invoke([*run, "--out", str(tmp_path / "run"), "-q"]) == 0


@pytest.mark.parametrize(
    ("options", "part"),
    [({"textures": ""}, "go together"), ({"by": "style"}, "none is named"), ({"by": "magic"}, "composition"),
     ({"count": 99}, "99 stimuli of 3 pairs")],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_mistakes(own: Path, tmp_path: Path, options: dict, part: str) -> None:
    given = {"shapes": str(own / "shapes"), "textures": str(own / "textures"), **options}
    with pytest.raises(UserError, match=part):
        make("cue_conflict", tmp_path, **given)


def test_a_mask_without_its_image_is_a_problem(own: Path, tmp_path: Path) -> None:
    save(disc(0.5).astype(np.uint8) * 255, tmp_path / "ball" / "lost_mask.png")
    save(stripes(), tmp_path / "ball" / "a.png")
    sources, problems = find_sources(tmp_path)
    assert [s.name for s in sources] == ["a"]
    assert problems == ["ball/lost_mask.png: a mask without its image"]


@pytest.mark.slow
@pytest.mark.torch
def test_style_transfer_moves_the_correlations_to_those_of_the_texture() -> None:
    torch = pytest.importorskip("torch")
    from cuebench.stimuli.style_transfer import StyleNetwork, _distance, _gram, _outputs, transfer

    torch.manual_seed(0)
    convolution = torch.nn.Conv2d
    module = torch.nn.Sequential(convolution(3, 8, 3, padding=1), torch.nn.ReLU(), convolution(8, 8, 3, stride=2))
    network = StyleNetwork(module.eval(), (0.5,) * 3, (0.5,) * 3, ("0", "2"), "2")
    content, style = stripes(32, 16), stripes(32, 4, down=True)

    def distance(picture: np.ndarray) -> float:
        def grams(image: np.ndarray) -> list:
            tensor = torch.from_numpy(image.astype(np.float32) / 127.5 - 1).permute(2, 0, 1)[None]
            return [_gram(values) for values in _outputs(module, network.style, tensor).values()]

        with torch.no_grad():
            return float(sum(_distance(a, b) for a, b in zip(grams(picture), grams(style))))

    changed = transfer(network, content, style, steps=100)
    assert distance(changed) < 0.5 * distance(content)
    assert (changed == transfer(network, content, style, steps=100)).all()
    assert (changed != transfer(network, content, style, steps=100, seed=1)).any()


@pytest.mark.torch
def test_a_style_network_is_shown_pixels_as_its_preprocessing_says() -> None:
    """EfficientNet-Lite wants (x − 127) / 128 of 0 to 255: with pixels of 0 to 1 every picture would look the same."""
    torch = pytest.importorskip("torch")
    from cuebench.stimuli.style_transfer import StyleNetwork, transfer

    seen = []

    class Watching(torch.nn.Conv2d):
        def forward(self, images):
            seen.append((images.min().item(), images.max().item()))
            return super().forward(images)

    network = StyleNetwork(Watching(3, 4, 3), (127.0,) * 3, (128.0,) * 3, ("",), "", 255.0)
    transfer(network, stripes(16), stripes(16, 4), steps=1)
    assert seen[0] == (-127 / 128, 1.0)


def test_a_label_map_that_was_edited_stays(own: Path, tmp_path: Path) -> None:
    made(own, tmp_path, count=1)
    file = tmp_path / "cue_conflict" / "labels.json"
    edited = json.loads(file.read_text())
    edited["targets"]["ball"] = ["tennis ball"]
    file.write_text(json.dumps(edited))
    stimuli = made(own, tmp_path, count=3)
    targets = json.loads(file.read_text())["targets"]
    assert targets["ball"] == ["tennis ball"]
    assert targets["brick"] == ["brick"]
    (note,) = [note for note in stimuli.notes if "classes of these names" in note]
    assert "brick" in note
    assert "ball" not in note
    assert str(file) in note
