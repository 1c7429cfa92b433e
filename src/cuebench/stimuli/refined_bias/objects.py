"""An object cut out and scaled to the size of a stimulus: what both cues start from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.cues.grey import WEIGHTS
from cuebench.stimuli.masks.base import BadSource

ZOOM = 2.0
"""An object too slender for the largest patch is enlarged up to this, for its texture only."""


class Object(NamedTuple):
    """Pixels (uint8 H×W×3), mask (bool H×W), and the part of the source image that the mask covers."""

    image: Array
    mask: Array
    area: float


def framed(image: Array, mask: Array, size: int, margin: float = 0.05) -> Object:
    """Cut the object's bounding box and scale it into a square of ``size`` with a margin; the aspect is kept.

    Parameters
    ----------
    image, mask : arrays
        uint8 H×W×3 and bool H×W.
    size : int
        Side of the square.
    margin : float
        Empty part of the square on each side.
    """
    inner = max(1, round(size * (1 - 2 * margin)))
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    height, width = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
    scale = inner / max(height, width)
    return _placed(image, mask, scale, (size, size))


def close_up(image: Array, mask: Array, size: int, square: int, margin: float = 0.05) -> Object:
    """Scale the object as ``framed`` does, or more (up to ``ZOOM``) until a square of ``square`` pixels fits inside.

    The result is as large as the object then is: nothing is cut off that a patch could be taken from.

    Raises
    ------
    BadSource
        The object is smaller than the largest patch.
    """
    inner = max(1, round(size * (1 - 2 * margin)))
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    scale = inner / max(rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1)
    largest = inscribed(mask) * scale
    zoom = min(ZOOM, max(1.0, 1.04 * (square + 2) / max(largest, 1e-9)))
    close = _placed(image, mask, scale * zoom, None)
    if (side := inscribed(close.mask)) < square:
        raise BadSource(f"the object is smaller than the largest patch: {side} of {square} pixels fit inside it")
    return close


def flattened(image: Array, mask: Array, *, strength: float = 0.6, sigma: float = 37.0) -> Array:
    """Remove most of the shading of an object: it is form, not texture, and would show every border between patches.

    The luminance blurred inside the mask moves by ``strength`` towards the object's mean.

    Parameters
    ----------
    image, mask : arrays
        uint8 H×W×3 and bool H×W.
    strength : float
        0: unchanged; 1: every place gets the same mean.
    sigma : float
        Blur in pixels: shading is what is larger than this.
    """
    from scipy.ndimage import gaussian_filter

    weight = mask.astype(np.float32)
    light = (image @ np.array(WEIGHTS)).astype(np.float32)
    share = np.maximum(gaussian_filter(weight, sigma, truncate=2.5), 1e-6)
    slow = gaussian_filter(light * weight, sigma, truncate=2.5) / share
    moved = image - strength * (slow - light[mask].mean())[..., None]
    return np.clip(moved, 0, 255).round().astype(np.uint8)


def inscribed(mask: Array) -> int:
    """Return the side of the largest square inside a mask, from the chessboard distance to its outside."""
    from scipy.ndimage import distance_transform_cdt

    padded = np.pad(mask, 1)
    return max(0, int(distance_transform_cdt(padded, "chessboard").max()) * 2 - 1)


def _scaled_mask(cover: Array, shape: tuple[int, int], scale: float) -> Array:
    share = Image.fromarray(cover.astype(np.uint8) * 255).resize((shape[1], shape[0]), Image.Resampling.BILINEAR)
    soft = np.asarray(share)
    if scale > 1.2:
        # Enlarged pixels are stairs: an outline of stairs would be a contour that the object does not have.
        from scipy.ndimage import gaussian_filter

        soft = gaussian_filter(soft.astype(np.float32), 0.6 * scale)
    return soft > 127


def _placed(image: Array, mask: Array, scale: float, goal: tuple[int, int] | None) -> Object:
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    # A little of the surroundings, so that resampling at the outline sees real pixels where there are any.
    pad = max(2, round(2 / scale))
    top, left = max(0, rows[0] - pad), max(0, columns[0] - pad)
    cut = (slice(top, rows[-1] + 1 + pad), slice(left, columns[-1] + 1 + pad))
    part, cover = image[cut], mask[cut]
    shape = tuple(max(1, round(n * scale)) for n in cover.shape)
    pixels = np.asarray(Image.fromarray(part).resize((shape[1], shape[0]), Image.Resampling.LANCZOS))
    scaled = _scaled_mask(cover, (shape[0], shape[1]), scale)
    if goal is None:
        return Object(pixels, scaled, float(mask.mean()))
    out, where = np.zeros((*goal, 3), np.uint8), np.zeros(goal, bool)
    # Centred; what sticks out of the frame is surroundings, never the object.
    y, x = ((g - n) // 2 for g, n in zip(goal, shape))
    target = tuple(slice(max(0, o), min(g, o + n)) for o, g, n in zip((y, x), goal, shape))
    origin = tuple(slice(max(0, -o), max(0, -o) + t.stop - t.start) for o, t in zip((y, x), target))
    out[target], where[target] = pixels[origin], scaled[origin]
    return Object(out, where, float(mask.mean()))
