"""Decoded pixels on disk: the second model, and the next run, decode nothing.

    CACHE/<decoder and geometry>/<stimuli>.pixels

A file holds the pixels of one shard in one geometry, as they are shown: images one after the other, then a table with
the hash of each, then the length of the table. Its name is the hash of everything that decides a pixel: the stimuli,
the geometry, the code of cues that are made in the stream, the libraries that decode, and the libraries and the CPU
that cues compute with.
Workers read files straight into the memory that they share with the engine, and compare the hash of every image; a
damaged file is deleted and decoded again.

No hash sees everything that decides a pixel, such as a data file that a cue reads. So every run makes a few of the kept
pictures again before it uses any (``kept_pixels.py``), and compares them exactly. Where one differs, or stored answers
were set aside, all that is kept of these stimuli is deleted, in every geometry.

The cache never takes more than its limit: what no run uses any more is deleted for what this run needs, and what does
not fit is decoded every time. Losing it costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import PIL
from PIL import features

from cuebench.arrays import Pixels, instruction_sets
from cuebench.files import make_folder, replacing
from cuebench.observers.preprocess import Geometry
from cuebench.responses.shared_memory import Block, bytes_of
from cuebench.types import Stimulus

SUFFIX = ".pixels"
LAYOUT = 2
_END = 8  # bytes that hold the length of the table
_OF_CUES = (
    "numpy", "scipy", "numba", "scikit-image",
    "opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless",
)  # fmt: skip
"""Distributions that cues compute with."""


class DamagedPixels(ValueError):
    """A file of the cache whose content is not what was written."""


@dataclass(frozen=True)
class Kept:
    """A file of the cache: the hash of each image, and why some have none."""

    path: Path
    hashes: tuple[str, ...]
    unreadable: Mapping[int, str]


# ------------------------------------------------------------------------------------------ in a worker process


@dataclass(frozen=True)
class Reading:
    """Some images of a file of the cache, and where they are to be written."""

    path: str
    first: int
    hashes: tuple[str, ...]
    image_bytes: int
    place: Block | Pixels


def read_kept(task: Reading) -> None:
    """Read images to their place.

    Raises
    ------
    DamagedPixels
        Where they are not what was written.
    """
    memory = bytes_of(task.place) if isinstance(task.place, Block) else task.place
    start = task.first * task.image_bytes
    images = memory.data[start : start + len(task.hashes) * task.image_bytes]
    try:
        with open(task.path, "rb", buffering=0) as file:
            file.seek(start)
            filled = 0
            while filled < len(images) and (count := file.readinto(images[filled:])):
                filled += count
    except OSError as error:
        raise DamagedPixels(f"{task.path}: {error.strerror or error}") from None
    for number, wanted in enumerate(task.hashes):
        if hash_of_image(images[number * task.image_bytes : (number + 1) * task.image_bytes]) != wanted:
            raise DamagedPixels(f"{task.path}: image {task.first + number} is not what was written")


@dataclass(frozen=True)
class Keeping:
    """The pixels of a shard that are to be kept."""

    path: str
    count: int
    image_bytes: int
    place: Block | Pixels
    unreadable: Mapping[int, str]


def keep(task: Keeping) -> None:
    """Write the pixels of a shard, whole or not at all."""
    memory = bytes_of(task.place) if isinstance(task.place, Block) else task.place
    images = memory.data[: task.count * task.image_bytes]
    hashes = [hash_of_image(images[i * task.image_bytes : (i + 1) * task.image_bytes]) for i in range(task.count)]
    table = json.dumps({"hashes": hashes, "unreadable": {str(k): v for k, v in task.unreadable.items()}}).encode()
    path = Path(task.path)
    # Not synced: what a crash tears is found by its hash.
    with replacing(path, sync=False) as temporary, temporary.open("wb") as file:
        file.write(images)
        file.write(table)
        file.write(len(table).to_bytes(_END, "big"))


def hash_of_image(image: memoryview) -> str:
    """Return the hash of the bytes of an image, as the table of a file holds it."""
    return hashlib.blake2b(image, digest_size=16).hexdigest()


# ------------------------------------------------------------------------------------------ in the main process


@dataclass
class PixelCache:
    """A folder of decoded pixels.

    Parameters
    ----------
    folder : Path
        Where; several runs may use it at once.
    most : int
        Bytes that it may take.
    """

    folder: Path
    most: int
    full: bool = False
    """Whether something did not fit."""
    _used: set[Path] = field(default_factory=set)
    _sizes: dict[Path, int] | None = None

    def __post_init__(self) -> None:
        make_folder(self.folder)

    def path(self, stimuli: Sequence[Stimulus], geometry: Geometry, recipes: Mapping[str, str]) -> Path:
        """Return the file for these stimuli in this geometry; ``recipes``: cue → version of its code."""
        libraries = {**_decoder(), **(_libraries() if recipes else {})}
        decides = {"layout": LAYOUT, "decoder": libraries, "geometry": asdict(geometry), "recipes": dict(recipes)}
        place = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]
        return self.folder / place / _name(stimuli)

    def find(self, path: Path, count: int, image_bytes: int) -> Kept | None:
        """Return what is kept of a shard; None where it is not.

        Raises
        ------
        DamagedPixels
            The file is not what was written.
        """
        try:
            with path.open("rb") as file:
                file.seek(-_END, os.SEEK_END)
                length = int.from_bytes(file.read(_END), "big")
                if file.tell() != count * image_bytes + length + _END:
                    raise DamagedPixels(f"{path}: of another length")
                file.seek(count * image_bytes)
                table: dict[str, Any] = json.loads(file.read(length))
            kept = Kept(path, tuple(table["hashes"]), {int(k): str(v) for k, v in table["unreadable"].items()})
            if len(kept.hashes) != count:
                raise DamagedPixels(f"{path}: of another length")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            known = isinstance(error, DamagedPixels)
            raise error if known else DamagedPixels(f"{path}: {type(error).__name__}: {error}") from None
        with suppress(OSError):
            os.utime(path)  # the time of its last use
        self._used.add(path)
        return kept

    def make_room(self, path: Path, size: int) -> bool:
        """Delete what other runs have left, the oldest first, until a file fits; False: it does not."""
        if self._sizes is None:
            self._sizes = {}
            for file in self.folder.glob(f"*/*{SUFFIX}"):
                with suppress(OSError):
                    self._sizes[file] = file.stat().st_size
        total = sum(self._sizes.values())
        if total + size > self.most:
            unused = [file for file in self._sizes if file not in self._used]
            for file in sorted(unused, key=_last_use):
                total -= self._sizes[file]
                self.drop(file)
                if total + size <= self.most:
                    break
        if total + size > self.most:
            self.full = True
            return False
        self._sizes[path] = size
        self._used.add(path)
        return True

    def forget(self, shards: Iterable[Sequence[Stimulus]]) -> int:
        """Delete what is kept of some shards, in every geometry; return how many files that were."""
        names = {_name(stimuli) for stimuli in shards}
        files = [file for file in self.folder.glob(f"*/*{SUFFIX}") if file.name in names]
        for file in files:
            self.drop(file)
        return len(files)

    def drop(self, path: Path) -> None:
        """Delete a file."""
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if self._sizes is not None:
            self._sizes.pop(path, None)


def _name(stimuli: Sequence[Stimulus]) -> str:
    """Return the name of the file of a shard, which is the same in every geometry."""
    return hashlib.sha256("\n".join(s.key for s in stimuli).encode()).hexdigest()[:32] + SUFFIX


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _decoder() -> dict[str, str | None]:
    """Return the versions of what turns a file into pixels."""
    libraries = ("jpg", "libjpeg_turbo", "zlib", "libtiff", "webp")
    return {"pillow": PIL.__version__, **{name: features.version(name) for name in libraries}}


@cache
def _libraries() -> dict[str, str]:
    """Return what cues compute with: the versions of libraries, and the CPU, which moves pixels by a grey level."""
    versions = {"cpu": f"{platform.machine()} {instruction_sets()}"}
    for name in _OF_CUES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
