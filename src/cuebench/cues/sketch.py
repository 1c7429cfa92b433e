"""Line drawing by an extended difference of Gaussians (XDoG): dark strokes on white."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.grey import luminance
from cuebench.cues.parameters import check_number

CUE = CueInfo(kind="shape", reference="Winnemöller, Kyprianidis & Olsen 2012 (XDoG)")


def sketch(
    image: Any,
    *,
    sigma: float = 1.4,
    ratio: float = 1.6,
    threshold: float = 0.03,
    softness: float = 40.0,
) -> Array:
    r"""Draw the image in dark strokes on white.

    .. math::
        D &= (G_\sigma - G_{k\sigma}) * \log(Y + \tfrac1{20}) \\
        \mathrm{out} &= 1 + \tanh\left(\varphi\,\min(D + \varepsilon, 0)\right)

    A stroke appears where the luminance :math:`Y` is darker than its surroundings by the threshold. The
    logarithm makes this a ratio, so that shadow and light are drawn alike; and of the two terms of XDoG, tone and
    edges, only the edges are kept, so that dark regions are drawn by their lines and not filled.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    sigma : float
        Width of the strokes in pixels, > 0; larger ones also leave out finer texture.
    ratio : float
        :math:`k` > 1, the second Gaussian's width over the first's.
    threshold : float
        :math:`\varepsilon` ≥ 0: larger values leave fewer strokes; 0 draws noise too.
    softness : float
        :math:`\varphi` > 0: large values give hard black and white, small ones pencil grey.

    Returns
    -------
    array
        A constant image gives white.

    References
    ----------
    .. [1] H. Winnemöller, J. E. Kyprianidis and S. C. Olsen, "XDoG: an eXtended difference-of-Gaussians
       compendium", Computers & Graphics 36, 2012.
    """
    from scipy.ndimage import gaussian_filter

    check_number("sigma", sigma, above=0)
    check_number("ratio", ratio, above=1)
    check_number("threshold", threshold, low=0)
    check_number("softness", softness, above=0)

    def kernel(pixels: Array) -> Array:
        plane = np.log(luminance(pixels)[..., 0].astype(np.float64) + 0.05)
        fine = gaussian_filter(plane, sigma, mode="nearest")
        coarse = gaussian_filter(plane, ratio * sigma, mode="nearest")
        # The small term keeps round-off on flat regions from being drawn at threshold 0.
        dark = np.minimum(fine - coarse + threshold + 1e-6, 0)
        return (1 + np.tanh(softness * dark))[..., None].astype(pixels.dtype)

    return on_images(kernel, image)
