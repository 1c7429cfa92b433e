"""Non-local means: texture averaged over similar patches, edges kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.parameters import check_choice, check_number, check_whole, optional
from cuebench.errors import UserError

STRENGTHS = (5, 10, 15, 20, 25)
"""The ends are published; the steps between are ours."""

CUE = CueInfo(
    kind="suppression",
    reference="Buades, Coll & Morel 2005; Burgert et al. 2025 (suppression of texture)",
    identity={"strength": 0},
    quick={"search": 3, "patch": 3},
    levels={"strength": STRENGTHS},
)


def non_local_means(
    image: Any, *, strength: float = 15.0, patch: int = 7, search: int = 21, colour: str = "cielab"
) -> Array:
    r"""Average each pixel with pixels whose surroundings look alike.

    .. math:: \mathrm{out}(x) = \frac{\sum_y w\,I(y)}{\sum_y w},\quad
        w = \exp\left(-\frac{\overline{\lVert P(x) - P(y)\rVert^2}}{h^2}\right)

    over the `search` window around x, with the mean squared difference of the patches P around x and y.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    strength : float
        :math:`h` on the scale 0–255, ≥ 0. 0: identity; published: 5 to 25; larger values flatten more.
    patch, search : int
        Odd sizes in pixels of the compared patches and of the window that is searched. The published template of 14 is
        what OpenCV takes for 15.
    colour : {"cielab", "rgb"}
        Filter luminance and chroma separately; or the three channels together, as the authors of [2]_ do, whose
        distance is then the mean over the channels.

    Returns
    -------
    array

    Notes
    -----
    Done by OpenCV on 8-bit values: a float image comes back in steps of 1/255.

    References
    ----------
    .. [1] A. Buades, B. Coll and J.-M. Morel, "A non-local algorithm for image denoising", CVPR 2005.
    .. [2] T. Burgert et al., "ImageNet-trained CNNs are not biased towards texture", 2025.
    """
    cv2 = optional("cv2", "the cue 'non_local_means'")
    check_number("strength", strength, low=0)
    check_choice("colour", colour, ("cielab", "rgb"))
    for name, value in (("patch", patch), ("search", search)):
        if check_whole(name, value) % 2 == 0:
            raise UserError(f"{name} is {value}", f"accepted: an odd whole number, e.g. {value + 1}")

    def kernel(pixels: Array) -> Array:
        if strength == 0:
            return pixels
        levels = np.rint(pixels * 255).astype(np.uint8)
        if pixels.shape[2] == 1 or colour == "rgb":
            flat = cv2.fastNlMeansDenoising(levels, None, strength, patch, search)
        else:
            flat = cv2.fastNlMeansDenoisingColored(levels, None, strength, strength, patch, search)
        return flat.reshape(pixels.shape).astype(pixels.dtype) / 255

    return on_images(kernel, image)
