"""What a reader under attack is, and small valid files to start from."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import checksums  # type: ignore[import-not-found]
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from cuebench.files import SEAL


@dataclass(frozen=True)
class Reader:
    """A reader under attack: what it does with bytes, valid examples, the kind of text it reads, its checksums."""

    read: Callable[[bytes, Path], object]
    examples: tuple[bytes, ...] | Callable[[], tuple[bytes, ...]]
    """A function where making them takes long."""
    kind: str = "bytes"
    seal: Callable[[bytes], bytes] | None = None
    """Computes the checksums of changed bytes anew (``checksums.py``)."""

    @cached_property
    def seeds(self) -> tuple[bytes, ...]:
        """Valid files, or nearly: what the attack begins with."""
        return self.examples() if callable(self.examples) else self.examples


_BY_KIND = {
    "bytes": "pictures", "csv": "CSV", "http": "HTTP", "json": "JSON", "lines": "JSON", "parquet": "Parquet",
    "text": "words", "toml": "TOML", "zip": "weights",
}  # fmt: skip
_BY_NAME = {
    "archive": "archives", "board_archive": "archives", "control_weights": "weights", "onnx_files": "weights",
    "weights_safetensors": "weights",
}  # fmt: skip


def format_of(name: str, reader: Reader) -> str:
    """Return the format that a reader reads: those of one format share the code that takes bytes apart."""
    return _BY_NAME.get(name) or _BY_KIND[reader.kind]


def file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes that are written to a file of that name."""

    def of_bytes(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return of_bytes


def text(read: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes that are words of a command line."""
    return lambda data, folder: read(data.decode("utf-8", "surrogateescape"))


def picture(form: str, mode: str = "RGB", **options: Any) -> bytes:
    """Return a small picture."""
    pixels = np.random.default_rng(0).integers(0, 256, (6, 5, 3)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


def archive(form: str) -> bytes:
    """Return a small archive."""
    buffer = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("cat/1.png", b"data" * 20)
            packed.writestr("dog/", b"")
    else:
        with tarfile.open(fileobj=buffer, mode=f"w:{form}") as packed:
            info = tarfile.TarInfo("cat/1.png")
            info.size = 80
            packed.addfile(info, io.BytesIO(b"data" * 20))
    return buffer.getvalue()


def parquet(**columns: list[Any]) -> bytes:
    """Return a small Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


def unchecked(data: bytes) -> bytes:
    """Return the Parquet file without checksums of its pages and packing, which hide what decoders do with changes."""
    table = pq.read_table(pa.BufferReader(data))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    plain = bytes(sink.getvalue().to_pybytes())
    footer = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    return bytes(checksums.parquet(plain[:footer] + SEAL + bytes(32) + plain[footer:]))
