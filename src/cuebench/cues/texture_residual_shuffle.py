"""tex.EEDpat: the patch-shuffled residual of edge-enhancing diffusion."""

from __future__ import annotations

from typing import Any

from cuebench.cues.base import CueInfo, Rng, Tolerance
from cuebench.cues.patch_shuffle import GRID
from cuebench.cues.patch_shuffle import patch_shuffle as _patch_shuffle
from cuebench.cues.texture_residual import texture_residual as _texture_residual

CUE = CueInfo(
    kind="texture",
    reference="Heinert et al., Shape Bias and Robustness Evaluation via Cue Decomposition (tex.EEDpat)",
    random=True,
    moves_mask=True,
    quick={"steps": 2},
    passes_to="eed",
    device=Tolerance(1, 5e-3),
)


def texture_residual_shuffle(
    image: Any, *, grid: int = GRID, mask: Any = None, rng: Rng = 0, **eed_options: Any
) -> Any:
    r"""Return `patch_shuffle` of `texture_residual`: texture without the outlines the residual still shows.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    grid : int
        Patches along each side; 1: no shuffle.
    mask : array, optional
        Label mask (bool or integers, H×W or N×H×W) that is moved with the image.
    rng : int, Generator, sequence of int, or None
        Seed of the shuffle, the same for each image; or one seed for each image.
    **eed_options
        Passed to `eed`.

    Returns
    -------
    array, or (array, array)
        The image; with ``mask=`` the image and the moved mask.

    References
    ----------
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition", Fig. 4.
    """
    return _patch_shuffle(_texture_residual(image, **eed_options), grid=grid, mask=mask, rng=rng)
