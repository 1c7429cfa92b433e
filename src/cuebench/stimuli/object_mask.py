"""Which pixels of a mask file are the object: one rule for the masks of `cue` and of `make`."""

from __future__ import annotations

import numpy as np
from PIL import Image

from cuebench.arrays import Array

HALF = 127
"""Pixels above it are the object: those of an edge that was smoothed, or blurred by JPEG, fall to the nearer side."""
_ROUNDED = 24
"""Difference between channels, or from a mixture of black and one colour, that is no colour of its own."""
_EDGE, _NOISE = 32, 12
"""Greys further from black and white than the first, in an area with no more noise than the second, are no edge."""
_LOSSY = ("JPEG", "MPO", "WEBP")
CLASSES = "numbers of classes, as in a trimap or VOC, are not read as masks"


def object_pixels(mask: Image.Image) -> Array:
    """Return the object of a mask, bool H×W.

    The object is what is opaque, where parts are transparent; otherwise what is white. Of a mask of black and one other
    value or colour it is that one. Edges may be smooth.

    Raises
    ------
    ValueError
        The mask has several colours or several grey areas, as masks of classes have; or values of 16 bits whose white
        is not known.
    """
    if mask.has_transparency_data:
        alpha = np.asarray(mask.convert("RGBA").getchannel("A"))
        if alpha.min() < alpha.max():
            return alpha > HALF
        if not alpha.any():
            raise ValueError("all of it is transparent")
    deep = mask.mode in ("I", "F") or mask.mode.startswith("I;16")
    values = np.asarray(mask) if deep else _greys(mask)
    levels = np.unique(values)
    if len(levels) == 1 or (len(levels) == 2 and levels[0] == 0):
        return values != 0
    if deep:
        raise ValueError("16 bits or more in a channel; save it with 8")
    if why := _third_value(values, mask.format in _LOSSY):
        raise ValueError(f"its values are {why}: white (255) is the object; {CLASSES}")
    return values > HALF


def _greys(mask: Image.Image) -> Array:
    """Return a mask as greys; of black and one colour, that colour is white."""
    if mask.mode in ("1", "L", "LA"):
        return np.asarray(mask.convert("L"))
    pixels = np.asarray(mask.convert("RGB"))
    strongest = pixels.max(axis=2)
    if (strongest - pixels.min(axis=2) <= _ROUNDED).all():
        return np.asarray(mask.convert("RGB").convert("L"))
    top = strongest.max()
    colours, counts = np.unique(pixels[strongest > top // 2], axis=0, return_counts=True)
    colour = colours[counts.argmax()]
    share = strongest[..., None] / np.float32(colour.max())
    other = (np.abs(pixels - share * colour) > _ROUNDED).any(axis=2)
    if _uniform(other).any() if mask.format in _LOSSY else other.any():  # JPEG blurs the colours of an edge
        raise ValueError(f"it has several colours (#{colour.tobytes().hex()} and others); {CLASSES}")
    return np.rint(strongest * np.float32(255 / top)).astype(np.uint8)


def _third_value(values: Array, lossy: bool) -> str:
    """Say why greys are not those of black and white with edges; empty where they are."""
    bright = int(np.count_nonzero(values > HALF))
    if not bright:
        return f"at most {values.max()}"
    counts = np.bincount(values.ravel(), minlength=256)
    black, white = int(counts[: HALF + 1].argmax()), int(counts[HALF + 1 :].argmax()) + HALF + 1
    greys = np.arange(256)
    is_far = np.minimum(np.abs(greys - black), np.abs(greys - white)) > _EDGE
    others: set[int] = set()
    if (
        not lossy
    ):  # the numbers of classes are exact, however close to black; a smooth edge ends in narrow rings of them
        flat = np.bincount(values[_uniform(np.ones(values.shape, bool), values, side=3)], minlength=256)
        allowed = np.where(is_far, bright / 100, bright / 10)
        others = {int(v) for v in np.flatnonzero(flat > allowed)} - {black, white}
    wide = _uniform(is_far[values], values, noise=_NOISE)
    if np.count_nonzero(wide) > bright / 200:
        others.add(int(np.median(values[wide])))
    if others:
        return f"several greys ({', '.join(map(str, sorted({black, white} | others)[:8]))})"
    middle = int(np.count_nonzero(np.abs(values - (HALF + 0.5)) < HALF / 2))
    if middle > max(bright, values.size / 10):
        return f"greys without clear edges ({middle:,} pixels between black and white)"
    return ""


def _uniform(area: Array, values: Array | None = None, *, side: int = 5, noise: int = 0) -> Array:
    """Return the pixels all of whose neighbours are in an area, and whose values there differ by ``noise`` at most."""
    from scipy.ndimage import maximum_filter, minimum_filter

    inside = minimum_filter(area, side, mode="constant", cval=False)
    if values is not None:
        inside &= maximum_filter(values, side) - minimum_filter(values, side) <= noise
    return np.asarray(inside)
