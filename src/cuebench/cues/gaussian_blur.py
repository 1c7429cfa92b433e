"""Gaussian blur with a small square kernel, as used to suppress texture."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, on_images
from cuebench.cues.parameters import check_number, check_whole
from cuebench.errors import UserError

KERNELS = (3, 5, 7, 9, 11, 13, 15)
"""The odd sizes of the published range."""

CUE = CueInfo(
    kind="suppression",
    reference="Burgert et al. 2025 (suppression of texture)",
    identity={"kernel": 1},
    levels={"kernel": KERNELS},
    device=Tolerance(1, 1e-3),
)


def gaussian_blur(image: Any, *, kernel: int = 9, sigma: float | None = None, quantised: bool = False) -> Array:
    r"""Convolve with a k×k Gaussian.

    Weights :math:`w_i \propto \exp(-i^2 / 2\sigma^2)` for :math:`|i| \le (k-1)/2` along each axis, normalised; without
    `sigma`, :math:`\sigma = 0.3\,((k-1)/2 - 1) + 0.8`, the rule of OpenCV and torchvision. Borders are mirrored
    without repeating the edge pixel.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    kernel : int
        Odd size of the kernel in pixels. 1: identity. Published: 3 to 15.
    sigma : float, optional
        Standard deviation in pixels, > 0.
    quantised : bool
        Round the weights to 1/256, as OpenCV's filter of 8-bit images does: σ is then a little larger.

    Returns
    -------
    array

    See Also
    --------
    low_pass : the corruption, with an untruncated Gaussian and a grey border.

    References
    ----------
    .. [1] T. Burgert et al., "ImageNet-trained CNNs are not biased towards texture", 2025.
    """
    from scipy.ndimage import convolve1d

    if check_whole("kernel", kernel) % 2 == 0:
        raise UserError(f"kernel is {kernel}", f"accepted: an odd whole number, e.g. {kernel + 1}")
    width = 0.3 * ((kernel - 1) / 2 - 1) + 0.8 if sigma is None else check_number("sigma", sigma, above=0)
    offset = np.arange(kernel) - kernel // 2
    weights = np.exp(-(offset**2) / (2 * width**2)) if kernel > 1 else np.ones(1)
    weights /= weights.sum()
    if quantised:
        weights = _quantised(weights)

    def blur(pixels: Array) -> Array:
        rows = convolve1d(pixels, weights, axis=0, mode="mirror")
        return convolve1d(rows, weights, axis=1, mode="mirror")

    def on_device(images: Any) -> Any:
        from cuebench.cues.on_device import band, filtered

        taps = tuple(weights.tolist())
        rows, columns = (band(n, taps, mirror=True) for n in images.shape[1:3])
        return filtered(images, rows, columns)

    return on_images(blur, image, on_device=on_device)


def _quantised(weights: Array) -> Array:
    """Return symmetric weights in steps of 1/256; what rounding takes from one goes to the next."""
    half, carried = len(weights) // 2, 0.0
    steps = np.zeros(len(weights))
    for i in range(half):
        wanted = weights[i] * 256 + carried
        steps[i] = steps[-1 - i] = np.rint(wanted)
        carried = wanted - steps[i]
    steps[half] = 256 - steps.sum()
    return steps / 256
