"""Weighted blend of a shape image and a texture image."""

from __future__ import annotations

from typing import Any

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.parameters import check_number
from cuebench.errors import UserError

WEIGHTS = ((0.7, 0.3), (0.5, 0.5), (0.3, 0.7))
"""Published (γ_S, γ_T) of blends with Voronoi- and patch-shuffled images (Table II)."""

CUE = CueInfo(
    kind="mixing",
    reference="Heinert et al., Shape Bias and Robustness Evaluation via Cue Decomposition (Table II)",
    identity={"gamma_t": 0},
    needs=("other",),
    levels={"gamma_s": (0.7, 0.5, 0.3), "gamma_t": (0.3, 0.5, 0.7)},
)


def blend(image: Any, other: Any, *, gamma_s: float = 0.5, gamma_t: float = 0.5) -> Array:
    r"""Blend a shape cue of one class with a texture cue of another.

    .. math:: \mathrm{out} = \frac{\gamma_S\,S + \gamma_T\,T}{\gamma_S + \gamma_T}

    Parameters
    ----------
    image : array
        The shape cue S, e.g. from `eed`: H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    other : array
        The texture cue T, e.g. from `voronoi_shuffle`, of the same height and width.
    gamma_s, gamma_t : float
        Weights ≥ 0, not both 0. The published ones sum to 1: (.7, .3), (.5, .5), (.3, .7).

    Returns
    -------
    array

    References
    ----------
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition", Table II.
    """
    check_number("gamma_s", gamma_s, low=0)
    check_number("gamma_t", gamma_t, low=0)
    total = gamma_s + gamma_t
    if total == 0:
        raise UserError("gamma_s and gamma_t are both 0", "accepted: weights ≥ 0, at least one above 0")

    def kernel(pixels: Array, *, other: Array) -> Array:
        return gamma_s / total * pixels + gamma_t / total * other

    return on_images(kernel, image, other=other)
