"""Making REFINED-BIAS cues: masks of every kind, what the cues may hold, bad input, resuming, verdicts."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

pytest.importorskip("cv2")
pytest.importorskip("skimage")

from cuebench.errors import UserError
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.masks import grabcut, segmenter
from cuebench.stimuli.refined_bias.inspection import grid_energy, verdict
from cuebench.stimuli.refined_bias.masks import coco_mask, decompress, load
from cuebench.stimuli.refined_bias.objects import close_up, framed, inscribed
from cuebench.stimuli.refined_bias.shape_cue import draw_contours
from cuebench.stimuli.refined_bias.sources import Source, find_sources, read_classes
from cuebench.stimuli.refined_bias.texture_cue import least_cuts, shown, source_map


def scene(seed=0, size=160):
    """A disc of red and blue noise on a plain green background, and its mask."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    mask = (y - size / 2) ** 2 + (x - size / 2) ** 2 < (0.42 * size) ** 2
    image = np.full((size, size, 3), (20, 200, 30), np.uint8)
    noise = gaussian_filter(rng.normal(size=(size, size, 3)), (1.5, 1.5, 0))
    image[mask] = np.clip(128 + 40 * noise / noise.std(), 0, 255).astype(np.uint8)[mask]
    image[..., 1][mask] = 0  # no green inside: green in a texture cue is a leak
    return image, mask


def barred():
    """The same with a broad light bar across it: a part of its structure."""
    image, mask = scene()
    image[70:90][mask[70:90]] = (255, 0, 255)
    return image, mask


def write_alpha(root, classes=("zebra", "hourglass"), count=2, size=160):
    for c, name in enumerate(classes):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            image, mask = scene(10 * c + i, size)
            Image.fromarray(np.dstack([image, mask * np.uint8(255)])).save(root / name / f"p{i}.png")
    return root


# ------------------------------------------------------------------------------------------------- masks and objects


def reordered(image, mask, grid, rng):
    return shown(image, source_map(image, mask, grid, rng), grid)


def test_masks_of_all_three_kinds_agree(tmp_path):
    image, mask = scene()
    picture = Image.fromarray(image)
    Image.fromarray(np.dstack([image, mask * np.uint8(255)])).save(tmp_path / "alpha.png")
    picture.save(tmp_path / "plain.png")
    Image.fromarray(mask * np.uint8(255)).save(tmp_path / "plain.mask.png")
    runs = np.diff(np.flatnonzero(np.diff(np.r_[-1, mask.T.ravel(), -1])))
    lengths = {"size": list(mask.shape), "counts": runs.tolist()}
    for source in (
        Source("a", "x", tmp_path / "alpha.png"),
        Source("b", "x", tmp_path / "plain.png", tmp_path / "plain.mask.png"),
        Source("c", "x", tmp_path / "plain.png", annotation={"segmentation": lengths}),
    ):
        pixels, found = load(source)
        np.testing.assert_array_equal(found, mask)
        np.testing.assert_array_equal(pixels, image)
    assert load(Source("d", "x", tmp_path / "plain.png"))[1] is None


def compress(runs):
    """Write run lengths as COCO does; an independent inverse of ``decompress``."""
    text = ""
    for i, run in enumerate(runs):
        value = run - runs[i - 2] if i > 2 else run
        more = True
        while more:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            text += chr((bits | 32 * more) + 48)
    return text


def test_compressed_run_lengths_and_polygons():
    runs = [5, 17, 100, 3, 4000, 1, 33, 70000]
    assert decompress(compress(runs)) == runs
    canvas = Image.new("1", (40, 30))
    ImageDraw.Draw(canvas).polygon([(3, 4), (30, 5), (20, 25)], fill=1)
    found = coco_mask({"segmentation": [[3, 4, 30, 5, 20, 25]]}, 30, 40)
    np.testing.assert_array_equal(found, np.asarray(canvas))


def test_objects_are_framed_and_enlarged():
    image, mask = scene()
    found = framed(image, mask, 224)
    rows = np.flatnonzero(found.mask.any(1))
    assert found.image.shape == (224, 224, 3)
    assert abs((rows[-1] - rows[0] + 1) - 202) <= 3
    assert inscribed(np.pad(np.ones((9, 20), bool), 4)) == 9
    slender = np.zeros((200, 200), bool)
    slender[80:130, 10:190] = True
    assert inscribed(close_up(np.zeros((200, 200, 3), np.uint8), slender, 224, 74).mask) >= 74


# --------------------------------------------------------------------------------------------------------- the cues


def test_shape_cue_is_thin_white_on_black_inside_the_object():
    found = framed(*barred(), 224)
    cue = draw_contours(found.image, found.mask, sigma=4.0)
    lines = cue[..., 0] > 0
    assert set(np.unique(cue)) == {0, 255}
    assert not (lines & ~found.mask).any()
    # Thin: no 3 × 3 block is all white.
    blocks = np.lib.stride_tricks.sliding_window_view(lines, (3, 3)).all(axis=(2, 3))
    assert not blocks.any()
    # The outline and the two sides of the bar are there, the texture is not.
    middle = lines[:, 112]
    assert 4 <= middle.sum() <= 8
    assert lines.sum() < 2.2 * np.pi * 202


def test_the_surroundings_have_no_influence_on_the_shape_cue():
    image, mask = scene()
    found = framed(image, mask, 224)
    changed = found.image.copy()
    changed[~found.mask] = 255 - changed[~found.mask]
    np.testing.assert_array_equal(draw_contours(found.image, found.mask), draw_contours(changed, found.mask))


@pytest.mark.parametrize("grid", [4, 8, 16, 32])
def test_texture_cue_holds_only_pixels_from_inside(grid):
    found = close_up(*scene(size=400), 224, 74)
    where = source_map(found.image, found.mask, grid, np.random.default_rng(0))
    assert where.shape == (224, 224)
    assert found.mask.ravel()[where].all()
    cue = reordered(found.image, found.mask, grid, np.random.default_rng(0))
    assert cue[..., 1].max() < 60, "green of the background leaked in"
    np.testing.assert_array_equal(cue, reordered(found.image, found.mask, grid, np.random.default_rng(0)))
    assert not np.array_equal(cue, reordered(found.image, found.mask, grid, np.random.default_rng(1)))


def test_the_grid_shows_less_than_in_a_plain_tiling():
    """A strongly shaded object: tiles put side by side show their borders, cut and fitted ones much less."""
    found = close_up(*scene(size=400), 224, 74)
    height, width = found.mask.shape
    shade = np.clip(found.image * 0.3 + np.linspace(20, 180, width)[None, :, None], 0, 255).astype(np.uint8)
    rng = np.random.default_rng(0)
    corners = rng.integers((height // 2 - 60, width // 2 - 60), (height // 2 + 30, width // 2 + 30), (64, 2))
    tiles = [shade[a : a + 28, b : b + 28] for a, b in corners]
    plain = np.concatenate([np.concatenate(tiles[8 * i : 8 * i + 8], axis=1) for i in range(8)], axis=0)
    joined = reordered(shade, found.mask, 8, np.random.default_rng(0))
    assert grid_energy(joined, 8) < 0.6 * grid_energy(plain, 8)
    assert grid_energy(np.random.default_rng(0).integers(0, 256, (224, 224, 3)), 8) < 1.1


def test_cuts_against_all_paths():
    """Brute force over every path of a small table."""
    rng = np.random.default_rng(0)
    error = rng.random((3, 5, 4))
    found = least_cuts(error)
    for table, path in zip(error, found):
        paths = [[c] for c in range(4)]
        for _ in range(4):
            paths = [[*p, c] for p in paths for c in (p[-1] - 1, p[-1], p[-1] + 1) if 0 <= c < 4]
        best = min(paths, key=lambda p: sum(table[r, c] for r, c in enumerate(p)))
        assert path.tolist() == best


def test_verdict_names_measure_value_and_limit():
    assert verdict({"entropy": 5.0, "grid_energy": 1.1}) == ""
    said = verdict({"entropy": 1.0, "grid_energy": 9.0})
    assert "no texture (entropy 1, at least 3.2)" in said
    assert "the grid of the patches shows (grid_energy 9" in said


# ------------------------------------------------------------------------------------------------------- segmenters


def test_grabcut_finds_the_object():
    image, mask = scene()
    found = grabcut(image)
    assert (found & mask).sum() / (found | mask).sum() > 0.9


def test_segmenters_by_name():
    assert segmenter("grabcut") is grabcut
    assert segmenter("python:cuebench.stimuli.masks:grabcut") is grabcut
    for bad in ("grabcat", "hf:", "sam", "python:nowhere:nothing"):
        with pytest.raises(UserError, match="segmenter"):
            segmenter(bad)


@pytest.mark.torch
@pytest.mark.xdist_group("torch")
def test_a_hugging_face_segmenter_from_a_folder(tmp_path):
    """A tiny network with random weights: the adapter must load it offline and give a mask of the image's size."""
    pytest.importorskip("transformers")
    from cuebench.observers.torch.torchvision_import import import_torchvision

    import_torchvision()
    import transformers

    config = transformers.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 8], num_attention_heads=[1, 1],
        patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[1, 1], decoder_hidden_size=8,
        id2label={0: "background", 1: "zebra"}, label2id={"background": 0, "zebra": 1},
    )  # fmt: skip
    network = transformers.SegformerForSemanticSegmentation(config)
    network.decode_head.classifier.bias.data[1] = 1000.0
    network.save_pretrained(tmp_path)
    transformers.SegformerImageProcessor(size={"height": 64, "width": 64}).save_pretrained(tmp_path)
    segment = segmenter(f"hf:{tmp_path}")
    image, _ = scene()
    found = segment(image, "zebra")
    assert found.shape == image.shape[:2]
    assert found.all(), "the bias makes every pixel a zebra"
    with pytest.raises(UserError, match="cannot be loaded"):
        segmenter(f"hf:{tmp_path / 'nowhere'}")


# --------------------------------------------------------------------------------------------------------- the maker


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    write_alpha(place / "source")
    return place, make("refined_bias", place / "out", source=str(place / "source"), grids="4,8")


def tree(root):
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_a_set_is_made_in_the_published_layout(made):
    place, stimuli = made
    ids = {s.id for s in stimuli}
    assert {"zebra_0", "4x4_zebra_1", "8x8_hourglass_0"} <= ids
    assert len(stimuli) == 4 + 8
    assert all((s.width, s.height) == (224, 224) for s in stimuli)
    labels = json.loads((place / "out/refined_bias/labels.json").read_text())
    assert labels["targets"] == {"hourglass": ["n03544143"], "zebra": ["n02391049"]}
    rows = list(csv.DictReader((place / "out/refined_bias/inspection.csv").open()))
    assert {r["verdict"] for r in rows} == {"accept"}
    assert all(float(r["outline_in_texture"]) == 0 for r in rows if r["cue"] == "texture")
    assert all(float(r["outside"]) == 0 for r in rows if r["cue"] == "shape")
    assert Image.open(place / "out/refined_bias/sheet_texture.png").width > 500


def test_the_set_is_read_by_the_protocol(made):
    from cuebench.protocols.refined_bias import read

    stimuli = read(made[0] / "out")
    assert stimuli.partial == ()
    assert stimuli.expected == len(stimuli) == 12


def test_same_seed_same_bytes_and_it_goes_on_where_it_stopped(made, tmp_path):
    place, _ = made
    first = tree(place / "out")
    seen = []
    make("refined_bias", tmp_path, source=str(place / "source"), grids="4,8", progress=lambda d, t: seen.append((d, t)))
    assert tree(tmp_path) == first
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    home = tmp_path / "refined_bias"
    (home / "made/inspection/zebra/p1.json").unlink()
    (home / "made/texture/zebra/4x4_zebra_1.png").unlink()
    before = (home / "made/inspection/zebra/p0.json").stat().st_mtime_ns
    make("refined_bias", tmp_path, source=str(place / "source"), grids="4,8")
    assert tree(tmp_path) == first
    assert (home / "made/inspection/zebra/p0.json").stat().st_mtime_ns == before
    other = make("refined_bias", tmp_path / "other", source=str(place / "source"), grids="4,8", seed=1)
    assert {s.sha256 for s in other if s.texture}.isdisjoint({s.sha256 for s in made[1] if s.texture})
    with pytest.raises(UserError, match="seed was 0, now 1"):
        make("refined_bias", tmp_path, source=str(place / "source"), grids="4,8", seed=1)


def test_verdicts_of_people_count_more(made, tmp_path):
    place, _ = made
    said = tmp_path / "said.csv"
    said.write_text("file,verdict,reason\nzebra_0.png,reject,looks like a ball\n4x4_zebra_0,accept,\n")
    stimuli = make("refined_bias", tmp_path, source=str(place / "source"), grids="4,8", verdicts=str(said))
    assert "zebra_0" not in {s.id for s in stimuli}
    rows = {r["name"]: r for r in csv.DictReader((tmp_path / "refined_bias/inspection.csv").open())}
    assert rows["zebra_0"]["by"] == "person"
    assert "looks like a ball" in rows["zebra_0"]["reason"]
    again = make("refined_bias", tmp_path, source=str(place / "source"), grids="4,8")
    assert "zebra_0" in {s.id for s in again}
    said.write_text("cue,verdict\nunicorn_0,accept\nzebra_0,maybe\n")
    with pytest.raises(UserError, match="2 problems") as error:
        make("refined_bias", tmp_path, source=str(place / "source"), grids="4,8", verdicts=str(said))
    assert "unicorn_0" in error.value.message


def test_classes_of_a_balance_file(made, tmp_path):
    choice = tmp_path / "choice.json"
    choice.write_text(json.dumps({"shape": ["hourglass"], "texture": ["zebra"]}))
    stimuli = make("refined_bias", tmp_path, source=str(made[0] / "source"), grids="4", classes=str(choice))
    assert {(s.shape, s.texture) for s in stimuli} == {("hourglass", ""), ("", "zebra")}


def test_quilting_is_the_second_method(made, tmp_path):
    stimuli = make(
        "refined_bias",
        tmp_path,
        source=str(made[0] / "source"),
        grids="4",
        texture="quilting",
        classes="zebra",
        count=1,
    )
    assert "4x4_zebra_0" in {s.id for s in stimuli}
    rows = list(csv.DictReader((tmp_path / "refined_bias/inspection.csv").open()))
    assert [r["outline_in_texture"] for r in rows if r["cue"] == "texture"] == ["0"]


def test_images_without_masks_are_segmented(tmp_path):
    (tmp_path / "source/zebra").mkdir(parents=True)
    Image.fromarray(scene()[0]).save(tmp_path / "source/zebra/a.jpg", quality=95)
    stimuli = make("refined_bias", tmp_path / "out", source=str(tmp_path / "source"), grids="4,8")
    assert {"zebra_0", "4x4_zebra_0"} <= {s.id for s in stimuli}


def test_coco_annotations(tmp_path):
    image, _ = scene()
    (tmp_path / "images").mkdir()
    Image.fromarray(image).save(tmp_path / "images/a.png")
    circle = [v for a in np.linspace(0, 2 * np.pi, 60)[:-1] for v in (80 + 66 * np.cos(a), 80 + 66 * np.sin(a))]
    data = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 7, "name": "soccer ball"}],
        "annotations": [{"id": 3, "image_id": 1, "category_id": 7, "segmentation": [circle]}],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(data))
    found, problems = find_sources(tmp_path)
    assert ([s.id for s in found], problems) == (["soccer_ball/a-3"], [])
    assert load(found[0])[1].sum() == pytest.approx(np.pi * 66**2, rel=0.03)
    assert read_classes(tmp_path, ["soccer_ball"])[0].targets["soccer_ball"] == ("n04254680",)
    data["annotations"] += [{"id": 4, "image_id": 9, "category_id": 7, "segmentation": [circle]}]
    (tmp_path / "annotations.json").write_text(json.dumps(data))
    assert find_sources(tmp_path)[1] == ["annotation 4: has no image"]


def test_everything_bad_is_named_in_one_list_and_nothing_is_written(tmp_path):
    root = write_alpha(tmp_path / "source", classes=("zebra",), count=1)
    folder, (image, mask) = root / "zebra", scene()
    Image.fromarray(image).save(folder / "other.png")
    Image.fromarray(mask[:50, :60] * np.uint8(255)).save(folder / "other.mask.png")
    Image.fromarray(np.dstack([image, np.zeros_like(mask, np.uint8)])).save(folder / "empty.png")
    Image.fromarray(np.dstack([image, np.full_like(mask, 255, np.uint8)])).save(folder / "full.png")
    thin = np.zeros_like(mask)
    thin[75:80, 5:155] = True
    Image.fromarray(np.dstack([image, thin * np.uint8(255)])).save(folder / "thin.png")
    Image.fromarray(image).convert("CMYK").save(folder / "print.jpg")
    Image.fromarray(np.zeros((40, 40), np.uint16)).save(folder / "deep.png")
    Image.fromarray(image).save(folder / "moving.gif", save_all=True, append_images=[Image.fromarray(255 - image)])
    (folder / "broken.png").write_bytes(b"no image")
    (root / "blorp").mkdir()
    Image.fromarray(np.dstack([image, mask * np.uint8(255)])).save(root / "blorp/a.png")
    with pytest.raises(UserError) as error:
        make("refined_bias", tmp_path / "out", source=str(root))
    for part in (
        "9 problems", "other: the mask has 60×50 pixels, the image 160×160", "empty: the mask is empty",
        "full: the mask fills", "thin: the object is smaller than the largest patch", "print: a CMYK file",
        "deep: 16 bits", "moving: has 2 frames", "broken: cannot be decoded",
        "class 'blorp' has no map",
    ):  # fmt: skip
        assert part in error.value.message, part
    assert not (tmp_path / "out").exists()
    (root / "blorp/a.png").unlink()
    stimuli = make("refined_bias", tmp_path / "out", source=str(root), allow_bad=True)
    assert {"4x4_zebra_6", "zebra_6"} <= {s.id for s in stimuli}
    rows = list(csv.DictReader((tmp_path / "out/refined_bias/inspection.csv").open()))
    assert sum("CMYK" in r["reason"] for r in rows) == 2


def test_bad_options(tmp_path):
    root = write_alpha(tmp_path / "source", classes=("zebra",), count=1)
    for options, message in (
        ({}, "needs a folder"),
        ({"source": str(root), "grids": "4,x"}, "grids="),
        ({"source": str(root), "texture": "woven"}, "texture='woven'"),
        ({"source": str(root), "classes": "lion"}, "no image"),
        ({"source": str(tmp_path / "nowhere")}, "does not exist"),
    ):
        with pytest.raises(UserError, match=message):
            make("refined_bias", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
