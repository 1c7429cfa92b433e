"""Corruption: high-pass, the image less its Gaussian blur, around a fixed mean."""

from __future__ import annotations

import math
from typing import Any

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, is_tensor, on_images
from cuebench.cues.grey import MEAN_GREY, as_grey
from cuebench.cues.low_pass import blurred
from cuebench.cues.parameters import check_number

SIGMAS = (math.inf, 3.0, 1.5, 1.0, 0.7, 0.55, 0.45, 0.4)

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    identity={"sigma": math.inf, "keep_colour": True},
    levels={"sigma": SIGMAS},
    device=Tolerance(1, 1e-3),
)


def high_pass(image: Any, *, sigma: float = 1.5, mean: float = MEAN_GREY, keep_colour: bool = False) -> Array:
    r"""Keep only what a Gaussian blur takes away.

    :math:`\mathrm{out} = \mathrm{clip}(D - \bar D + \mathrm{mean})` with :math:`D = I - G_\sigma * I` and its mean
    :math:`\bar D` (for each channel). The blur is that of `low_pass`, with the same grey border.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    sigma : float
        Standard deviation in pixels, > 0; the smaller, the less is left. ``inf``: the unchanged image, mean
        included (the published reference level). Published: ∞, 3, 1.5, 1, .7, .55, .45, .4.
    mean : float
        Mean of the result before clipping, in [0, 1]; published: .4423.
    keep_colour : bool
        Keep the colours, as for segmentation; the published stimuli are grey.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("sigma", sigma, above=0, infinite=True)
    check_number("mean", mean, low=0, high=1)

    def kernel(pixels: Array) -> Array:
        grey = as_grey(pixels, keep_colour)
        if math.isinf(sigma):
            return grey
        difference = grey - blurred(grey, sigma)
        return difference - _mean(difference) + mean

    return on_images(kernel, image, on_device=kernel)


def _mean(images: Any) -> Any:
    """Return the mean of each channel, of each image."""
    return images.mean((1, 2), keepdim=True) if is_tensor(images) else images.mean(axis=(0, 1))
