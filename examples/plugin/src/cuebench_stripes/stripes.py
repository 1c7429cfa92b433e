"""Stripes: a sine grating laid over an image, which hides its texture more than its outline."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, on_images
from cuebench.cues.parameters import check_number
from cuebench.errors import UserError

VERSION = 1
"""A change of any pixel is a new version: stored answers to other stripes must never be taken for answers to these."""

CUE = CueInfo(
    kind="corruption",
    reference="the grating masker of Legge & Foley 1980; its use on objects is new in this example",
    random=True,
    identity={"contrast": 0.0},
    levels={"contrast": (0.25, 0.5, 0.75)},
)


def stripes(
    image: Any,
    *,
    contrast: float = 0.5,
    period: float = 12.0,
    angle: float = 45.0,
    version: int = VERSION,
    rng: Rng = 0,
) -> Any:
    r"""Blend the image with a sine grating of random phase.

    :math:`\mathrm{out} = (1 - c)\,I + c\,(1 + \sin(2\pi\,u/p + \varphi))/2`, with contrast :math:`c`, period :math:`p`,
    :math:`u = x\cos\theta + y\sin\theta` and a phase :math:`\varphi` that is uniform in :math:`[0, 2\pi)`.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    contrast : float
        Michelson contrast of the stripes, in [0, 1]. 0: identity; 1: nothing but stripes.
    period : float
        Width of a dark and a bright stripe together, in pixels; at least 2.
    angle : float
        Direction across the stripes in degrees; 0: vertical stripes.
    version : int
        Version of this cue, for recipes; another one than the current is refused.
    rng : int, Generator, sequence of int, or None
        Seed of the phase, the same for each image; or one seed for each image.

    Returns
    -------
    array
        Shape and dtype of the image.

    References
    ----------
    .. [1] G. E. Legge and J. M. Foley, "Contrast masking in human vision", J. Opt. Soc. Am. 70(12), 1980.
    """
    check_number("contrast", contrast, low=0, high=1)
    check_number("period", period, low=2)
    check_number("angle", angle)
    if version != VERSION:
        raise UserError(f"stripes of version {version!r}: installed is version {VERSION}", "make the stimuli again")

    def blend(picture: Array, rng: np.random.Generator) -> Array:
        y, x = np.mgrid[: picture.shape[0], : picture.shape[1]]
        across = x * np.cos(np.deg2rad(angle)) + y * np.sin(np.deg2rad(angle))
        grating = (1 + np.sin(2 * np.pi * (across / period + rng.random()))) / 2
        mixed: Array = (1 - contrast) * picture + contrast * grating[..., None].astype(picture.dtype)
        return mixed

    return on_images(blend, image, random=True, rng=rng)
