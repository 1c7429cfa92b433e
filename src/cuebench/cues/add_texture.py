"""Clipped sum of a shape image and the texture residual of another image."""

from __future__ import annotations

from typing import Any

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, on_images
from cuebench.cues.parameters import check_number

WEIGHTS = ((1.0, 1.0), (1.0, 2.0), (0.8, 3.0))
"""Published (γ_S, γ_T) of sums with tex.EED and tex.EEDpat (Table II)."""

CUE = CueInfo(
    kind="mixing",
    reference="Heinert et al., Shape Bias and Robustness Evaluation via Cue Decomposition (Table II)",
    identity={"gamma_t": 0},
    needs=("other",),
    levels={"gamma_s": (1.0, 1.0, 0.8), "gamma_t": (1.0, 2.0, 3.0)},
)


def add_texture(image: Any, other: Any, *, gamma_s: float = 1.0, gamma_t: float = 1.0, centre: float = 0.5) -> Array:
    r"""Add a texture cue of one class to a shape cue of another, and clip.

    .. math:: \mathrm{out} = \mathrm{clip}\left(\gamma_S\,S + \gamma_T\,(T - \mathrm{centre}),\ 0,\ 1\right)

    Parameters
    ----------
    image : array
        The shape cue S, e.g. from `eed`: H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    other : array
        The texture cue T, e.g. from `texture_residual` or `texture_residual_shuffle`, of the same height and
        width.
    gamma_s, gamma_t : float
        Weights ≥ 0. Published: (1, 1), (1, 2), (.8, 3). ``gamma_t=0``: the shape cue alone.
    centre : float
        Level of T that stands for no texture: 0.5 for residuals; 0 adds the picture itself.

    Returns
    -------
    array
        With both weights 1, the same image for both cues, and nothing clipped: the original image again.

    References
    ----------
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition", Table II.
    """
    check_number("gamma_s", gamma_s, low=0)
    check_number("gamma_t", gamma_t, low=0)
    check_number("centre", centre, low=0, high=1)

    def kernel(pixels: Array, *, other: Array) -> Array:
        return gamma_s * pixels + gamma_t * (other - centre)

    return on_images(kernel, image, other=other)
