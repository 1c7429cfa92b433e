"""Corruption: the image turned by a multiple of 90° (or any angle)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.grey import MEAN_GREY, as_grey
from cuebench.cues.parameters import check_number

ANGLES = (0, 90, 180, 270)

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    identity={"angle": 0, "keep_colour": True},
    moves_mask=True,
    levels={"angle": ANGLES},
)


def rotation(
    image: Any,
    *,
    angle: float = 90.0,
    border: float = MEAN_GREY,
    border_label: int = 0,
    mask: Any = None,
    keep_colour: bool = False,
) -> Any:
    """Turn the image counter-clockwise about its centre; the size stays.

    Multiples of 90° of a square image, and 180° of any, only move pixels. Other angles are interpolated linearly,
    and what comes from outside the image is filled.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    angle : float
        In degrees; published: 0, 90, 180, 270.
    border : float
        Grey level of the filled corners, in [0, 1].
    border_label : int
        Label of the filled corners, e.g. the ignore index.
    mask : array, optional
        Label mask (bool or integers, H×W or N×H×W) that is turned with the image (nearest neighbour).
    keep_colour : bool
        Keep the colours, as for segmentation; the published stimuli are grey.

    Returns
    -------
    array, or (array, array)
        The image; with ``mask=`` the image and the turned mask.

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("angle", angle)
    check_number("border", border, low=0, high=1)

    def kernel(pixels: Array, *, labels: Array | None = None) -> Any:
        turned = _turn(as_grey(pixels, keep_colour), angle, order=1, fill=border)
        return turned if labels is None else (turned, _turn(labels, angle, order=0, fill=border_label))

    return on_images(kernel, image, labels=mask)


def _turn(array: Array, angle: float, *, order: int, fill: float) -> Array:
    from scipy.ndimage import rotate

    quarters, rest = divmod(angle % 360, 90)
    if rest == 0 and (quarters % 2 == 0 or array.shape[0] == array.shape[1]):
        return np.rot90(array, int(quarters))
    source = array.astype(np.uint8) if array.dtype == np.bool_ else array
    return rotate(source, angle, axes=(1, 0), reshape=False, order=order, mode="constant", cval=fill)
