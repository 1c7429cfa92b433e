"""Textured silhouette: the object on a plain background, at some size and place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, check_image, on_images
from cuebench.cues.parameters import check_choice, check_number
from cuebench.errors import UserError

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Opacities of the background in experiment 1."""
SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Sizes in experiment 2: 45, 90, 135, 180 and 224 of 224 pixels."""

CUE = CueInfo(
    kind="mixing",
    reference="Tartaglini et al., A Developmentally-Inspired Examination of Shape versus Texture Bias",
    random=True,
    identity={"alpha": 0},
    needs=("mask",),
    levels={"alpha": ALPHAS, "size": SIZES},
)


def composite(
    image: Any,
    *,
    mask: Any,
    background: Any = 1.0,
    alpha: float = 1.0,
    size: float = 1.0,
    position: str | tuple[int, int] = "centre",
    resample: str = "linear",
    rng: Rng = 0,
) -> Array:
    r"""Fade everything but the object to a background, then shrink and place it.

    .. math:: \mathrm{out} = m\,I + (1-m)\,B, \qquad m = 1 \text{ on the object}, \quad 1-\alpha \text{ elsewhere}

    The result is resized to :math:`\lceil \mathrm{size}\cdot H\rceil \times \lceil \mathrm{size}\cdot W\rceil` and put
    onto the background. With ``resample="bicubic"``, as published, the image is resized with :math:`m` as its opacity
    (Pillow's RGBA) and then laid over the background, which is not resized.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    mask : array
        Object mask, H×W or N×H×W; non-zero inside the object (of a published silhouette: ``silhouette == 0``).
    background : float or array
        B: a grey level in [0, 1] (published: white), or an image of the same size.
    alpha : float
        Opacity of the background in [0, 1]. 0: the image unchanged; 1: the object alone.
        Published: 0, .2, .4, .6, .8, 1.
    size : float
        In (0, 1], as a part of the image. Published: .2 to 1 (45, 90, 135, 180, 224 of 224 pixels).
    position : {"centre", "random"} or (int, int)
        Place of the shrunk image: centred; anywhere inside, drawn uniformly; or its top left corner (y, x).
    resample : {"linear", "bicubic"}
        Filter for sizes below 1, antialiased. Published: bicubic, on 8-bit values.
    rng : int, Generator, sequence of int, or None
        Seed of the random place, the same for each image; or one seed for each image.

    Returns
    -------
    array

    References
    ----------
    .. [1] A. R. Tartaglini, W. K. Vong and B. M. Lake, "A Developmentally-Inspired Examination of Shape versus
       Texture Bias in Machines", 2022.
    """
    check_number("alpha", alpha, low=0, high=1)
    check_number("size", size, above=0, high=1)
    named = isinstance(position, str) and position in ("centre", "random")
    if not named and not (isinstance(position, tuple | list) and len(position) == 2):
        raise UserError(f"position is {position!r}", "accepted: 'centre', 'random', or (y, x) in pixels")
    check_choice("resample", resample, ("linear", "bicubic"))
    behind = None
    if np.ndim(background) == 0:
        check_number("background", background, low=0, high=1)
    else:
        behind = check_image(background, "background")

    def kernel(pixels: Array, *, mask: Array, rng: np.random.Generator, other: Array | None = None) -> Array:
        back = np.full_like(pixels, background) if other is None else other
        keep = np.where(mask[..., None], 1.0, 1.0 - alpha)
        if size < 1 and resample == "bicubic":
            return _laid_over(pixels, keep, back, size, position, rng)
        mixed = keep * pixels + (1 - keep) * back
        return mixed if size == 1 else _placed(mixed, back, size, position, rng)

    return on_images(kernel, image, random=True, rng=rng, mask=mask, other=behind, other_name="background")


def _goal(image: Array, size: float) -> tuple[int, int]:
    # .2 · 224 = 44.8 → 45, .6 · 224 = 134.4 → 135: the published sizes round up.
    height, width = image.shape[:2]
    return math.ceil(size * height - 1e-9), math.ceil(size * width - 1e-9)


def _laid_over(
    image: Array, keep: Array, back: Array, size: float, position: str | tuple[int, int], rng: np.random.Generator
) -> Array:
    """Resize the image with its opacity as Pillow does an RGBA picture, then lay it over the background."""
    from PIL import Image

    height, width = _goal(image, size)
    colours = np.rint(np.repeat(image, 3 // image.shape[2], axis=2) * 255).astype(np.uint8)
    opacity = np.rint(keep * 255).astype(np.uint8)
    layer = Image.fromarray(np.concatenate([np.where(opacity > 0, colours, 255), opacity], axis=2), "RGBA")
    small = layer.resize((width, height), Image.Resampling.BICUBIC)
    y, x = _corner(position, (image.shape[0] - height, image.shape[1] - width), rng)
    below = np.rint(np.repeat(back, 3 // image.shape[2], axis=2) * 255).astype(np.uint8)
    out = Image.fromarray(below)
    out.paste(small.convert("RGB"), (x, y), mask=small)
    return np.asarray(out)[..., : image.shape[2]].astype(image.dtype) / 255


def _placed(image: Array, back: Array, size: float, position: str | tuple[int, int], rng: np.random.Generator) -> Array:
    height, width = image.shape[:2]
    small = shrunk(image, *_goal(image, size))
    room = (height - small.shape[0], width - small.shape[1])
    y, x = _corner(position, room, rng)
    out = back.astype(image.dtype).copy()
    out[y : y + small.shape[0], x : x + small.shape[1]] = small
    return out


def _corner(position: Any, room: tuple[int, int], rng: np.random.Generator) -> tuple[int, int]:
    if position == "centre":
        return room[0] // 2, room[1] // 2
    if position == "random":
        return int(rng.integers(room[0] + 1)), int(rng.integers(room[1] + 1))
    if not all(0 <= place <= free for place, free in zip(position, room)):
        raise UserError(f"position is {position!r}", f"accepted at this size: (y, x) from (0, 0) to {room}")
    return int(position[0]), int(position[1])


def shrunk(image: Array, height: int, width: int) -> Array:
    """Resize an H×W×C float image with an antialiased linear filter."""
    from PIL import Image

    planes = [
        Image.fromarray(np.ascontiguousarray(image[..., c], dtype=np.float32)).resize(
            (width, height), Image.Resampling.BILINEAR
        )
        for c in range(image.shape[2])
    ]
    return np.stack([np.asarray(plane) for plane in planes], axis=-1).astype(image.dtype)
