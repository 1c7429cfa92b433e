"""How an image becomes an observer's input: printable, hashable, stored with every response.

Preprocessing has two halves. The *geometry* (resize, crop) turns a decoded image into a uint8 array of the input size;
it is done once in a worker process for all models that share it. The *normalisation* (scale, mean, std) is cheap and is
done on the model's device. ``apply`` does both, for one image.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image

from cuebench.errors import UserError

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]
Centre = Literal["even", "down"]
Fit = Literal["stretch", "pad", "native"]
_RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}
LARGEST_SIDE = 16_384
"""Largest side of an input, in pixels."""
MOST_PIXELS = 1 << 25
"""Most pixels of a picture that is resized as a whole; of a larger one only the part that the crop keeps is made."""
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
    centre : {"even", "down"}
        Where the middle of an odd border lies: rounded half to even as torchvision (and so timm and open_clip) does, or
        down as transformers does. One pixel moves a top-1 accuracy by some tenths of a percent.
    """

    size: tuple[int, int]
    resize: int | tuple[int, int] | None = None
    crop: bool = True
    interpolation: Interpolation = "bilinear"
    centre: Centre = "even"

    def __post_init__(self) -> None:
        if self.centre not in ("even", "down"):
            raise UserError(f"centre {self.centre!r}; one of even, down")
        if self.interpolation not in _RESAMPLING:
            raise UserError(f"interpolation {self.interpolation!r}; one of {', '.join(_RESAMPLING)}")

    def apply(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the image as a contiguous uint8 array height × width × 3."""
        image = image if image.mode == "RGB" else image.convert("RGB")
        goal = _goal(image.size, self.resize)
        if not self.crop and (goal[1], goal[0]) != self.size:
            raise self._does_not_fit(goal)
        if goal[0] * goal[1] > MOST_PIXELS:
            image = _visible_part(image, goal, self)
        elif goal != image.size:
            image = image.resize(goal, _RESAMPLING[self.interpolation])
        if self.crop and (image.height, image.width) != self.size:
            image = _centre(image, *self.size, self.centre)
        return np.ascontiguousarray(image)

    def keeps(self, size: tuple[int, int]) -> bool:
        """Tell whether an image of this height and width comes back as it is."""
        return size == self.size and _goal((size[1], size[0]), self.resize) == (size[1], size[0])

    def _does_not_fit(self, goal: tuple[int, int]) -> UserError:
        return UserError(
            f"an image of {goal[0]}×{goal[1]} does not fit the input {self.size[1]}×{self.size[0]}",
            "set Preprocess(resize=..., crop=True), or make the stimuli of that size",
        )


@dataclass(frozen=True)
class Inside(Geometry):
    """The whole image with its proportions in the upper left corner of ``size``, black elsewhere.

    An observer that takes images of any size cuts the corner out again (`inside`), so that a set of images of many
    sizes is shown without any being squeezed.

    Parameters
    ----------
    enlarge : bool
        Scale every image until it touches the frame. False: only those that are larger than the frame are scaled; all
        others keep their own pixels.
    """

    enlarge: bool = False

    def inside(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return height and width in the frame of an image of this height and width."""
        factor = min(frame / side for frame, side in zip(self.size, size))
        if factor >= 1 and not self.enlarge:
            return size
        height, width = (max(1, min(frame, round(side * factor))) for frame, side in zip(self.size, size))
        return height, width

    def apply(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the frame as a uint8 array height × width × 3."""
        height, width = self.inside((image.height, image.width))
        if (height, width) != (image.height, image.width):
            image = image.convert("RGB").resize((width, height), _RESAMPLING[self.interpolation])
        frame = np.zeros((*self.size, 3), np.uint8)
        frame[:height, :width] = np.asarray(image.convert("RGB"))
        return frame

    def keeps(self, size: tuple[int, int]) -> bool:
        """Tell whether an image of this height and width comes back as it is."""
        return size == self.size


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
    centre : {"even", "down"}
        See ``Geometry.centre``.
    fit : {"stretch", "pad", "native"}
        Of segmentation models, how a whole image comes into ``size``: scaled to it, scaled with its proportions, or
        with its own pixels (only a larger one is scaled). With the last two, the model is shown each image at its own
        size, without the border.
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
    centre: Centre = "even"
    fit: Fit = "stretch"
    source: str = "user"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _pixels("size", self.size))
        if self.resize is not None:
            object.__setattr__(self, "resize", _pixels("resize", self.resize))
        object.__setattr__(self, "scale", _number("scale", self.scale))
        if not isinstance(self.crop, (bool, np.bool_)):
            raise UserError(f"Preprocess crop is {self.crop!r}", "True: cut the centre of size; False: do not")
        object.__setattr__(self, "crop", bool(self.crop))
        object.__setattr__(self, "mean", _triple("mean", self.mean))
        object.__setattr__(self, "std", _triple("std", self.std))
        if not all(s > 0 for s in self.std):
            raise UserError(f"Preprocess std must be positive; got {self.std}")
        if self.fit not in get_args(Fit):
            raise UserError(f"Preprocess fit is {self.fit!r}; one of {', '.join(get_args(Fit))}")
        _ = self.geometry  # fail where the mistake is made, not in a worker process

    @property
    def hw(self) -> tuple[int, int]:
        """Input height and width."""
        return (self.size, self.size) if isinstance(self.size, int) else (self.size[0], self.size[1])

    @property
    def geometry(self) -> Geometry:
        """The half that is done once for all models that share it."""
        if self.fit != "stretch":
            return Inside(self.hw, self.hw, False, self.interpolation, enlarge=self.fit == "pad")
        resize = self.resize if self.resize is not None else min(self.hw)
        # Without a crop there is no centre, and models that share the rest share the decoded image.
        return Geometry(self.hw, resize, self.crop, self.interpolation, self.centre if self.crop else "even")

    @property
    def notes(self) -> tuple[str, ...]:
        """What the record of a run says about it, beside itself."""
        return ()

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
        if self.fit == "stretch":  # answers that were stored before there was another way keep their key
            record.pop("fit")
        return record

    @property
    def fingerprint(self) -> str:
        """Hash of everything that changes a pixel."""
        return hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        g = self.geometry
        if isinstance(g, Inside):
            how = "own pixels" if self.fit == "native" else "proportions kept"
            return f"{how}, at most {g.size[0]}×{g.size[1]} → (x·{self.scale:.5g} − {self.mean}) / {self.std}"
        resize = "as is" if g.resize is None else f"resize {g.resize}"
        rounded = " (rounded down)" if g.centre == "down" else ""
        crop = f"centre crop {g.size[0]}×{g.size[1]}{rounded}" if g.crop else "no crop"
        return f"{resize} ({g.interpolation}) → {crop} → (x·{self.scale:.5g} − {self.mean}) / {self.std}"


def _goal(size: tuple[int, int], to: int | tuple[int, int] | None) -> tuple[int, int]:
    """Return the width and height that an image is resized to."""
    if to is None:
        return size
    if isinstance(to, tuple):
        return to[1], to[0]
    # The rule of torchvision: the longer side is truncated, not rounded.
    short = min(size)
    return to * size[0] // short, to * size[1] // short


def _visible_part(image: Image.Image, goal: tuple[int, int], geometry: Geometry) -> Image.Image:
    """Resize only what the crop keeps: one row of 20,000 pixels, scaled as a whole, would need gigabytes."""
    visible = (min(goal[0], geometry.size[1]), min(goal[1], geometry.size[0]))
    box: list[float] = []
    for wanted, whole in zip(visible, goal):
        border = whole - wanted
        box.append(round(border / 2) if geometry.centre == "even" else border // 2)
    across, down = image.width / goal[0], image.height / goal[1]
    left, top = box[0] * across, box[1] * down
    right, bottom = min(left + visible[0] * across, image.width), min(top + visible[1] * down, image.height)
    return image.resize(visible, _RESAMPLING[geometry.interpolation], box=(left, top, right, bottom))


def _centre(image: Image.Image, height: int, width: int, rule: Centre) -> Image.Image:
    # Python's round is torchvision's: half to even. A smaller image is padded with black by Pillow's crop.
    across, down = image.width - width, image.height - height
    left, top = (round(across / 2), round(down / 2)) if rule == "even" else (across // 2, down // 2)
    return image.crop((left, top, left + width, top + height))


def imagenet_usual(size: tuple[int, int] = (224, 224), source: str = "ImageNet's usual") -> Preprocess:
    """Return what most ImageNet models are published with: shorter side to 8/7 of the size, centre crop, mean and std.

    For files that carry weights but do not say how their images are to be prepared.
    """
    return Preprocess(size=size, resize=round(min(size) * 8 / 7), centre="down", source=source)


def _pixels(name: str, value: Any) -> int | tuple[int, int]:
    """Return sizes as Python's own whole numbers: those of NumPy are equal, but cannot be written to a record."""
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2
    sides = tuple(value) if is_pair else (value, value)
    if not all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) and 0 < s <= LARGEST_SIDE for s in sides):
        hint = f"pixels: a whole number from 1 to {LARGEST_SIDE:,}, or (height, width)"
        raise UserError(f"Preprocess {name} is {value!r}", hint)
    return (int(sides[0]), int(sides[1])) if is_pair else int(sides[0])


def _number(name: str, value: Any) -> float:
    try:
        # Python's own numbers stay as they are, because an int and a float differ in the record.
        number = value if type(value) in (int, float) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"Preprocess {name} is {value!r}", "give a finite number")
    return number


def _triple(name: str, value: Any) -> tuple[float, float, float]:
    try:
        numbers = tuple(_number(name, v) for v in value)
    except TypeError:
        numbers = ()
    if len(numbers) != 3:
        raise UserError(f"Preprocess {name} needs three numbers, one for each channel; got {value!r}")
    return numbers
