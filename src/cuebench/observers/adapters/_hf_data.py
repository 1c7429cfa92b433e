"""What a transformers image processor does, as a ``Preprocess``; and a model's classes as a label space."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.timm_data import with_background
from cuebench.observers.verify_preprocess import same_input

BACKEND = "pil"
"""Back end of image processors: torchvision's resizes differently, and transformers picks what is installed."""


def preprocess_of(processor: Any, what: str) -> Preprocess:
    """Translate an image processor and check the translation on test images; what cannot be is refused."""
    size, resize = _sizes(processor, what)
    normalise = getattr(processor, "do_normalize", False)
    ours = Preprocess(
        size=size,
        resize=resize,
        crop=True,
        centre="down",
        interpolation=interpolation_of(processor),
        mean=tuple(processor.image_mean) if normalise else (0.0, 0.0, 0.0),
        std=tuple(processor.image_std) if normalise else (1.0, 1.0, 1.0),
        scale=float(processor.rescale_factor) if getattr(processor, "do_rescale", False) else 1.0,
        source=f"transformers' {type(processor).__name__}",
    )
    return same_input(
        ours, lambda image: np.asarray(processor(images=image, return_tensors="np")["pixel_values"][0]), what
    )


def interpolation_of(processor: Any) -> Any:
    """Return the name of an image processor's filter; bilinear where it names none."""
    resample = getattr(processor, "resample", None)
    return Image.Resampling(Image.Resampling.BILINEAR if resample is None else resample).name.lower()


def _sizes(processor: Any, what: str) -> tuple[int | tuple[int, int], int | tuple[int, int] | None]:
    size, crop = _pair(processor, "size"), _pair(processor, "crop_size")
    short = _get(processor, "size", "shortest_edge")
    if not getattr(processor, "do_resize", True) or not (size or short) or _get(processor, "size", "longest_edge"):
        raise UserError(f"the image processor of {what} has no fixed input size", "models of a fixed size work")
    if getattr(processor, "crop_pct", None) and short:  # ConvNeXt's rule
        return (short, int(short / processor.crop_pct)) if short < 384 else (short, (short, short))
    resize = size or short
    if getattr(processor, "do_center_crop", False) and crop:
        return crop, resize
    if size is None:
        raise UserError(f"the image processor of {what} does not crop, so its input size depends on the image")
    return size, resize


def _get(processor: Any, field: str, key: str) -> int | None:
    sizes = getattr(processor, field, None)
    size = sizes.get(key) if isinstance(sizes, dict) else getattr(sizes, key, None)
    return int(size) if size else None


def _pair(processor: Any, field: str) -> tuple[int, int] | None:
    height, width = _get(processor, field, "height"), _get(processor, field, "width")
    return (height, width) if height and width else None


def label_space_of(config: Any, what: str) -> LabelSpace:
    """Return the classes of an image classifier from its configuration."""
    names = tuple(str(config.id2label[i]) for i in range(len(config.id2label)))
    known = label_space("imagenet1k")
    if len(names) == 1001:
        return with_background(known)
    if len(names) == 1000 and _is_imagenet(names, known):
        return known
    return LabelSpace(what, names)


def _is_imagenet(names: tuple[str, ...], known: LabelSpace) -> bool:
    # Names differ in wording between models, so most of the first words must be at their place.
    if all(name.startswith("LABEL_") for name in names):
        return True
    first_words = [name.split(",")[0].strip().lower() for name in names]
    same = sum(a in b.lower() or b.lower() in a for a, b in zip(first_words, known.names))
    return same > len(names) // 2
