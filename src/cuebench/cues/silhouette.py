"""Filled silhouette: the object in one colour on a background of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.parameters import check_number

CUE = CueInfo(
    kind="shape",
    reference="Geirhos et al. 2019, filled silhouettes (black object on white)",
    needs=("mask",),
)


def silhouette(image: Any, *, mask: Any, foreground: float = 0.0, background: float = 1.0) -> Array:
    """Return the object's silhouette: only the outline of the mask is left of the image.

    ``out = foreground`` inside the mask, ``background`` outside.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; only its shape and dtype matter.
    mask : array
        Object mask, H×W or N×H×W; non-zero inside the object.
    foreground, background : float
        Grey levels in [0, 1]; published: black on white.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "ImageNet-trained CNNs are biased towards texture", ICLR 2019.
    """
    check_number("foreground", foreground, low=0, high=1)
    check_number("background", background, low=0, high=1)

    def kernel(pixels: Array, *, mask: Array) -> Array:
        return np.where(mask[..., None], foreground, background).astype(pixels.dtype)

    return on_images(kernel, image, mask=mask)
