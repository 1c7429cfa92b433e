"""Corruption: additive uniform noise at low contrast."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, Tolerance, on_images
from cuebench.cues.grey import as_grey
from cuebench.cues.parameters import check_number

WIDTHS = (0.0, 0.03, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9)
CONTRAST = 0.3

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    random=True,
    identity={"width": 0, "contrast": 1, "keep_colour": True},
    levels={"width": WIDTHS},
    device=Tolerance(1, 1e-3),
)


def uniform_noise(
    image: Any, *, width: float = 0.35, contrast: float = CONTRAST, keep_colour: bool = False, rng: Rng = 0
) -> Array:
    r"""Lower the contrast, then add independent uniform noise to each pixel.

    :math:`\mathrm{out} = \mathrm{clip}\left((1-c)/2 + c\,I + U(-w, w)\right)`

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    width : float
        :math:`w` ≥ 0, half the range of the noise. 0: none. Published: 0, .03, .05, .1, .2, .35, .6, .9.
    contrast : float
        :math:`c` in [0, 1] before the noise; published: .3, which leaves room for it.
    keep_colour : bool
        Keep the colours, with independent noise in each channel; the published stimuli are grey.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("width", width, low=0)
    check_number("contrast", contrast, low=0, high=1)

    def kernel(pixels: Array, *, rng: np.random.Generator) -> Array:
        grey = (1 - contrast) / 2 + contrast * as_grey(pixels, keep_colour)
        return grey + rng.uniform(-width, width, size=grey.shape)

    def on_device(images: Any, *, rng: Any) -> Any:
        from cuebench.cues.on_device import uniform

        grey = (1 - contrast) / 2 + contrast * as_grey(images, keep_colour)
        return grey + (uniform(rng, grey.shape[1:], grey.device) * (2 * width) - width)

    return on_images(kernel, image, random=True, rng=rng, on_device=on_device)
