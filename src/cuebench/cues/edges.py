"""Edges: Canny lines or Sobel gradient strength, white on black."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.grey import luminance
from cuebench.cues.parameters import check_choice, check_number, optional

METHODS = ("canny", "sobel")

CUE = CueInfo(kind="shape", reference="Canny 1986; the edge stimuli of Geirhos et al. 2019", levels={"method": METHODS})


def edges(
    image: Any,
    *,
    sigma: float = 2.0,
    method: str = "canny",
    low: float = 0.05,
    high: float = 0.15,
    invert: bool = False,
) -> Array:
    r"""Return the edges of the image's luminance.

    ``"canny"``: lines one pixel wide where :math:`\lVert\nabla (G_\sigma * Y)\rVert` is a maximum along its
    direction and connected, above `low`, to a pixel above `high`. ``"sobel"``: the gradient's length itself,
    divided by its maximum.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    sigma : float
        Blur in pixels before the gradient, ≥ 0. Larger values leave fewer, coarser edges.
    method : {"canny", "sobel"}
        Thin lines, or graded strength.
    low, high : float
        Thresholds of ``"canny"`` on the gradient, 0 ≤ low ≤ high. Lower ones draw more.
    invert : bool
        Black lines on white.

    Returns
    -------
    array
        White edges on black; a constant image gives black.

    References
    ----------
    .. [1] J. Canny, "A computational approach to edge detection", PAMI 1986.
    """
    check_number("sigma", sigma, low=0)
    check_choice("method", method, METHODS)
    check_number("high", high, low=0)
    check_number("low", low, low=0, high=high)

    def kernel(pixels: Array) -> Array:
        plane = luminance(pixels)[..., 0]
        if method == "canny":
            feature = optional("skimage.feature", "the cue 'edges'")
            lines = feature.canny(plane, sigma=sigma, low_threshold=low, high_threshold=high, mode="nearest")
            lines = lines.astype(float)
        else:
            lines = _sobel(plane, sigma)
        return (1 - lines if invert else lines)[..., None].astype(pixels.dtype)

    return on_images(kernel, image)


def _sobel(plane: Array, sigma: float) -> Array:
    from scipy.ndimage import gaussian_filter, sobel

    smooth = gaussian_filter(plane.astype(np.float64), sigma, mode="nearest")
    strength = np.hypot(sobel(smooth, 0, mode="nearest"), sobel(smooth, 1, mode="nearest"))
    # Round-off on a constant image must not be stretched to a pattern.
    return strength / max(float(strength.max()), 1e-6)
