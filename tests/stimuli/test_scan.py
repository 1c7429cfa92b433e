"""The size of a picture from the first bytes of its file is what Pillow says; many files are hashed in processes."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.processes import ProcessPool
from cuebench.stimuli import hashing
from cuebench.stimuli.image_files import size_in_header
from cuebench.stimuli.readers.scan import READ_AT_ONCE, image_facts

IMAGE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8))
FORMS = {
    "baseline.jpg": (IMAGE, {}),
    "progressive.jpg": (IMAGE, {"progressive": True}),
    "grey.jpg": (IMAGE.convert("L"), {}),
    "cmyk.jpg": (IMAGE.convert("CMYK"), {}),
    "long_comment.jpg": (IMAGE, {"comment": b"x" * 60_000}),
    "profile.jpg": (IMAGE, {"icc_profile": b"p" * 200_000}),
    "plain.png": (IMAGE, {}),
    "palette.png": (IMAGE.convert("P"), {}),
    "deep.png": (Image.fromarray(np.zeros((37, 53), np.uint16)), {}),
    "other.webp": (IMAGE, {}),
    "other.bmp": (IMAGE, {}),
    "other.gif": (IMAGE.convert("P"), {}),
}


def encoded(name: str) -> bytes:
    image, options = FORMS[name]
    buffer = io.BytesIO()
    image.save(buffer, {"jpg": "JPEG"}.get(name.rpartition(".")[2], name.rpartition(".")[2]), **options)
    return buffer.getvalue()


@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_its_size(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(encoded(name))
    facts = image_facts(path)
    assert facts == (hashlib.sha256(path.read_bytes()).hexdigest(), 53, 37)


@pytest.mark.parametrize("name", ["baseline.jpg", "long_comment.jpg", "plain.png"])
def test_damaged_headers_never_give_another_size_than_pillow(tmp_path: Path, name: str) -> None:
    data, path = encoded(name), tmp_path / name
    for place in [*range(0, min(len(data), 200)), *range(200, len(data), 997)]:
        for bit in (1, 128):
            changed = bytearray(data)
            changed[place] ^= bit
            path.write_bytes(changed)
            try:
                expected = Image.open(path, formats=["JPEG", "PNG"]).size
            except Exception:
                expected = (0, 0)
            facts = image_facts(path)
            # Where Pillow refuses a header, the file cannot be decoded: its size is of no use to anybody.
            assert expected in ((0, 0), facts[1:]), (place, bit)


def test_large_files_are_hashed_whole(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(encoded("plain.png") + b"z" * (READ_AT_ONCE + 12_345))
    assert image_facts(path) == (hashlib.sha256(path.read_bytes()).hexdigest(), 53, 37)
    assert size_in_header(path.read_bytes()[:40], path) == (53, 37)


def test_processes_hash_what_threads_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "MANY", 3)
    monkeypatch.setattr(hashing, "TASK", 2)
    paths = [tmp_path / f"{i}.bin" for i in range(7)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 100)
    threads = hashing.hash_files(paths)
    with ProcessPool(2) as pool, hashing.hashing_in(pool):
        assert hashing.hash_files(paths) == threads
        paths[3].unlink()
        paths[5].unlink()
        with pytest.raises(UserError, match=r"3\.bin[\s\S]*5\.bin"):
            hashing.hash_files(paths)
