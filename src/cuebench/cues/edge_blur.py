"""Blurred edges: texture inside regions is kept, the outlines between them are smoothed away."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, on_images
from cuebench.cues.grey import luminance
from cuebench.cues.parameters import check_number, check_whole

SIGMAS = (2.0, 4.0, 8.0)
"""Our own: the paper's figure shows the effect, its levels are not printed."""

CUE = CueInfo(
    kind="texture",
    reference="Dai et al. 2022 (texture cue: images with blurred edges)",
    identity={"sigma": 0},
    levels={"sigma": SIGMAS},
    device=Tolerance(1, 2e-3),
)


def edge_blur(image: Any, *, sigma: float = 4.0, threshold: float = 0.2, reach: int = 4, scale: float = 2.0) -> Array:
    r"""Blur an image along its edges only.

    The strength of an edge is :math:`e = \min(1, \lVert\nabla (G_s * Y)\rVert / \theta)`; :math:`w` is the largest
    strength within `reach` pixels, smoothed. Then :math:`\mathrm{out} = (1-w)\,I + w\,(G_\sigma * I)`. The counterpart
    of `mean_shift`, which keeps the outlines and flattens the regions.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    sigma : float
        Blur along the edges in pixels, ≥ 0. 0: identity; larger values leave less of the outlines.
    threshold : float
        :math:`\theta`, > 0: change of luminance across an edge, in parts of the range, from which it is fully blurred.
        Lower values blur weaker edges, and texture with them.
    reach : int
        Pixels to each side of an edge that are blurred with it, ≥ 0.
    scale : float
        :math:`s` in pixels, > 0: structure that is finer is texture, not an edge.

    Returns
    -------
    array

    Notes
    -----
    Dai et al. print no formula and no parameters; this follows their description.

    References
    ----------
    .. [1] D. Dai et al., "Rethinking the image feature biases exhibited by deep convolutional neural network models in
       image recognition", CAAI Transactions on Intelligence Technology 2022.
    """
    check_number("sigma", sigma, low=0)
    check_number("threshold", threshold, above=0)
    check_number("scale", scale, above=0)
    check_whole("reach", reach, low=0)

    def kernel(pixels: Array) -> Array:
        from scipy.ndimage import maximum_filter

        if sigma == 0:
            return pixels
        smooth = _blurred(luminance(pixels).astype(np.float64), scale)
        strength = np.minimum(_steepness(smooth, scale) / threshold, 1)
        weight = _blurred(maximum_filter(strength, size=(2 * reach + 1, 2 * reach + 1, 1), mode="nearest"), reach / 2)
        return (1 - weight) * pixels + weight * _blurred(pixels.astype(np.float64), sigma)

    def on_device(images: Any) -> Any:
        from torch.nn.functional import max_pool2d

        if sigma == 0:
            return images
        smooth = _blurred_tensor(luminance(images), scale)
        strength = (_steepness_tensor(smooth, scale) / threshold).clamp(max=1)
        largest = max_pool2d(strength.movedim(-1, 1), 2 * reach + 1, stride=1, padding=reach).movedim(1, -1)
        weight = _blurred_tensor(largest, reach / 2)
        return (1 - weight) * images + weight * _blurred_tensor(images, sigma)

    return on_images(kernel, image, on_device=on_device)


def _taps(sigma: float) -> Array:
    radius = int(4.0 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2) if radius else np.ones(1)
    return np.asarray(weights / weights.sum())


def _blurred(image: Array, sigma: float) -> Array:
    from scipy.ndimage import convolve1d

    taps = _taps(sigma)
    return convolve1d(convolve1d(image, taps, axis=0, mode="mirror"), taps, axis=1, mode="mirror")


def _blurred_tensor(images: Any, sigma: float) -> Any:
    from cuebench.cues.on_device import band, filtered

    taps = tuple(_taps(sigma).tolist())
    rows, columns = (band(n, taps, mirror=True) for n in images.shape[1:3])
    return filtered(images, rows, columns)


def _steepness(smooth: Array, scale: float) -> Array:
    """Return the gradient as the height of the step that would cause it: a step blurred by s rises by 1/(s√2π)."""
    down, across = (np.gradient(smooth, axis=a) if smooth.shape[a] > 1 else np.zeros_like(smooth) for a in (0, 1))
    return np.hypot(down, across) * (scale * np.sqrt(2 * np.pi))


def _steepness_tensor(smooth: Any, scale: float) -> Any:
    import torch

    still = torch.zeros_like(smooth)
    down, across = (torch.gradient(smooth, dim=a)[0] if smooth.shape[a] > 1 else still for a in (1, 2))
    return torch.hypot(down, across) * (scale * np.sqrt(2 * np.pi))
