"""From a file to the picture that is shown: every kind of pixel, every kind of failure."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.stimuli.render import Unreadable, decode
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
    def broken(path: object) -> None:
        raise error

    monkeypatch.setattr(Image, "open", broken)
    with pytest.raises(Unreadable, match=type(error).__name__) as caught:
        shown(tmp_path / "a.png")
    assert caught.value.transient is False


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE])
def test_a_failing_disk_may_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def broken(path: object) -> None:
        raise OSError(number, "the disk hiccups")

    monkeypatch.setattr(Image, "open", broken)
    with pytest.raises(Unreadable, match=r"cannot be read .*hiccups") as caught:
        shown(tmp_path / "a.png")
    assert caught.value.transient is True
    assert pickle.loads(pickle.dumps(caught.value)).transient is True


def test_a_missing_file_may_come_back(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="the file is missing") as caught:
        shown(tmp_path / "a.png")
    assert caught.value.transient is True
