"""From a file to the picture that is shown: every kind of pixel, every kind of failure, recipes of cues."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import shlex
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageOps

import cuebench as cb
from cuebench import registry
from cuebench.cues import blend, contrast, patch_shuffle
from cuebench.errors import UserError
from cuebench.processes import ProcessPool
from cuebench.registry import readers
from cuebench.stimuli.image_files import _orientation
from cuebench.stimuli.render import Unreadable, check_recipe, decode, render
from cuebench.types import Stimulus


def shown(path: Path) -> np.ndarray:
    return np.asarray(decode(path.parent, Stimulus(path.name, path.name)))


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize(
    ("name", "mode", "bands"),
    [("a.jpg", "RGB", 3), ("a.jpg", "L", 0), ("a.jpg", "CMYK", 4), ("a.png", "RGB", 3), ("a.png", "L", 0)],
)
def test_pictures_of_eight_bits_are_pillows_own(tmp_path: Path, name: str, mode: str, bands: int) -> None:
    Image.fromarray(noise(9, 7, bands) if bands else noise(9, 7), mode).save(tmp_path / name)
    with Image.open(tmp_path / name) as image:
        assert image.mode == mode
        np.testing.assert_array_equal(shown(tmp_path / name), np.asarray(image.convert("RGB")))


def test_an_alpha_channel_that_hides_nothing_changes_no_pixel(tmp_path: Path) -> None:
    pixels = noise(9, 7, 4)
    pixels[..., 3] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(shown(tmp_path / "a.png"), pixels[..., :3])


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_what_is_transparent_is_white(tmp_path: Path, mode: str) -> None:
    pixels = np.zeros((1, 3, 4), np.uint8)
    pixels[0, :, 3] = 0, 128, 255
    Image.fromarray(pixels).convert(mode).save(tmp_path / "a.png")
    assert shown(tmp_path / "a.png")[0].tolist() == [[255] * 3, [127] * 3, [0] * 3]


def test_a_palette_with_transparency_is_on_white(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([0, 0, 0, 200, 10, 10])
    image.putpixel((1, 0), 1)
    image.save(tmp_path / "a.png", transparency=0)
    assert shown(tmp_path / "a.png")[0].tolist() == [[255] * 3, [200, 10, 10]]


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path, name: str) -> None:
    Image.fromarray(np.array([[0, 257, 32768, 65535]], np.uint16)).save(tmp_path / name)
    assert shown(tmp_path / name)[0, :, 0].tolist() == [0, 1, 128, 255]


def test_sixteen_bits_of_the_other_byte_order(tmp_path: Path) -> None:
    values = np.array([[0, 257, 65535]], ">u2")
    Image.frombytes("I;16B", (3, 1), values.tobytes()).save(tmp_path / "a.tif")
    with Image.open(tmp_path / "a.tif") as image:
        assert image.mode == "I;16B"
    assert shown(tmp_path / "a.tif")[0, :, 0].tolist() == [0, 1, 255]


@pytest.mark.parametrize(
    ("values", "kind"), [([0, 2**30, 2**31 - 1], np.int32), ([0.0, 0.5, 1.0], np.float32)], ids=["integers", "floats"]
)
def test_thirty_two_bits_are_scaled_by_their_range(tmp_path: Path, values: list[float], kind: type) -> None:
    Image.fromarray(np.array([values], kind)).save(tmp_path / "a.tif")
    assert shown(tmp_path / "a.tif")[0].tolist() == [[0] * 3, [128] * 3, [255] * 3]


@pytest.mark.parametrize("value", [-1.0, 255.0, float("nan")])
def test_floats_whose_range_is_unknown_are_not_guessed(tmp_path: Path, value: float) -> None:
    Image.fromarray(np.array([[0.5, value]], np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(Unreadable, match="between 0 and 1") as caught:
        shown(tmp_path / "a.tif")
    assert not caught.value.transient


@pytest.mark.parametrize(
    ("brightest", "kind"), [(255, np.int32), (65535, np.int32), (255, np.uint16), (4095, np.uint16), (0.01, np.float32)]
)
def test_a_deep_picture_never_turns_black_without_a_word(tmp_path: Path, brightest: float, kind: type) -> None:
    Image.fromarray(np.array([[0, brightest]], kind)).save(tmp_path / "a.tif")
    with pytest.raises(Unreadable, match="would be shown as black") as caught:
        shown(tmp_path / "a.tif")
    assert not caught.value.transient


def deep_colour(name: str, values: np.ndarray) -> bytes:
    """Return a file with samples of 16 bits, which Pillow reads but cannot write."""
    height, width, bands = values.shape
    if name.startswith("ppm"):
        numbers = values[..., :3].astype(">u2").tobytes()
        if name == "ppm_plain":
            numbers = b"# a comment 9999\n" + " ".join(map(str, values[..., :3].ravel())).encode()
        return b"%s\n%d %d\n65535\n" % (b"P3" if name == "ppm_plain" else b"P6", width, height) + numbers
    if name.startswith("tif"):
        order, mark = ("<", b"II") if name == "tif_little" else (">", b"MM")
        bits = struct.pack(f"{order}{bands}H", *[16] * bands)
        tags = [(256, 3, width), (257, 3, height), (258, 3, None), (259, 3, 1), (262, 3, 2), (273, 4, 0)]
        tags += [(277, 3, bands), (278, 3, height), (279, 4, values.size * 2)] + ([(338, 3, 2)] if bands == 4 else [])
        start = 8 + 2 + 12 * len(tags) + 4
        directory = struct.pack(f"{order}H", len(tags))
        for tag, kind, value in tags:
            count = bands if tag == 258 else 1
            number = start if tag == 258 else start + len(bits) if tag == 273 else value
            form = "I" if kind == 4 or tag == 258 else "H2x"
            directory += struct.pack(f"{order}HHI{form}", tag, kind, count, number)
        samples = values.astype(f"{order}u2").tobytes()
        return mark + struct.pack(f"{order}HI", 42, 8) + directory + b"\0" * 4 + bits + samples
    kind = {2: 4, 3: 2, 4: 6}[bands]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)), (b"IDAT", zlib.compress(rows))]
    parts = [
        struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in [*chunks, (b"IEND", b"")]
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


DEEP_COLOUR = [("png", 3), ("png", 4), ("png", 2), ("ppm", 3), ("ppm_plain", 3)]
DEEP_COLOUR += [(tif, bands) for tif in ("tif_little", "tif_big") for bands in (3, 4)]


def colour_of(bands: int, brightest: int) -> np.ndarray:
    values = np.zeros((3, 5, bands), np.uint16)
    values[1, 2, 0] = brightest
    if bands in (2, 4):
        values[..., -1] = 65535
    return values


@pytest.mark.parametrize(("name", "bands"), DEEP_COLOUR)
@pytest.mark.parametrize("brightest", [1, 255, 1023, 4095])
def test_deep_colour_never_turns_black_without_a_word(tmp_path: Path, name: str, bands: int, brightest: int) -> None:
    (tmp_path / "a").write_bytes(deep_colour(name, colour_of(bands, brightest)))
    with pytest.raises(
        Unreadable, match=f"brightest pixel is {brightest} of 65535, it would be shown as black"
    ) as caught:
        shown(tmp_path / "a")
    assert not caught.value.transient


@pytest.mark.parametrize(("name", "bands"), DEEP_COLOUR)
@pytest.mark.parametrize("brightest", [0, 4096, 65535])
def test_deep_colour_that_is_black_or_uses_its_range_is_shown(
    tmp_path: Path, name: str, bands: int, brightest: int
) -> None:
    (tmp_path / "a").write_bytes(deep_colour(name, colour_of(bands, brightest)))
    assert shown(tmp_path / "a").max() == min(255, -(-brightest // 257) if "ppm" in name else brightest >> 8)


def test_a_ppm_is_dark_by_its_own_white(tmp_path: Path) -> None:
    for white, fits in ((4095, True), (65535, False)):
        (tmp_path / "a").write_bytes(b"P6\n2 1\n%d\n" % white + struct.pack(">6H", 4095, 0, 0, 0, 4095, 0))
        if fits:
            assert shown(tmp_path / "a")[0].tolist() == [[255, 0, 0], [0, 255, 0]]
        else:
            with pytest.raises(Unreadable, match="4095 of 65535"):
                shown(tmp_path / "a")


def turned(path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Make], exif[ExifTags.Base.Orientation] = "Camera", orientation
    Image.fromarray(noise(9, 7, 3)).save(path, exif=exif)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
@pytest.mark.parametrize("orientation", [2, 3, 4, 5, 6, 7, 8])
def test_a_picture_that_viewers_turn_is_not_shown_otherwise_to_models(
    tmp_path: Path, name: str, orientation: int
) -> None:
    turned(tmp_path / name, orientation)
    with pytest.raises(Unreadable, match=rf"EXIF orientation {orientation}\), .*; save it upright") as caught:
        shown(tmp_path / name)
    assert not caught.value.transient
    command = caught.value.hint.replace("'IN'", repr(str(tmp_path / name))).replace("OUT", str(tmp_path / "up"))
    subprocess.run(shlex.split(command.replace("python", sys.executable, 1)), check=True)
    with Image.open(tmp_path / name) as image:
        np.testing.assert_array_equal(shown(tmp_path / "up.png"), ImageOps.exif_transpose(image).convert("RGB"))


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
@pytest.mark.parametrize("orientation", [0, 1, 9, 300])
def test_a_picture_that_nobody_turns_is_shown_as_it_is_stored(tmp_path: Path, name: str, orientation: int) -> None:
    turned(tmp_path / name, orientation)
    with Image.open(tmp_path / name) as image:
        np.testing.assert_array_equal(shown(tmp_path / name), np.asarray(image.convert("RGB")))


def test_tiff_which_no_browser_shows_is_turned(tmp_path: Path) -> None:
    turned(tmp_path / "a.tif", 6)
    np.testing.assert_array_equal(shown(tmp_path / "a.tif"), np.rot90(noise(9, 7, 3), -1))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", ["H", "I"])
def test_the_orientation_in_any_exif_is_what_pillow_says(order: str, kind: str) -> None:
    for orientation in range(1, 9):
        entry = struct.pack(f"{order}HHI{kind}", 0x0112, {"H": 3, "I": 4}[kind], 1, orientation).ljust(12, b"\0")
        start = struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 42, 8)
        data = b"Exif\0\0" + start + struct.pack(f"{order}H", 1) + entry + b"\0" * 4
        exif = Image.Exif()
        exif.load(data)
        assert _orientation(data) == _orientation(data[6:]) == exif[ExifTags.Base.Orientation] == orientation
        for end in range(len(data)):  # damaged, as in many a photograph of ImageNet
            assert _orientation(data[:end]) in (1, orientation)


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp", "a.tif"])
def test_of_several_frames_none_is_taken_without_a_word(tmp_path: Path, name: str) -> None:
    first, second = (Image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))
    first.save(tmp_path / name, save_all=True, append_images=[second])
    with pytest.raises(Unreadable, match=r"has 2 frames: .*save one of them alone") as caught:
        shown(tmp_path / name)
    assert not caught.value.transient
    first.save(tmp_path / name, save_all=True)
    assert abs(shown(tmp_path / name).astype(int) - (255, 0, 0)).max() <= 3


def test_what_a_camera_stores_behind_a_photograph_is_no_second_frame(tmp_path: Path) -> None:
    pictures = [Image.fromarray(noise(9, 7, 3)), Image.new("L", (4, 4))]
    pictures[0].save(tmp_path / "a.mpo", save_all=True, append_images=pictures[1:])
    (tmp_path / "a.mpo").rename(tmp_path / "a.jpg")
    pictures[0].save(tmp_path / "b.jpg")
    np.testing.assert_array_equal(shown(tmp_path / "a.jpg"), shown(tmp_path / "b.jpg"))


def test_bytes_that_are_decoded_are_the_bytes_that_were_hashed(tmp_path: Path) -> None:
    Image.fromarray(noise(4, 4, 3)).save(tmp_path / "a.png")
    digest = hashlib.sha256((tmp_path / "a.png").read_bytes()).hexdigest()
    stimulus = Stimulus("a", "a.png", sha256=digest)
    assert decode(tmp_path, stimulus).size == (4, 4)
    Image.fromarray(255 - noise(4, 4, 3)).save(tmp_path / "a.png")
    with pytest.raises(Unreadable, match="has changed since the set was read") as caught:
        decode(tmp_path, stimulus)
    assert caught.value.transient  # so nothing is stored


@pytest.mark.parametrize("path", ["../a.png", "/etc/hostname", "x/../../a.png", "C:/a.png", "..\\a.png"])
def test_a_path_out_of_the_set_is_refused(folder: Path, path: str) -> None:
    with pytest.raises(Unreadable, match=r"absolute path|leads out of the set"):
        decode(folder, Stimulus("a", path))
    with pytest.raises(Unreadable, match=r"absolute path|leads out of the set"):
        followed(folder, f"blend?other=file:{path}")


def test_a_second_image_that_was_swapped_is_refused(folder: Path) -> None:
    Image.fromarray(noise(8, 8, 3)).save(folder / "b2.png")
    digest = hashlib.sha256((folder / "b2.png").read_bytes()).hexdigest()[:16]
    recipe = f"blend?other=file:b2.png@{digest}"
    followed(folder, recipe)
    Image.fromarray(255 - noise(8, 8, 3)).save(folder / "b2.png")
    with pytest.raises(Unreadable, match="has changed since the set was read"):
        followed(folder, recipe)


def test_postscript_named_png_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*arguments: object, **options: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr("subprocess.Popen.__init__", started)
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n")
    with pytest.raises(Unreadable, match="no picture of a known format"):
        shown(tmp_path / "a.png")


def test_a_pipe_named_png_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(Unreadable, match="a pipe or a device"):
        shown(tmp_path / "a.png")


def test_a_picture_with_too_many_pixels_is_not_decoded(tmp_path: Path) -> None:
    Image.new("1", (10_000, 9_000)).save(tmp_path / "a.png")
    with pytest.raises(Unreadable, match=r"has 10,000 × 9,000 pixels; at most"):
        shown(tmp_path / "a.png")


def test_damaged_contents_stay_so(tmp_path: Path) -> None:
    Image.fromarray(noise(64, 64, 3)).save(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:300])
    with pytest.raises(Unreadable, match=r"a\.png: cannot be decoded") as caught:
        shown(tmp_path / "a.png")
    assert caught.value.transient is False


@pytest.mark.parametrize(
    "error", [IndexError("list index"), KeyError(3), RuntimeError("codec"), OSError(errno.EINVAL, "seek")]
)
def test_whatever_a_decoder_raises_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(path: object, formats: object) -> None:
        raise error

    (tmp_path / "a.png").write_bytes(b"anything")
    monkeypatch.setattr(Image, "open", broken)
    with pytest.raises(Unreadable, match=type(error).__name__) as caught:
        shown(tmp_path / "a.png")
    assert caught.value.transient is False


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE])
def test_a_failing_disk_may_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def broken(path: object, flags: int) -> None:
        raise OSError(number, "the disk hiccups")

    (tmp_path / "a.png").write_bytes(b"anything")
    monkeypatch.setattr("cuebench.reading.os.open", broken)
    with pytest.raises(Unreadable, match=r"a\.png cannot be read: .*hiccups") as caught:
        shown(tmp_path / "a.png")
    assert caught.value.transient is True
    assert pickle.loads(pickle.dumps(caught.value)).transient is True


def test_a_missing_file_may_come_back(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="the file is missing") as caught:
        shown(tmp_path / "a.png")
    assert caught.value.transient is True


# ------------------------------------------------------------------------------------------------------- recipes

CUE = '''
from cuebench.cues.base import CueInfo, on_images

@CueInfo(kind="corruption", reference="none", random=True)
def lighten(image, *, by: float = 0.5, rng=0):
    """Lighten an image."""
    if by > 1:
        raise ArithmeticError("too light")
    return on_images(lambda pixels, rng: pixels + by * (1 - pixels), image, random=True, rng=rng)
'''

WORK = """
import numpy as np
from cuebench.stimuli.image_files import _orientation
from cuebench.stimuli.render import decode, render

def shown(argument):
    root, stimulus = argument
    return np.asarray(render(root, decode(root, stimulus), stimulus))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Image.fromarray(noise(8, 8, 3)).save(tmp_path / "a.png")
    (tmp_path / "mine.py").write_text(CUE)
    return tmp_path


def followed(folder: Path, recipe: str) -> np.ndarray:
    stimulus = Stimulus("a", "a.png", recipe=recipe, seed=3)
    return np.asarray(render(folder, decode(folder, stimulus), stimulus))


def test_a_recipe_is_one_step_after_the_other_with_the_seed_of_the_stimulus(folder: Path) -> None:
    expected = contrast(patch_shuffle(noise(8, 8, 3), grid=2, rng=3), level=0.5, keep_colour=True)
    assert np.array_equal(followed(folder, "patch_shuffle?grid=2;contrast?level=0.5&keep_colour=true"), expected)


def test_a_second_image_of_a_recipe_is_read_below_the_same_root(folder: Path) -> None:
    Image.fromarray(255 - noise(8, 8, 3)).save(folder / "b.png")
    expected = blend(noise(8, 8, 3), 255 - noise(8, 8, 3), gamma_t=0.25)
    assert np.array_equal(followed(folder, "blend?other=file:b.png&gamma_t=0.25"), expected)
    with pytest.raises(Unreadable, match=r"c\.png: the file is missing"):
        followed(folder, "blend?other=file:c.png")


@pytest.mark.parametrize("hashed", [True, False])
def test_black_pixels_of_a_silhouette_with_or_without_its_hash(folder: Path, hashed: bool) -> None:
    plane = np.where(np.arange(64).reshape(8, 8) % 3, 255, 0).astype(np.uint8)
    Image.fromarray(plane).save(folder / "s.png")
    digest = hashlib.sha256((folder / "s.png").read_bytes()).hexdigest()[:8]
    recipe = "silhouette?mask=black:s.png" + (f"@{digest}" if hashed else "")
    assert np.array_equal(followed(folder, recipe)[..., 0], plane)
    with pytest.raises(Unreadable, match="has changed since the set was read"):
        followed(folder, "silhouette?mask=black:s.png@0000")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("contrst?level=1", "unknown cue 'contrst'. Did you mean 'contrast'"),
        ("contrast?lvel=1", "unknown option of cue 'contrast': 'lvel'. Did you mean 'level'"),
        ("contrast?level=dark", "level='dark': expected a number"),
        ("square?size=big", "option of step 'square': size='big': expected a whole number"),
        ("composite?alpha=1", "cue 'composite' needs mask"),
        ("contrast?level=file:a.png", "expected a number"),
    ],
)
def test_a_wrong_recipe_says_what_is_accepted(folder: Path, recipe: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        followed(folder, recipe)
    with pytest.raises(UserError, match=message):
        check_recipe(recipe)


def test_a_cue_that_refuses_an_image_is_named_with_the_stimulus(folder: Path) -> None:
    with pytest.raises(UserError, match="stimulus 'a': cue 'contrast': level is 3"):
        followed(folder, "contrast?level=3")


def test_a_good_recipe_is_checked_without_reading_a_file() -> None:
    check_recipe("")
    check_recipe("square?size=224;composite?mask=black:nowhere.png@0&alpha=0.2;blend?other=file:no.png")
    check_recipe("texture?name=striped;contrast", source=True)
    with pytest.raises(UserError, match="unknown source"):
        check_recipe("contrast", source=True)


def test_cues_of_a_file_and_of_a_plugin_are_followed_in_worker_processes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = folder / "lighter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lighter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cuebench.cues]\nlighten = their_cues:lighten\n")
    (folder / "their_cues.py").write_text(CUE)
    (folder / "their_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv(registry.ALLOW_CODE, str(folder / "mine.py"))
    import their_work  # type: ignore[import-not-found]

    expected = np.rint((noise(8, 8, 3) / 255 + 0.25 * (1 - noise(8, 8, 3) / 255)) * 255)
    names = (f"python:{folder / 'mine.py'}:lighten", "lighten")
    with ProcessPool(1) as pool:
        for name in names:
            stimulus = Stimulus("a", "a.png", recipe=f"{name}?by=0.25", seed=3)
            pixels = pool.submit(their_work.shown, (folder, stimulus)).result(60)
            assert np.abs(pixels.astype(float) - expected).max() <= 1
            broken = pool.submit(their_work.shown, (folder, replace(stimulus, recipe=f"{name}?by=2")))
            with pytest.raises(UserError, match=r"stimulus 'a': cue '\S*lighten' failed: ArithmeticError: too light"):
                broken.result(60)


def test_a_recipe_runs_no_file_that_the_user_has_not_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(registry.ALLOW_CODE, raising=False)
    file, ran = folder / "theirs.py", folder / "ran"
    file.write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n{CUE}")
    image = decode(folder, Stimulus("a", "a.png"))
    recipes = (
        f"python:{file}:lighten?by=0.25",
        f"chain?cues=python%3A{file}:lighten",
        f'chain?cues=["\\u0070ython:{file}:lighten"]',
        f"contrast?level=0.5;python:{file}:lighten?by=0.25",
    )
    for recipe in recipes:
        with pytest.raises(UserError) as refused:
            render(folder, image, Stimulus("a", "a.png", recipe=recipe))
        assert f"names the Python file {file}" in str(refused.value)
        assert f"--allow-code {file}" in refused.value.hint
    (folder / "table.csv").write_text(f"path,recipe\na.png,python:{file}:lighten?by=0.25\n")
    with pytest.raises(UserError, match="data runs no code"):
        readers.get("csv_manifest").read(folder / "table.csv")
    assert not ran.exists()
    cb.allow_code(file)
    for recipe in recipes[::3]:
        render(folder, image, Stimulus("a", "a.png", recipe=recipe))
    assert len(readers.get("csv_manifest").read(folder / "table.csv")) == 1
    assert ran.exists()
