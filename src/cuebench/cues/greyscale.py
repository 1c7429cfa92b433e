"""Greyscale: colour faded towards luminance."""

from __future__ import annotations

from typing import Any

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rounding, Tolerance, on_images
from cuebench.cues.grey import luminance
from cuebench.cues.parameters import check_choice, check_number

ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""The ends are published; the steps between are ours."""

CUE = CueInfo(
    kind="suppression",
    reference="Burgert et al. 2025 (suppression of colour)",
    identity={"alpha": 0},
    levels={"alpha": ALPHAS},
    device=Tolerance(1, 1e-3),
)


def greyscale(image: Any, *, alpha: float = 1.0, weights: str = "rec709", rounding: Rounding = "round") -> Array:
    r"""Mix the image with its luminance.

    :math:`\mathrm{out} = (1-\alpha)\,I + \alpha\,Y` with :math:`Y = 0.2125 R + 0.7154 G + 0.0721 B` (``rec709``, as
    scikit-image) or :math:`Y = 0.299 R + 0.587 G + 0.114 B` (``rec601``, as OpenCV and the authors of [1]_).

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1]. Grey images come back as they are.
    alpha : float
        In [0, 1]. 0: identity; 1: no colour left. Published: 0.2 to 1.
    weights : {"rec709", "rec601"}
        Parts of the channels in the luminance.
    rounding : {"round", "truncate"}
        Of a uint8 image. ``"truncate"``: as the authors' code, which rounds the luminance to grey levels and truncates
        the mixture.

    Returns
    -------
    array
        With as many channels as the input.

    References
    ----------
    .. [1] T. Burgert et al., "ImageNet-trained CNNs are not biased towards texture", 2025.
    """
    check_number("alpha", alpha, low=0, high=1)
    check_choice("weights", weights, ("rec709", "rec601"))

    def kernel(pixels: Array) -> Array:
        grey = luminance(pixels) if weights == "rec709" or pixels.shape[-1] == 1 else _rec601(pixels)
        if rounding == "truncate":
            grey = (grey * 255).round() / 255
        return (1 - alpha) * pixels + alpha * grey

    return on_images(kernel, image, on_device=kernel, rounding=rounding)


def _rec601(pixels: Array) -> Array:
    red, green, blue = (pixels[..., channel : channel + 1] for channel in range(3))
    return 0.299 * red + 0.587 * green + 0.114 * blue
