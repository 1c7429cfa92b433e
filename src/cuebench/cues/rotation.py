"""Corruption: the image turned by a multiple of 90° (or any angle)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, on_images
from cuebench.cues.grey import MEAN_GREY, as_grey
from cuebench.cues.parameters import check_number

ANGLES = (0, 90, 180, 270)

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    identity={"angle": 0, "keep_colour": True},
    moves_mask=True,
    levels={"angle": ANGLES},
    device=Tolerance(1, 1e-3),
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

    def on_device(images: Any) -> Any:
        return _turn_tensor(as_grey(images, keep_colour), angle, border)

    return on_images(kernel, image, labels=mask, on_device=on_device)


def _turn(array: Array, angle: float, *, order: int, fill: float) -> Array:
    from scipy.ndimage import rotate

    quarters = _quarters(angle, *array.shape[:2])
    if quarters is not None:
        return np.rot90(array, quarters)
    source = array.astype(np.uint8) if array.dtype == np.bool_ else array
    return rotate(source, angle, axes=(1, 0), reshape=False, order=order, mode="constant", cval=fill)


def _quarters(angle: float, height: int, width: int) -> int | None:
    """Return the number of quarter turns that only move pixels; None where pixels are interpolated."""
    quarters, rest = divmod(angle % 360, 90)
    return int(quarters) if rest == 0 and (quarters % 2 == 0 or height == width) else None


def _turn_tensor(images: Any, angle: float, border: float) -> Any:
    """Turn a tensor N×H×W×C; the places are computed as scipy's ``rotate`` does, what lies outside is `border`."""
    import torch
    from scipy.special import cosdg, sindg

    from cuebench.cues.on_device import sampled, to_device

    height, width = images.shape[1:3]
    quarters = _quarters(angle, height, width)
    if quarters is not None:
        return torch.rot90(images, quarters, (1, 2))
    turn = np.array([[cosdg(angle), sindg(angle)], [-sindg(angle), cosdg(angle)]])
    centre = (np.array([height, width]) - 1) / 2
    start = centre - turn @ centre
    y, x = np.indices((height, width)).astype(np.float64)
    down, right = (start[k] + y * turn[k, 0] + x * turn[k, 1] for k in range(2))
    inside = (down >= 0) & (down <= height - 1) & (right >= 0) & (right <= width - 1)
    found = sampled(images, *(to_device(np.where(inside, place, 0), images.device) for place in (down, right)))
    return torch.where(to_device(inside, images.device)[..., None], found, border)
