"""Preprocessing by a function of the user's, from a picture to the numbers that a model takes.

What such a function does to the geometry of a picture cannot be known. So the engine hands on every picture with its
own pixels, in the corner of a frame whose last row says how large it is; the function is called where the model is
asked. No view of a protocol can change what it does, and the notes of every score say so.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from cuebench.arrays import Pixels
from cuebench.errors import UserError
from cuebench.observers.preprocess import Geometry, Inside, Preprocess
from cuebench.source_code import unreadable_note

LARGEST = 512
"""Side of the frame; a larger picture is scaled down to it before the function is called."""


@dataclass(frozen=True)
class OwnSize(Geometry):
    """A picture with its own pixels in the upper left corner; the last row of the frame says its height and width."""

    with_size: bool = True

    def apply(self, image: Image.Image) -> Pixels:
        """Return the frame as a uint8 array height × width × 3."""
        room = Inside((self.size[0] - 1, self.size[1]), None, False, self.interpolation)
        height, width = room.inside((image.height, image.width))
        frame = np.zeros((*self.size, 3), np.uint8)
        frame[:-1] = room.apply(image)
        frame[-1].reshape(-1)[:4] = height >> 8, height & 255, width >> 8, width & 255
        return frame

    def keeps(self, size: tuple[int, int]) -> bool:
        """Tell whether an image of this height and width comes back as it is: never, as its size is added."""
        return False


def picture_in(frame: Pixels) -> Image.Image:
    """Return the picture in a frame; all of it where the last row says no size that fits, as in a blank frame."""
    high, low, wide, narrow = (int(value) for value in frame[-1].reshape(-1)[:4])
    height, width = 256 * high + low, 256 * wide + narrow
    fits = 0 < height < len(frame) and 0 < width <= frame.shape[1]
    return Image.fromarray(np.ascontiguousarray(frame[:height, :width] if fits else frame[:-1]))


@dataclass(frozen=True)
class FunctionPreprocess(Preprocess):
    """What a function does to a picture before a model sees it.

    Parameters
    ----------
    function : callable
        PIL image → 3×H×W, a tensor or an array; the same numbers for the same picture, and one size for all.
    name : str
        What records and notes call it.
    named : str
        What identifies it in the cache; empty: what it holds and the code that it runs.
    """

    size: int | tuple[int, int] = (LARGEST + 1, LARGEST)
    function: Callable[[Any], Any] = field(default=Image.Image.copy, compare=False)
    name: str = ""
    named: str = ""
    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    @property
    def geometry(self) -> Geometry:
        """The half that is done once for all models that share it."""
        return OwnSize(self.hw)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the record of a run says about it."""
        how = f"{self.name} prepares the pictures: its geometry is unknown, and no view of a protocol changes it"
        first = f"{how}; pictures above {LARGEST} pixels are scaled down to that first"
        opaque = [] if self.named else self._hashed()[1]
        return (first, f"{unreadable_note(opaque)}; name it with fingerprint=") if opaque else (first,)

    def normalise(self, images: Pixels) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Turn frames, uint8 N×H×W×3, into float32 N×3×h×w."""
        return np.stack([self.of_picture(picture_in(frame)) for frame in images])

    def of_picture(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return what the function makes of a picture, checked."""
        try:
            made = self.function(image)
            pixels = np.asarray(made.detach().cpu() if hasattr(made, "detach") else made, np.float32)
        except Exception as error:
            what = f"preprocess: {self.name} failed on a picture of {image.width}×{image.height} pixels"
            raise UserError(f"{what}: {type(error).__name__}: {error}", TAKES) from error
        if pixels.ndim != 3 or len(pixels) != 3 or not np.isfinite(pixels).all():
            raise UserError(f"preprocess: {self.name} made numbers of shape {pixels.shape} of a picture", TAKES)
        return np.ascontiguousarray(pixels)

    def describe(self) -> dict[str, Any]:
        """Return a JSON-ready record of what decides a pixel."""
        return {"function": self.name, "identity": self.named or self._identity(), "frame": list(self.hw)}

    def _identity(self) -> str:
        digest, opaque = self._hashed()
        return digest + self.token if opaque else digest

    def _hashed(self) -> tuple[str, list[str]]:
        from cuebench.observers.torch.fingerprint import hash_function

        return hash_function(self.function)

    def __str__(self) -> str:
        return f"{self.name}, a function of the user's (geometry unknown)"


TAKES = "a function for preprocess= takes a PIL image in RGB and returns finite numbers 3×height×width"


def by_function(function: Callable[[Any], Any], named: str = "") -> FunctionPreprocess:
    """Return the preprocessing by a function, after two pictures have shown that it can be used.

    Raises
    ------
    UserError
        Where it fails, gives other numbers each time (as for training), or sizes that differ from picture to picture.
    """
    name = getattr(function, "__name__", None) or type(function).__name__
    made = FunctionPreprocess(function=function, name=name, named=named, source="a function")
    rng = np.random.default_rng(0)
    first, second = (Image.fromarray(rng.integers(0, 256, (*s, 3), dtype=np.uint8)) for s in ((256, 320), (300, 240)))
    inputs = [made.of_picture(image) for image in (first, first, second)]
    if inputs[0].shape != inputs[1].shape or not np.array_equal(inputs[0], inputs[1]):
        raise UserError(f"preprocess: {name} makes other numbers of the same picture each time", "pass that of a test")
    if inputs[0].shape != inputs[2].shape:
        sizes = " and ".join(f"{x.shape[2]}×{x.shape[1]}" for x in (inputs[0], inputs[2]))
        raise UserError(f"preprocess: {name} makes inputs of different sizes, {sizes}", "let it crop or resize to one")
    return made
