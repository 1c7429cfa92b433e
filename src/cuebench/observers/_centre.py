"""Centre crops that round down.

Where the border is an odd number of pixels, the middle lies between two. torchvision (and so timm and open_clip) rounds
half to even, which ``Preprocess`` follows; transformers, and whoever writes ``(width - size) // 2``, rounds down. One
pixel moves a top-1 accuracy by some tenths of a percent, so a model gets the one it is published with.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from PIL import Image

from cuebench.observers.preprocess import _RESAMPLING, Geometry, Preprocess, _resized


@dataclass(frozen=True)
class DownGeometry(Geometry):
    """A ``Geometry`` whose centre crop rounds down."""

    def apply(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the image as a contiguous uint8 array height × width × 3."""
        image = image if image.mode == "RGB" else image.convert("RGB")
        image = _resized(image, self.resize, _RESAMPLING[self.interpolation])
        if self.crop:
            height, width = self.size
            left, top = (image.width - width) // 2, (image.height - height) // 2
            image = image.crop((left, top, left + width, top + height))
        return Geometry(self.size, None, self.crop, self.interpolation).apply(image)


@dataclass(frozen=True)
class DownPreprocess(Preprocess):
    """A ``Preprocess`` whose centre crop rounds down; ``centre`` is part of its fingerprint."""

    centre: str = "down"

    @property
    def geometry(self) -> Geometry:
        """The half that is done once for all models that share it."""
        resize = self.resize if self.resize is not None else min(self.hw)
        # Without a crop there is no centre, and models that share the rest share the decoded image.
        kind = DownGeometry if self.crop else Geometry
        return kind(self.hw, resize, self.crop, self.interpolation)


def rounding_down(preprocess: Preprocess) -> Preprocess:
    """Return the same preprocessing with the centre rounded down."""
    return DownPreprocess(**_values(preprocess))


def rounding_even(preprocess: Preprocess) -> Preprocess:
    """Return the same preprocessing with the centre rounded half to even."""
    return Preprocess(**_values(preprocess))


def imagenet_usual(size: tuple[int, int] = (224, 224), source: str = "ImageNet's usual") -> Preprocess:
    """Return what most ImageNet models are published with: shorter side to 8/7 of the size, centre crop, mean and std.

    For files that carry weights but do not say how their images are to be prepared.
    """
    return DownPreprocess(size=size, resize=round(min(size) * 8 / 7), source=source)


def _values(preprocess: Preprocess) -> dict[str, Any]:
    return {f.name: getattr(preprocess, f.name) for f in fields(Preprocess)}
