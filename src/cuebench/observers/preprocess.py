"""How an image becomes an observer's input: printable, hashable, stored with every response.

Preprocessing has two halves. The *geometry* (resize, crop) turns a decoded image into a uint8 array of the input size;
it is done once in a worker process for all models that share it. The *normalisation* (scale, mean, std) is cheap and is
done on the model's device. ``apply`` does both, for one image.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from PIL import Image

from cuebench.errors import UserError

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]
_RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Geometry:
    """Resize and crop, on the uint8 image.

    Parameters
    ----------
    size : (height, width)
        What the observer gets.
    resize : int or (height, width) or None
        An int scales the *shorter side* to it and keeps the aspect ratio; a pair scales to exactly that; None leaves
        the image as it is.
    crop : bool
        Cut the centre of ``size`` (padding with black where the image is smaller).
    interpolation : str
        Pillow's filter of that name, antialiased when shrinking.
    """

    size: tuple[int, int]
    resize: int | tuple[int, int] | None = None
    crop: bool = True
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        if self.interpolation not in _RESAMPLING:
            raise UserError(f"interpolation {self.interpolation!r}; one of {', '.join(_RESAMPLING)}")

    def apply(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the image as a contiguous uint8 array height × width × 3."""
        image = image if image.mode == "RGB" else image.convert("RGB")
        image = _resized(image, self.resize, _RESAMPLING[self.interpolation])
        if self.crop and (image.height, image.width) != self.size:
            image = _centre(image, *self.size)
        if (image.height, image.width) != self.size:
            raise UserError(
                f"an image of {image.width}×{image.height} does not fit the input {self.size[1]}×{self.size[0]}",
                "set Preprocess(resize=..., crop=True), or make the stimuli of that size",
            )
        return np.ascontiguousarray(image)


@dataclass(frozen=True)
class Preprocess:
    """Everything done to an image before a model sees it.

    pixel = (value · scale − mean) / std for each channel, after the geometry.

    Parameters
    ----------
    size : int or (height, width)
        Input size of the model.
    resize : int or (height, width), optional
        See ``Geometry.resize``. Default: the size itself.
    crop : bool
        Centre crop to ``size`` after resizing.
    interpolation : str
        Pillow filter.
    mean, std : three floats
        In units of the scaled pixel. Default: ImageNet's.
    scale : float
        1/255 for values in [0, 1]; 1 for [0, 255].
    source : str
        Where these values come from (the weights' own config, the user …), for the record.
    """

    size: int | tuple[int, int] = 224
    resize: int | tuple[int, int] | None = None
    crop: bool = True
    interpolation: Interpolation = "bilinear"
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    scale: float = 1 / 255
    source: str = "user"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _triple("mean", self.mean))
        object.__setattr__(self, "std", _triple("std", self.std))
        if not all(s > 0 for s in self.std):
            raise UserError(f"Preprocess std must be positive; got {self.std}")
        _ = self.geometry  # fail where the mistake is made, not in a worker process

    @property
    def hw(self) -> tuple[int, int]:
        """Input height and width."""
        return (self.size, self.size) if isinstance(self.size, int) else (self.size[0], self.size[1])

    @property
    def geometry(self) -> Geometry:
        """The half that is done once for all models that share it."""
        resize = self.resize if self.resize is not None else min(self.hw)
        return Geometry(self.hw, resize, self.crop, self.interpolation)

    def whole_image(self) -> Preprocess:
        """Return the same normalisation with the *whole* stimulus scaled to the input size, nothing cropped.

        For stimuli that already have the input size this touches no pixel: what cue-conflict images need, because
        resize-256-and-crop changes the shape bias.
        """
        return replace(self, resize=self.hw, crop=False)

    def normalise(self, images: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Turn uint8 N×H×W×3 into float32 N×3×H×W."""
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        scaled = (images.astype(np.float32) * np.float32(self.scale) - mean) / std
        return np.ascontiguousarray(np.moveaxis(scaled, -1, 1), dtype=np.float32)

    def apply(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return one image as the model's input, float32 3×H×W."""
        return self.normalise(self.geometry.apply(image)[None])[0]

    def describe(self) -> dict[str, Any]:
        """Return a JSON-ready record without the provenance, which does not change a pixel."""
        record = asdict(self)
        record.pop("source")
        return record

    @property
    def fingerprint(self) -> str:
        """Hash of everything that changes a pixel."""
        return hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        g = self.geometry
        resize = "as is" if g.resize is None else f"resize {g.resize}"
        crop = f"centre crop {g.size[0]}×{g.size[1]}" if g.crop else "no crop"
        return f"{resize} ({g.interpolation}) → {crop} → (x·{self.scale:.5g} − {self.mean}) / {self.std}"


def _resized(image: Image.Image, to: int | tuple[int, int] | None, how: Image.Resampling) -> Image.Image:
    if to is None:
        return image
    width, height = image.size
    if isinstance(to, int):
        # The rule of torchvision: the longer side is truncated, not rounded.
        short = min(width, height)
        goal = (to * width // short, to * height // short)
    else:
        goal = (to[1], to[0])
    return image if goal == image.size else image.resize(goal, how)


def _centre(image: Image.Image, height: int, width: int) -> Image.Image:
    # Rounded half to even, as torchvision's center_crop does; a smaller image is padded with black by Pillow's crop.
    left = round((image.width - width) / 2)
    top = round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def _triple(name: str, value: Any) -> tuple[float, float, float]:
    numbers = tuple(float(v) for v in value)
    if len(numbers) != 3:
        raise UserError(f"Preprocess {name} needs three numbers, one for each channel; got {value!r}")
    return numbers
