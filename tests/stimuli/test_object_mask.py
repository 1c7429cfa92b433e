"""Which pixels of a mask file are the object, and which files are no masks of one object."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from cuebench.stimuli.object_mask import object_pixels

DATA = Path(__file__).parents[3] / "shared" / "data"
SIZE = 224


def saved(image: Image.Image, form: str = "png", **options: object) -> Image.Image:
    file = io.BytesIO()
    image.save(file, form, **options)
    return Image.open(io.BytesIO(file.getvalue()))


def drawn(kind: str, size: int = SIZE) -> Image.Image:
    """Draw an object at four times the size, so that its edge is smooth."""
    side = 4 * size
    image = Image.new("L", (side, side))
    draw = ImageDraw.Draw(image)
    if kind == "disc":
        draw.ellipse([0.2 * side, 0.2 * side, 0.8 * side, 0.8 * side], fill=255)
    elif kind == "small":
        draw.ellipse([0.45 * side, 0.45 * side, 0.52 * side, 0.52 * side], fill=255)
    elif kind == "all but the margin":
        draw.rectangle([16, 16, side - 16, side - 16], fill=255)
    else:
        angles, lengths = np.arange(18) * np.pi / 9, side * np.tile([0.12, 0.4], 9)
        x, y = side / 2 + lengths * np.cos(angles), side / 2 + lengths * np.sin(angles)
        draw.polygon(list(zip(x, y, strict=True)), fill=255)
    return image.resize((size, size), Image.Resampling.BOX)


def coloured(mask: Image.Image, colour: tuple[int, int, int]) -> Image.Image:
    return Image.merge("RGB", [mask.point(lambda v, c=c: v * c // 255) for c in colour])


def hard(mask: Image.Image) -> Image.Image:
    return mask.point(lambda v: 255 * (v > 127))


FILES = {
    "smooth": saved,
    "hard JPEG": lambda m: saved(hard(m), "jpeg", quality=50),
    "smooth JPEG": lambda m: saved(m, "jpeg", quality=30),
    "JPEG of RGB": lambda m: saved(m.convert("RGB"), "jpeg", quality=75),
    "WebP": lambda m: saved(m.convert("RGB"), "webp", quality=80),
    "blurred": lambda m: saved(m.filter(ImageFilter.GaussianBlur(1))),
    "red": lambda m: saved(coloured(m, (255, 0, 0))),
    "dark red": lambda m: saved(coloured(m, (128, 0, 0))),
    "red JPEG": lambda m: saved(coloured(m, (255, 0, 0)), "jpeg", quality=75),
    "not quite black and white": lambda m: saved(hard(m).point(lambda v: 15 + v * 9 // 10)),
    "numbers": lambda m: saved(m.point(lambda v: v > 127)),
}


@pytest.mark.parametrize("kind", ["disc", "small", "star", "all but the margin"])
@pytest.mark.parametrize("form", FILES)
def test_an_object_is_found_however_its_mask_was_saved(kind: str, form: str) -> None:
    mask = drawn(kind)
    wrong = object_pixels(FILES[form](mask)) != (np.asarray(mask) > 127)
    edge = np.count_nonzero(np.asarray(mask.filter(ImageFilter.FIND_EDGES)) > 64)
    assert wrong.sum() <= (0 if form in ("smooth", "red", "dark red", "numbers") else edge / 2)


def numbered(*classes: int, size: int = SIZE) -> np.ndarray:
    """Draw one area for each number of a class, side by side."""
    mask = np.zeros((size, size), np.uint8)
    for i, value in enumerate(classes):
        mask[size // 5 : 4 * size // 5, size * i // len(classes) + 4 : size * (i + 1) // len(classes)] = value
    return mask


@pytest.mark.parametrize("size", [64, SIZE, 640])
@pytest.mark.parametrize(
    "classes",
    [(1, 2), (1, 2, 3), (1, 255), (1, 15, 255), (1, 2, 3, 200), (50, 255), (128, 255), (100, 200), (85, 170),
     (200, 255), (29, 76, 150), (149, 226), (64, 128, 192, 255)],
)  # fmt: skip
def test_several_classes_are_no_object(classes: tuple[int, ...], size: int) -> None:
    with pytest.raises(ValueError, match=r"its values are .*numbers of classes"):
        object_pixels(saved(Image.fromarray(numbered(*classes, size=size))))


@pytest.mark.parametrize("values", [(2, 3, 1), (0, 128, 255)])
def test_a_trimap_is_no_mask(values: tuple[int, int, int]) -> None:
    trimap = np.full((SIZE, SIZE), values[0], np.uint8)
    trimap[56:168, 56:168], trimap[60:164, 60:164] = values[1:]
    with pytest.raises(ValueError, match="its values are"):
        object_pixels(saved(Image.fromarray(trimap)))


@pytest.mark.parametrize("classes", [(1, 5), (1, 255)])
@pytest.mark.parametrize("mode", ["P", "RGB"])
def test_several_colours_are_no_object(classes: tuple[int, ...], mode: str) -> None:
    """PASCAL VOC draws classes by a palette, and the border of an object in a colour of its own."""
    image = Image.fromarray(numbered(*classes), "P")
    palette = np.zeros((256, 3), np.uint8)
    palette[[1, 5, 255]] = (128, 0, 0), (128, 0, 128), (224, 224, 192)
    image.putpalette(palette.ravel().tolist())
    for form, options in (("png", {}), *([("jpeg", {"quality": 90})] if mode == "RGB" else [])):
        with pytest.raises(ValueError, match="several colours"):
            object_pixels(saved(image.convert(mode), form, **options))


def test_a_palette_of_one_class_is_an_object() -> None:
    image = Image.fromarray(numbered(2), "P")
    image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0])
    assert np.array_equal(object_pixels(saved(image)), numbered(2) != 0)


def test_what_is_all_transparent_holds_no_object() -> None:
    with pytest.raises(ValueError, match="all of it is transparent"):
        object_pixels(saved(Image.new("RGBA", (32, 32))))


@pytest.mark.skipif(not (DATA / "oxford_pets").exists(), reason="no photographs in ../shared/data/oxford_pets")
def test_photographs_are_no_masks() -> None:
    """A photograph in the place of a mask would be cut at the middle grey, and its cue made of half of the picture."""
    files = sorted((DATA / "oxford_pets").rglob("*.jpg"))[:20]
    assert files
    for file in files:
        for picture in (Image.open(file), saved(Image.open(file).convert("L"))):
            with pytest.raises(ValueError, match=r"colours|greys"):
                object_pixels(picture)
