"""REFINED-BIAS shape cue: white contours of the object's structure on black, texture and background removed."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.grey import luminance
from cuebench.cues.parameters import check_number, optional

CUE = CueInfo(
    kind="shape",
    reference="REFINED-BIAS (On the Reliability of Cue Conflict and Beyond, 2026), appendix A.1",
    needs=("mask",),
)


def contours(
    image: Any, *, mask: Any, sigma: float = 2.0, low: float = 0.05, high: float = 0.15, outline: bool = True
) -> Array:
    r"""Draw the structural contours of an object in white on black; nothing is drawn outside the object.

    The luminance is blurred inside the mask :math:`m` only (normalised convolution, so that the background does
    not leak in),

    .. math:: B = \frac{G_\sigma * (m\,Y)}{G_\sigma * m},

    then thin edges (Canny: non-maximum suppression and hysteresis on :math:`\lVert\nabla B\rVert`) are kept
    inside the mask, together with the mask's own outline.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    mask : array
        Object mask, H×W or N×H×W; non-zero inside the object.
    sigma : float
        Blur in pixels, ≥ 0, to be adjusted to the class: 0 draws every hair, 3 and more only large parts.
    low, high : float
        Hysteresis thresholds on the gradient of the blurred luminance (range [0, 1], per pixel), 0 ≤ low ≤ high.
        Lower ones draw more.
    outline : bool
        Draw the border of the mask too.

    Returns
    -------
    array
        0 or 1 (255): white lines on black.

    References
    ----------
    .. [1] P. J. Kim et al., "On the Reliability of Cue Conflict and Beyond", 2026, appendix A.1.
    .. [2] J. Canny, "A computational approach to edge detection", PAMI 1986.
    """
    feature = optional("skimage.feature", "the cue 'contours'")
    check_number("sigma", sigma, low=0)
    check_number("high", high, low=0)
    check_number("low", low, low=0, high=high)

    def kernel(pixels: Array, *, mask: Array) -> Array:
        blurred = blur_inside(luminance(pixels)[..., 0], mask, sigma)
        lines = feature.canny(blurred, sigma=0, low_threshold=low, high_threshold=high) & mask
        if outline:
            lines |= border(mask)
        return lines[..., None].astype(pixels.dtype)

    return on_images(kernel, image, mask=mask)


def blur_inside(plane: Array, mask: Array, sigma: float) -> Array:
    """Blur an H×W plane inside the mask; outside, continue the nearest inside value so that no edge appears."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    if not mask.any():
        return np.zeros_like(plane)
    weight = mask.astype(plane.dtype)
    share = gaussian_filter(weight, sigma)
    inside = gaussian_filter(plane * weight, sigma)[mask] / share[mask]
    filled = np.zeros_like(plane)
    filled[mask] = inside
    nearest = distance_transform_edt(~mask, return_distances=False, return_indices=True)
    return filled[tuple(nearest)]


def border(mask: Array) -> Array:
    """Return the pixels of the mask that touch its outside; the image's border counts as inside."""
    from scipy.ndimage import binary_erosion

    return mask & ~binary_erosion(mask, border_value=1)
