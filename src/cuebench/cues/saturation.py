"""Saturation: colours nearer to grey, or further from it."""

from __future__ import annotations

from typing import Any

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, on_images
from cuebench.cues.grey import luminance
from cuebench.cues.parameters import check_number

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""Our own: from grey over the original to colours that leave the gamut."""

CUE = CueInfo(
    kind="corruption",
    reference="Hendrycks & Dietterich 2019 (saturate); factor of luminance differences as in Pillow and torchvision",
    identity={"factor": 1},
    levels={"factor": LEVELS},
    device=Tolerance(1, 1e-3),
)


def saturation(image: Any, *, factor: float = 0.5) -> Array:
    r"""Scale the difference of each pixel from its luminance.

    :math:`\mathrm{out} = \mathrm{clip}(Y + f\,(I - Y))` with :math:`Y = 0.2125 R + 0.7154 G + 0.0721 B`. Luminance is
    kept where nothing is clipped, so shape and texture stay and colour alone changes.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1]. Grey images come back as they are.
    factor : float
        ≥ 0. 0: grey; 1: identity; above 1: more colourful, clipped at the gamut.

    Returns
    -------
    array

    See Also
    --------
    greyscale : the published suppression of colour; ``greyscale(alpha=a)`` is ``saturation(factor=1 - a)``.
    """
    check_number("factor", factor, low=0)

    def kernel(pixels: Array) -> Array:
        grey = luminance(pixels)
        return grey + factor * (pixels - grey) if factor != 1 else pixels

    return on_images(kernel, image, on_device=kernel)
