"""Corruption: low-pass, a Gaussian blur with a grey border."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, is_tensor, on_images
from cuebench.cues.grey import MEAN_GREY, as_grey
from cuebench.cues.parameters import check_number

SIGMAS = (0.0, 1.0, 3.0, 5.0, 7.0, 10.0, 15.0, 40.0)

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    identity={"sigma": 0, "keep_colour": True},
    levels={"sigma": SIGMAS},
    device=Tolerance(1, 1e-3),
)


def low_pass(image: Any, *, sigma: float = 5.0, border: float = MEAN_GREY, keep_colour: bool = False) -> Array:
    r"""Blur with a Gaussian (cut off at 4 σ); outside the image lies the constant `border`.

    :math:`\mathrm{out} = G_\sigma * I`

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    sigma : float
        Standard deviation in pixels, ≥ 0. 0: unchanged. Published: 0, 1, 3, 5, 7, 10, 15, 40.
    border : float
        Grey level outside the image, in [0, 1]; published: .4423.
    keep_colour : bool
        Keep the colours, as for segmentation; the published stimuli are grey.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("sigma", sigma, low=0)
    check_number("border", border, low=0, high=1)

    def kernel(pixels: Array) -> Array:
        return blurred(as_grey(pixels, keep_colour), sigma, border)

    return on_images(kernel, image, on_device=kernel)


def blurred(image: Array, sigma: float, border: float = MEAN_GREY) -> Array:
    """Blur each channel of an H×W×C image, or of each of a tensor; outside lies a constant."""
    if is_tensor(image):
        return _blurred_tensor(image, sigma, border)
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(image, (sigma, sigma, 0), mode="constant", cval=border, truncate=4.0)


def _blurred_tensor(images: Any, sigma: float, border: float) -> Any:
    from cuebench.cues.on_device import band, filtered

    radius = int(4.0 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2) if radius else np.ones(1)
    taps = tuple((weights / weights.sum()).tolist())
    rows, columns = (band(n, taps, mirror=False) for n in images.shape[1:3])
    return filtered(images, rows, columns, outside=border)
