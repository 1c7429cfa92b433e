"""Corruption: lower contrast around mid-grey."""

from __future__ import annotations

from typing import Any

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, on_images
from cuebench.cues.grey import as_grey
from cuebench.cues.parameters import check_number

LEVELS = (1.0, 0.5, 0.3, 0.15, 0.1, 0.05, 0.03, 0.01)

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    identity={"level": 1, "keep_colour": True},
    levels={"level": LEVELS},
    device=Tolerance(1, 1e-3),
)


def contrast(image: Any, *, level: float = 0.1, keep_colour: bool = False) -> Array:
    r"""Reduce the contrast.

    :math:`\mathrm{out} = (1-c)/2 + c\,I` on the luminance :math:`I`.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    level : float
        :math:`c` in [0, 1]. 1: unchanged; 0: uniform mid-grey.
        Published: 1, .5, .3, .15, .1, .05, .03, .01.
    keep_colour : bool
        Keep the colours, as for segmentation; the published stimuli are grey.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("level", level, low=0, high=1)

    def kernel(pixels: Array) -> Array:
        return (1 - level) / 2 + level * as_grey(pixels, keep_colour)

    return on_images(kernel, image, on_device=kernel)
