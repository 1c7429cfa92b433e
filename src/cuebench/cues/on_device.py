"""Cues on tensors: what the ``on_device`` kernels of the cues share.

A kernel gets the whole batch N×H×W×C on its device. Its random numbers are those of NumPy's generator with the seed of
each image, so that the pixels are those of the CPU up to rounding (`CueInfo.device`). Sums over many pixels are done in
float64 where the device has it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import NEARLY_WHOLE, Rounding
from cuebench.errors import MissingExtra, UserError

try:
    import torch
except ImportError as missing:  # pragma: no cover - torch is in the dev environment
    raise MissingExtra("cues on a device", "torch", "torch") from missing

Tensor = Any
Rngs = Sequence[np.random.Generator]
Filter = Callable[[int], Array]
"""Length of an axis → the matrix (length × length) that filters along it, borders included."""


def on_tensor(
    kernel: Callable[..., Any] | None,
    images: Tensor,
    rngs: Rngs | None,
    *,
    raw: bool = False,
    given: Sequence[str] = (),
    rounding: Rounding = "round",
) -> Tensor:
    """Apply a batch kernel to a tensor N×H×W×C; see `cuebench.cues.base.on_images`."""
    if kernel is None:
        raise UserError("this cue takes no tensor", "pass an array: images.cpu().numpy()")
    if given:
        raise UserError(
            f"a tensor with {' and '.join(given)}", "accepted with a tensor: images alone; else pass arrays"
        )
    check_tensor(images)
    keywords = {} if rngs is None else {"rng": rngs}
    with torch.inference_mode():
        result = kernel(images if raw else as_floats(images), **keywords)
        return restored(result, images, rounding)


def check_tensor(images: Tensor) -> None:
    """Refuse a tensor that is no batch of images."""
    if images.ndim != 4 or images.shape[-1] not in (1, 3) or not images.numel():
        raise UserError(
            f"the tensor has shape {tuple(images.shape)}", "accepted: N×H×W×C with C = 1 or 3, channels last"
        )
    if images.dtype not in (torch.uint8, torch.float32, torch.float64):
        raise UserError(f"the tensor has dtype {images.dtype}", "accepted: uint8, or float32, float64 in [0, 1]")


def as_floats(images: Tensor) -> Tensor:
    """Return images in [0, 1]; bytes become float32, by the same division as on the CPU."""
    if images.dtype != torch.uint8:
        return images
    # A CUDA device multiplies by the reciprocal of a plain number, which is one unit in the last place off.
    return images.to(torch.float32) / torch.full((), 255.0, device=images.device)


def restored(result: Tensor, images: Tensor, rounding: Rounding = "round") -> Tensor:
    """Bring a result to the shape and dtype of the images: clipped to [0, 1], rounded where they are bytes."""
    if result.dtype != torch.uint8:
        result = result.clamp(0, 1)
        if images.dtype == torch.uint8:
            levels = result * 255
            result = torch.round(levels) if rounding == "round" else torch.floor(levels + NEARLY_WHOLE)
    return result.to(images.dtype).expand(images.shape).contiguous()


def precise(device: Any) -> Any:
    """Return float64, or float32 where the device has no better."""
    return torch.float32 if device.type == "mps" else torch.float64


def to_device(array: Array, device: Any, dtype: Any | None = None) -> Tensor:
    """Copy an array to the device; large ones through pinned memory, so that the host need not wait."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if tensor.dtype == torch.float64:
        tensor = tensor.to(dtype or precise(device))
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


# ------------------------------------------------------------------------------------------------ moving pixels


def gather_pixels(images: Tensor, index: Tensor) -> Tensor:
    """Return images whose pixels come from the flat places `index` (N×HW)."""
    count, height, width, channels = images.shape
    flat = images.reshape(count, height * width, channels)
    return flat.gather(1, index[..., None].expand(-1, -1, channels)).reshape(images.shape)


def shifted(shifts: Tensor, number: Tensor) -> Tensor:
    """Return the map N×HW of pixels that come from a shift away; `number`: which of the N×K shifts (HW or N×HW)."""
    shift = shifts[:, number] if number.ndim == 1 else shifts.gather(1, number)
    return shift + torch.arange(shift.shape[1], device=shift.device)


def per_image(draw: Callable[[np.random.Generator], Any], rngs: Rngs, device: Any) -> Tensor:
    """Stack what is drawn for each image and bring it to the device."""
    return to_device(np.stack([np.asarray(draw(rng)) for rng in rngs]), device)


# ------------------------------------------------------------------------------------------------ random numbers


def uniform(rngs: Rngs, size: Sequence[int], device: Any) -> Tensor:
    """Return uniform numbers in [0, 1), N × size: for each image those that its generator gives next.

    A CUDA device computes them itself, bit by bit those of NumPy, as drawing them would take longer than all the rest.
    """
    from cuebench.cues import _pcg64

    if device.type == "cuda" and all(_pcg64.is_pcg64(rng) for rng in rngs):
        return _pcg64.random(rngs, math.prod(size), device).reshape(len(rngs), *size)
    return per_image(lambda rng: rng.random(tuple(size)), rngs, device)


def normal(rngs: Rngs, size: Sequence[int], device: Any) -> Tensor:
    """Return standard normal numbers, N × size: for each image those that its generator gives next.

    NumPy draws them (by rejection, so the place of a number is known only when all before it are drawn), an image in
    each thread.
    """
    drawn = np.empty((len(rngs), *size))
    if len(set(map(id, rngs))) < len(rngs):  # one generator for several images: in turn
        for rng, numbers in zip(rngs, drawn):
            rng.standard_normal(out=numbers)
    else:
        with ThreadPoolExecutor(min(len(rngs), os.cpu_count() or 1)) as pool:
            list(pool.map(lambda rng, numbers: rng.standard_normal(out=numbers), rngs, drawn))
    return to_device(drawn, device)


# ------------------------------------------------------------------------------------------------ filters


def filtered(images: Tensor, rows: Array, columns: Array, outside: float = 0.0) -> Tensor:
    """Filter along both axes by matrices, in the device's best precision.

    A row of weights that does not sum to 1 leaves the rest to the constant `outside` the image.
    """
    dtype = precise(images.device)
    down, across = (to_device(matrix, images.device, dtype) for matrix in (rows, columns))
    planes = images.to(dtype).movedim(-1, 1)
    planes = down @ planes + outside * (1 - down.sum(1, keepdim=True))
    planes = planes @ across.T + outside * (1 - across.sum(1))
    return planes.movedim(1, -1)


def mirrored(index: Array, length: int) -> Array:
    """Fold places of a signal that is mirrored about its end samples into 0 … length − 1."""
    period = max(1, 2 * length - 2)
    index = index % period
    return np.where(index < length, index, period - index)


@lru_cache(maxsize=64)
def band(length: int, weights: tuple[float, ...], mirror: bool) -> Array:
    """Return the matrix of a filter with an odd number of weights; outside: mirrored, or nothing."""
    matrix = np.zeros((length, length))
    places = np.arange(length)
    for offset, weight in enumerate(weights, start=-(len(weights) // 2)):
        source = mirrored(places + offset, length) if mirror else places + offset
        inside = (source >= 0) & (source < length)
        np.add.at(matrix, (places[inside], source[inside]), weight)
    return matrix


# ------------------------------------------------------------------------------------------------ between pixels


def sampled(images: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Interpolate images N×H×W×C linearly at places y, x (N×H×W, or H×W for all) that lie inside."""
    count, height, width, _ = images.shape
    y, x = y.expand(count, height, width), x.expand(count, height, width)
    top, left = y.floor().clamp(0, max(height - 2, 0)), x.floor().clamp(0, max(width - 2, 0))
    down, right = (y - top)[..., None], (x - left)[..., None]
    start = (top * width + left).long().reshape(count, -1)
    below, beside = width if height > 1 else 0, 1 if width > 1 else 0
    values = images.to(y.dtype)
    corner = [gather_pixels(values, start + k) for k in (0, beside, below, below + beside)]
    return (1 - down) * ((1 - right) * corner[0] + right * corner[1]) + down * (
        (1 - right) * corner[2] + right * corner[3]
    )
