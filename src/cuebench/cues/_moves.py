"""Cues that only move pixels: an index map says where each output pixel comes from.

Image and label mask are read through the same map, so they correspond by construction, and every output pixel
is a pixel of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import Rng, on_images

IndexMap = Callable[[int, int, np.random.Generator], Array]
DeviceMap = Callable[[int, int, Any, Any], Any]


def move_pixels(
    index_map: IndexMap, image: Any, *, labels: Any = None, rng: Rng = 0, on_device: DeviceMap | None = None
) -> Any:
    """Apply ``index_map(height, width, rng)`` → flat source indices (H×W) to images and their labels.

    ``on_device(height, width, rngs, device)`` → N×HW, one map for each generator, does the same for a tensor. Returns
    the image, or ``(image, labels)`` with labels.
    """

    def kernel(pixels: Array, *, rng: np.random.Generator, labels: Array | None = None) -> Any:
        height, width, channels = pixels.shape
        source = index_map(height, width, rng)
        moved = np.take(pixels.reshape(-1, channels), source, axis=0)
        return moved if labels is None else (moved, labels.reshape(-1)[source])

    def device_kernel(images: Any, *, rng: Any) -> Any:
        from cuebench.cues.on_device import gather_pixels

        assert on_device is not None
        return gather_pixels(images, on_device(images.shape[1], images.shape[2], rng, images.device))

    moved = device_kernel if on_device else None
    return on_images(kernel, image, random=True, rng=rng, labels=labels, raw=True, on_device=moved)


def cuts(length: int, parts: int) -> Array:
    """Return the borders of `parts` nearly equal bands of an axis, the larger ones evenly spread.

    >>> cuts(10, 4).tolist()
    [0, 3, 5, 8, 10]
    """
    parts = min(parts, length)
    return (2 * np.arange(parts + 1) * length + parts) // (2 * parts)


def shuffle_within_classes(classes: Array, rng: np.random.Generator) -> Array:
    """Return a random permutation that only exchanges items of the same class (rows of `classes`)."""
    _, group = np.unique(classes, axis=0, return_inverse=True)
    group = group.reshape(-1)
    # Random order inside each group: sort by (group, random); the k-th member takes the k-th drawn member.
    places = np.argsort(group, kind="stable")
    drawn = np.lexsort((rng.random(len(group)), group))
    source = np.empty(len(group), dtype=np.intp)
    source[places] = drawn
    return source
