"""Corruption: pixels replaced by white and black at low contrast."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, Tolerance, on_images
from cuebench.cues.grey import as_grey
from cuebench.cues.parameters import check_number

PROBABILITIES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
CONTRAST = 0.3

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    random=True,
    identity={"probability": 0, "contrast": 1, "keep_colour": True},
    levels={"probability": PROBABILITIES},
    device=Tolerance(1, 1e-3),
)


def salt_and_pepper(
    image: Any, *, probability: float = 0.2, contrast: float = CONTRAST, keep_colour: bool = False, rng: Rng = 0
) -> Array:
    r"""Lower the contrast, then set a part of the pixels to white or black, each with half the probability.

    With :math:`u \sim U(0, 1)` for each pixel: white where :math:`u \ge 1 - p/2`, black where :math:`u < p/2`,
    else :math:`(1-c)/2 + c\,I`.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    probability : float
        :math:`p` in [0, 1], part of the pixels that are replaced. 0: none; 1: all.
        Published: 0, .1, .2, .35, .5, .65, .8, .95.
    contrast : float
        :math:`c` in [0, 1] of the pixels that are left; published: .3.
    keep_colour : bool
        Keep the colours; noisy pixels are white or black in all channels. The published stimuli are grey.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("probability", probability, low=0, high=1)
    check_number("contrast", contrast, low=0, high=1)

    def kernel(pixels: Array, *, rng: np.random.Generator) -> Array:
        grey = (1 - contrast) / 2 + contrast * as_grey(pixels, keep_colour)
        draw = rng.random(size=(*grey.shape[:2], 1))
        black = np.where(draw < probability / 2, 0.0, grey)
        return np.where(draw >= 1 - probability / 2, 1.0, black)

    def on_device(images: Any, *, rng: Any) -> Any:
        from cuebench.cues.on_device import uniform

        grey: Any = (1 - contrast) / 2 + contrast * as_grey(images, keep_colour)
        draw = uniform(rng, (*images.shape[1:3], 1), images.device)
        return grey.masked_fill(draw < probability / 2, 0.0).masked_fill(draw >= 1 - probability / 2, 1.0)

    return on_images(kernel, image, random=True, rng=rng, on_device=on_device)
