"""Open pictures that somebody else wrote: known formats only, regular files only, a bounded number of pixels.

Pillow guesses the format from the contents, so a file ``x.png`` can be PostScript and start Ghostscript. Every picture
is opened here, with the formats of this list and no others.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from cuebench.errors import UserError
from cuebench.reading import file_kind_problem, read_bytes

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""Formats of Pillow that are opened; whatever the name of a file says, its contents must be one of them."""
MOST_PIXELS = 89_478_485
"""Most pixels of a picture, Pillow's own limit: 256 MiB in red, green and blue."""


class UnreadablePicture(UserError):
    """The contents of a file are no picture that can be shown."""


def open_picture(data: bytes, name: str) -> Image.Image:
    """Return a picture as it is stored, decoded, from the bytes of its file.

    Raises
    ------
    UnreadablePicture
        It is damaged, has too many pixels, or is of another format.
    """
    image = _opened(io.BytesIO(data), name)
    try:
        image.load()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged files make Pillow's many decoders raise anything
        raise UnreadablePicture(f"{name}: cannot be decoded ({_why(error)})") from None
    return image


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
