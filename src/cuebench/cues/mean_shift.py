"""Mean-shift filtering: flat regions with sharp borders, the older alternative to edge-enhancing diffusion."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.parameters import check_number, optional

CUE = CueInfo(
    kind="shape",
    reference="Comaniciu & Meer 2002",
    identity={"colour_radius": 0},
    quick={"spatial_radius": 2},
)


def mean_shift(image: Any, *, spatial_radius: float = 10.0, colour_radius: float = 30.0) -> Array:
    r"""Move each pixel's colour to the nearest mode of the colours around it.

    Repeats :math:`(x, c) \leftarrow \mathrm{mean}\{(x', c') : |x'-x|_\infty \le h_s,\ \lVert c'-c\rVert_2 \le h_r\}`
    until it stands still, and paints the pixel in the last colour. Texture within `colour_radius` disappears,
    borders of larger contrast stay sharp.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    spatial_radius : float
        :math:`h_s` in pixels, > 0. Larger values merge larger regions, in time ∝ :math:`h_s^2`.
    colour_radius : float
        :math:`h_r` on the scale 0–255, ≥ 0. 0: identity; very large: everything flows together.

    Returns
    -------
    array

    Notes
    -----
    Done by OpenCV (``pyrMeanShiftFiltering``, without its pyramid) on 8-bit values: a float image comes back in
    steps of 1/255.

    References
    ----------
    .. [1] D. Comaniciu and P. Meer, "Mean shift: a robust approach toward feature space analysis", PAMI 2002.
    """
    cv2 = optional("cv2", "the cue 'mean_shift'")
    check_number("spatial_radius", spatial_radius, above=0)
    check_number("colour_radius", colour_radius, low=0)

    def kernel(pixels: Array) -> Array:
        if colour_radius == 0:
            return pixels
        levels = np.rint(np.broadcast_to(pixels, (*pixels.shape[:2], 3)) * 255).astype(np.uint8)
        flat = cv2.pyrMeanShiftFiltering(levels, spatial_radius, colour_radius, maxLevel=0)
        return flat[..., : pixels.shape[2]].astype(pixels.dtype) / 255

    return on_images(kernel, image)
