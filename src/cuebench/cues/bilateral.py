"""Bilateral filter: texture smoothed, edges kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, on_images
from cuebench.cues.parameters import check_number, check_whole, optional

DIAMETERS = (4, 6, 8, 10, 12, 14)
SIGMA_COLOURS = (50, 100, 150, 200)
"""Of both, the ends are published (4 to 14, 50 to 200); the steps between are ours."""
SIGMA_SPACE = 75.0

CUE = CueInfo(
    kind="suppression",
    reference="Tomasi & Manduchi 1998; Burgert et al. 2025 (suppression of texture)",
    identity={"diameter": 1},
    levels={"diameter": DIAMETERS, "sigma_colour": SIGMA_COLOURS, "sigma_space": (SIGMA_SPACE,)},
    device=Tolerance(1, 2e-3),
)


def bilateral(image: Any, *, diameter: int = 9, sigma_colour: float = 100.0, sigma_space: float = SIGMA_SPACE) -> Array:
    r"""Average each pixel with near pixels of similar colour.

    .. math:: \mathrm{out}(x) = \frac{\sum_y w\,I(y)}{\sum_y w},\quad
        w = \exp\left(-\frac{\lVert x-y\rVert^2}{2\sigma_s^2} - \frac{\lVert I(x)-I(y)\rVert_1^2}{2\sigma_c^2}\right)

    over the disc of `diameter` pixels around x. (OpenCV, which does the work here, takes the sum
    of the channels' absolute differences as the distance of two colours.)

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    diameter : int
        Diameter of the neighbourhood in pixels, 1 to 1,025. 1: identity. Published: 4 to 14.
    sigma_colour : float
        On the scale 0–255, > 0. Small: only equal colours mix; large: a plain blur. Published: 50 to 200.
    sigma_space : float
        In pixels, > 0. Published: 75, which weights the disc almost evenly.

    Returns
    -------
    array

    References
    ----------
    .. [1] C. Tomasi and R. Manduchi, "Bilateral filtering for gray and color images", ICCV 1998.
    .. [2] T. Burgert et al., "ImageNet-trained CNNs are not biased towards texture", 2025.
    """
    cv2 = optional("cv2", "the cue 'bilateral'")
    check_whole("diameter", diameter, high=1025)
    check_number("sigma_colour", sigma_colour, above=0)
    check_number("sigma_space", sigma_space, above=0)

    def kernel(pixels: Array) -> Array:
        if diameter == 1:
            return pixels
        plane = np.ascontiguousarray(pixels, dtype=np.float32)
        smooth = cv2.bilateralFilter(plane, diameter, sigma_colour / 255, sigma_space)
        return smooth.reshape(pixels.shape)

    def on_device(images: Any) -> Any:
        return images if diameter == 1 else _on_device(images, diameter // 2, sigma_colour / 255, sigma_space)

    return on_images(kernel, image, on_device=on_device)


def _on_device(images: Any, radius: int, sigma_colour: float, sigma_space: float) -> Any:
    """Filter a tensor N×H×W×C as OpenCV does: a disc of whole radius, borders mirrored about the edge pixels."""
    import torch

    from cuebench.cues.on_device import mirrored, to_device

    height, width = images.shape[1:3]
    rows, columns = (to_device(mirrored(np.arange(-radius, n + radius), n), images.device) for n in (height, width))
    wide = images[:, rows][:, :, columns]
    total, weight = images.clone(), torch.ones_like(images[..., :1])
    for y, x in np.ndindex(2 * radius + 1, 2 * radius + 1):
        distance = (y - radius) ** 2 + (x - radius) ** 2
        if not 0 < distance <= radius**2:
            continue
        near = wide[:, y : y + height, x : x + width]
        colour = (near - images).abs().sum(-1, keepdim=True)
        share = torch.exp(colour.square().mul_(-0.5 / sigma_colour**2).add_(-0.5 * distance / sigma_space**2))
        total.addcmul_(near, share)
        weight += share
    return total / weight
