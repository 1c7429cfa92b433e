"""Open pictures that somebody else wrote: known formats only, regular files only, a bounded number of pixels.

Pillow guesses the format from the contents, so a file ``x.png`` can be PostScript and start Ghostscript. Every picture
is opened here, with the formats of this list and no others.

A picture that some programs show otherwise than others is not opened: one with several frames, of which a browser shows
all and a model one, and one that is stored turned (its EXIF orientation is not 1), which viewers turn and models are
shown as it is stored. Whether a mask, or people's answers, belong to the turned picture cannot be known. TIFF, which
browsers do not show, is turned by Pillow itself.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from cuebench.errors import UserError
from cuebench.reading import file_kind_problem, read_bytes
from cuebench.stimuli._depth import Tiles, reduced_to_black
from cuebench.stimuli._rgb import to_rgb

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""Formats of Pillow that are opened; whatever the name of a file says, its contents must be one of them."""
MOST_PIXELS = 89_478_485
"""Most pixels of a picture, Pillow's own limit: 256 MiB in red, green and blue."""
_ORIENTATION, _AS_STORED = 0x0112, 1
_INTEGERS = {3: "H", 4: "I"}
"""Types of EXIF → integers of 16 and of 32 bits."""
_UPRIGHT = "from PIL import Image as I, ImageOps as O; O.exif_transpose(I.open('IN')).save('OUT.png')"


class UnreadablePicture(UserError):
    """The contents of a file are no picture that can be shown."""


def open_picture(data: bytes, name: str) -> Image.Image:
    """Return a picture as it is stored, decoded, from the bytes of its file; see above for what everybody sees alike.

    Raises
    ------
    UnreadablePicture
        It is damaged, has too many pixels, is of another format, would be shown as black, has several frames, or is
        stored turned.
    """
    image = _opened(io.BytesIO(data), name)
    tiles = Tiles.of(image)
    try:
        # Before it is loaded, as counting goes to another frame. Behind a picture in MPO there are aids (its depth,
        # its highlights, a smaller one) that no program shows.
        frames = image.n_frames if image.format != "MPO" and getattr(image, "is_animated", False) else 1  # type: ignore[attr-defined]
        image.load()
        black = reduced_to_black(data, image, tiles)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged files make Pillow's many decoders raise anything
        raise UnreadablePicture(f"{name}: cannot be decoded ({_why(error)})") from None
    if image.mode in ("P", "PA") and image.palette is None:  # Pillow would show it as black
        raise UnreadablePicture(f"{name}: cannot be decoded (its palette is missing)")
    if black:
        raise UnreadablePicture(f"{name}: cannot be decoded ({black})")
    if frames > 1:
        problem = f"has {frames} frames: people would be shown all of them, models one; save one of them alone"
        raise UnreadablePicture(f"{name}: {problem}")
    if (orientation := _orientation(image.info.get("exif"))) != _AS_STORED:
        problem = f"is stored turned (EXIF orientation {orientation}), some would see it upright and others not"
        raise UnreadablePicture(f"{name}: {problem}; save it upright", f'python -c "{_UPRIGHT}"')
    return image


def _orientation(exif: object) -> int:
    """Return how viewers turn a picture, from its EXIF data; 1 where these are damaged, as viewers do."""
    data = exif.removeprefix(b"Exif\0\0") if isinstance(exif, bytes) else b""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None:
        return _AS_STORED
    try:
        (start,) = struct.unpack_from(f"{order}I", data, 4)
        (count,) = struct.unpack_from(f"{order}H", data, start)
        for place in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(f"{order}HH", data, place)
            if tag == _ORIENTATION and kind in _INTEGERS:
                value = int(struct.unpack_from(order + _INTEGERS[kind], data, place + 8)[0])
                return value if 1 < value <= 8 else _AS_STORED
    except struct.error:
        pass
    return _AS_STORED


def read_picture(path: Path, sha256: str = "") -> Image.Image:
    """Read and decode a picture.

    Parameters
    ----------
    path : Path
        A regular file.
    sha256 : str
        What its hash must be, or how it begins; empty: not known.

    Raises
    ------
    UserError
        The file is missing, is no regular file, or is not the one that was hashed.
    UnreadablePicture
        Its contents cannot be shown.
    """
    data = read_bytes(path)
    if sha256 and not hashlib.sha256(data).hexdigest().startswith(sha256):
        raise UserError(f"{path} has changed since it was hashed", "run the same command again")
    return open_picture(data, path.name)


def read_rgb(path: Path, sha256: str = "") -> Image.Image:
    """Read a picture as models are shown it: red, green and blue of eight bits, transparent parts on white.

    Raises
    ------
    UserError, UnreadablePicture
        As `read_picture`; and for deep pixels whose range is not known.
    """
    return as_rgb(read_picture(path, sha256), path.name)


def as_rgb(image: Image.Image, name: str) -> Image.Image:
    """Return a loaded picture as models are shown it; see `read_rgb`."""
    try:
        return to_rgb(image)
    except ValueError as error:
        raise UnreadablePicture(f"{name}: cannot be decoded ({error})") from None


def header(path: Path) -> tuple[str, int, int]:
    """Return mode, width and height from the header of a file, without decoding it.

    Raises
    ------
    UnreadablePicture
        There is no header that can be read.
    """
    if problem := file_kind_problem(path):
        raise UnreadablePicture(f"{path.name}: {problem}")
    try:
        with path.open("rb") as file:
            image = _opened(file, path.name)
            return str(image.mode), image.width, image.height
    except OSError as error:
        raise UnreadablePicture(f"{path.name}: cannot be read ({error.strerror or error})") from None


def size_in_header(beginning: bytes, path: Path) -> tuple[int, int]:
    """Return width and height of a picture from the first bytes of its file; what is unusual is left to Pillow.

    Raises
    ------
    UnreadablePicture
        There is no header that can be read.
    """
    size = _jpeg_size(beginning) if beginning[:2] == b"\xff\xd8" else _png_size(beginning)
    return size if size is not None else header(path)[1:]


def _png_size(data: bytes) -> tuple[int, int] | None:
    if data[:16] != b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" or len(data) < 33:
        return None
    if zlib.crc32(data[12:29]) != int.from_bytes(data[29:33], "big"):
        return None
    return _plausible(*struct.unpack(">II", data[16:24]))


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Walk over the segments of a JPEG file, up to its pixels, to the one with its size; None for anything unusual."""
    size, place = None, 2
    while place + 9 < len(data):
        mark, kind, length = data[place], data[place + 1], int.from_bytes(data[place + 2 : place + 4], "big")
        if mark != 0xFF or kind in (0x00, 0x01, 0xFF) or 0xD0 <= kind <= 0xD9 or length < 2:
            return None
        if kind == 0xDA:
            return size
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            bits, height, width, channels = struct.unpack(">BHHB", data[place + 4 : place + 10])
            if size is not None or kind > 0xC2 or bits != 8 or channels not in (1, 3, 4):
                return None  # of several sizes decoders take the last one
            size = _plausible(width, height)
        place += 2 + length
    return None


def _plausible(width: int, height: int) -> tuple[int, int] | None:
    return (width, height) if width and height and width * height <= MOST_PIXELS else None


def _opened(file: io.BufferedReader | io.BytesIO, name: str) -> Image.Image:
    try:
        image = Image.open(file, formats=FORMATS)
    except MemoryError:
        raise
    except UnidentifiedImageError:
        formats = ", ".join(FORMATS)
        raise UnreadablePicture(f"{name}: cannot be decoded (no picture of a known format: {formats})") from None
    except Image.DecompressionBombError as error:
        raise UnreadablePicture(f"{name}: has too many pixels ({error})") from None
    except Exception as error:  # noqa: BLE001 - as above
        raise UnreadablePicture(f"{name}: cannot be decoded ({_why(error)})") from None
    if image.width * image.height > MOST_PIXELS:
        size = f"{image.width:,} × {image.height:,}"
        raise UnreadablePicture(f"{name}: has {size} pixels; at most {MOST_PIXELS:,} are decoded")
    return image


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(' <_io')[0]}".removesuffix(": ")
