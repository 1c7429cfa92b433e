"""The shape cue: thin white contours of an object's structure on black, nothing outside the object.

The cue ``contours`` is the plain definition (blur inside the mask, Canny, outline). A data set needs more: colour edges
too, thresholds from the contrast of the object, no double line beside the outline, no crumbs, small gaps closed, and a
blur that is chosen for each class so that lines are structure, not texture.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.parameters import check_number, optional

SIGMAS = (1.0, 1.5, 2.0, 2.8, 4.0, 5.6)
"""Blurs that are tried for a class, in pixels of a 224-pixel image."""
DENSITY = 0.07
"""Lines inside the object as part of its area: more than this is texture."""
SHORTEST = 14
"""Pieces of line with fewer pixels are crumbs."""
BAND = 3
"""Inner lines keep this distance from the outline, in pixels."""


def draw_contours(image: Any, mask: Any, *, sigma: float = 2.0, outline: bool = True) -> Array:
    """Return the contours of an object as uint8 H×W×3, 0 or 255.

    Parameters
    ----------
    image : uint8 array H×W×3
        The object in its surroundings; what lies outside the mask has no influence.
    mask : bool array H×W
        The object.
    sigma : float
        Blur inside the mask in pixels, > 0. Larger: fewer and larger parts.
    outline : bool
        Draw the border of the mask too.
    """
    cv2 = optional("cv2", "making shape cues")
    check_number("sigma", sigma, low=0.1)
    lines = inner_lines(cv2, np.asarray(image), np.asarray(mask, bool), sigma)
    if outline:
        lines = lines | border(cv2, np.asarray(mask, bool))
    return np.repeat(np.where(lines, 255, 0).astype(np.uint8)[..., None], 3, axis=2)


def class_sigma(objects: Sequence[tuple[Array, Array]], density: float = DENSITY) -> float:
    """Return the smallest blur with which half of a class' objects have no more inner lines than ``density``.

    Parameters
    ----------
    objects : sequence of (image, mask)
        Some objects of the class.
    density : float
        Largest part of the object's area that lines may cover.
    """
    if not objects:  # none of them can be used
        return SIGMAS[-1]
    cv2 = optional("cv2", "making shape cues")
    for sigma in SIGMAS:
        densities = [inner_lines(cv2, image, mask, sigma)[mask].mean() for image, mask in objects]
        if np.median(densities) <= density:
            return sigma
    return SIGMAS[-1]


def inner_lines(cv2: ModuleType, image: Array, mask: Array, sigma: float) -> Array:
    """Return the thin lines inside the object, without its outline."""
    from skimage.morphology import skeletonize

    blurred = _blur_inside(cv2, image, mask, sigma)
    # The gradient (Scharr, in grey levels × 16) of the channel that changes most at each pixel.
    dx, dy = (cv2.Scharr(blurred, cv2.CV_32F, *d) for d in ((1, 0), (0, 1)))
    channel = (dx**2 + dy**2).argmax(axis=2)[..., None]
    dx, dy = (np.take_along_axis(d, channel, axis=2)[..., 0] for d in (dx, dy))
    strength = np.hypot(dx, dy)[mask]
    if not strength.size or strength.max() < 1e-6:
        return np.zeros_like(mask)
    # Relative to the contrast of the object, but never so low that noise of a plain surface becomes a line.
    high = max(float(np.quantile(strength, 0.93)), 40.0 / sigma)
    edges = cv2.Canny(dx.astype(np.int16), dy.astype(np.int16), 0.4 * high, high, L2gradient=True) > 0
    core = cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8), iterations=BAND, borderValue=0) > 0
    # Close gaps of a pixel or two and make the lines thin again.
    near = cv2.morphologyEx((edges & core).astype(np.uint8), cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
    return _without_crumbs(cv2, np.asarray(skeletonize(near > 0)) & core)


def border(cv2: ModuleType, mask: Array) -> Array:
    """Return the one-pixel outline of the mask, inside it; an object cut by the frame has no line there."""
    smooth = cv2.medianBlur(mask.astype(np.uint8) * 255, 5) > 127
    smooth &= mask
    inside = cv2.erode(smooth.astype(np.uint8), _CROSS, borderValue=1) > 0
    lines = smooth & ~inside
    return _without_crumbs(cv2, lines)


_CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8)


def _blur_inside(cv2: ModuleType, image: Array, mask: Array, sigma: float) -> Array:
    """Blur each channel within the mask (normalised convolution) and continue the border values outwards."""
    weight = mask.astype(np.float32)
    share = cv2.GaussianBlur(weight, (0, 0), sigma)
    pixels = cv2.GaussianBlur(image.astype(np.float32) * weight[..., None], (0, 0), sigma)
    inside = pixels / np.maximum(share, 1e-6)[..., None]
    # The nearest pixel of the object, so that the outline itself makes no edge.
    _, nearest = cv2.distanceTransformWithLabels(
        (~mask).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    where = np.zeros(int(nearest.max()) + 1, np.intp)
    where[nearest[mask]] = np.flatnonzero(mask)
    return inside.reshape(-1, 3)[where[nearest]]


def _without_crumbs(cv2: ModuleType, lines: Array, shortest: int = SHORTEST) -> Array:
    count, labels, stats, _ = cv2.connectedComponentsWithStats(lines.astype(np.uint8), connectivity=8)
    keep = stats[:, cv2.CC_STAT_AREA] >= shortest
    keep[0] = False
    return keep[labels] if count > 1 else np.zeros_like(lines)
