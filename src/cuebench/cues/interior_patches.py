"""REFINED-BIAS texture cue: patches from the inside of the object, re-ordered over the whole image."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, on_images
from cuebench.cues.blocks import Block, Place, fitting, quilt
from cuebench.cues.parameters import check_number, check_whole
from cuebench.errors import UserError

GRIDS = (4, 8, 16, 32)
"""The four published patch sizes, as patches along a side of the 224-pixel image."""

CUE = CueInfo(
    kind="texture",
    reference="REFINED-BIAS (On the Reliability of Cue Conflict and Beyond, 2026), appendix A.1",
    random=True,
    needs=("mask",),
    levels={"grid": GRIDS},
)


def interior_patches(
    image: Any, *, mask: Any, grid: int = 8, overlap: float = 0.25, labels: Any = None, rng: Rng = 0
) -> Any:
    r"""Cover the image with patches cropped from the inside of the object only.

    Patches of :math:`\lceil H/G\rceil \times \lceil W/G\rceil` pixels (plus their overlap) are drawn uniformly from all
    places where they lie wholly inside `mask`, so none holds a piece of the outline. They are laid out on a
    G×G grid; neighbours overlap and are joined along the cut where they differ least, so that the grid does
    not show.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    mask : array
        Object mask, H×W or N×H×W; non-zero inside the object.
    grid : int
        Patches along each side; published: 4, 8, 16, 32. The larger, the finer the texture that is left.
    overlap : float
        Part of a patch in [0, 0.5] that it shares with each neighbour. 0: hard edges, as the published images
        show them.
    labels : array, optional
        Label mask that is moved with the image.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array, or (array, array)
        The image; with ``labels=`` the image and the moved labels.

    Raises
    ------
    UserError
        No patch of this size fits inside the mask; the hint names the coarsest published grid that does.

    Notes
    -----
    The paper says that re-ordering follows Mohla et al. (2022) and leaves no grid artefacts, but gives no formula,
    and the published 4×4 and 8×8 images do show straight patch borders. The cut of Efros & Freeman is used here.

    References
    ----------
    .. [1] P. J. Kim et al., "On the Reliability of Cue Conflict and Beyond", 2026, appendix A.1.
    .. [2] A. A. Efros and W. T. Freeman, "Image quilting for texture synthesis and transfer", SIGGRAPH 2001.
    """
    check_whole("grid", grid)
    check_number("overlap", overlap, low=0, high=0.5)

    def kernel(pixels: Array, *, mask: Array, rng: np.random.Generator, labels: Array | None = None) -> Any:
        block = _block(mask.shape, grid, overlap)
        corners = np.argwhere(_corners(mask, grid, overlap))
        if not len(corners):
            raise _does_not_fit(mask, block, overlap)

        def choose(old: Array, place: Place) -> tuple[int, int]:
            y, x = corners[rng.integers(len(corners))]
            return int(y), int(x)

        source = quilt(pixels, block, choose)
        moved = pixels.reshape(-1, pixels.shape[2])[source]
        return moved if labels is None else (moved, labels.reshape(-1)[source])

    return on_images(kernel, image, random=True, rng=rng, mask=mask, labels=labels, raw=True)


def _block(size: tuple[int, ...], grid: int, overlap: float) -> Block:
    steps = [max(1, -(-length // grid)) for length in size]
    shared = [min(round(step * overlap), length - step) for step, length in zip(steps, size)]
    return Block(steps[0] + shared[0], steps[1] + shared[1], shared[0], shared[1])


def _corners(mask: Array, grid: int, overlap: float) -> Array:
    block = _block(mask.shape, grid, overlap)
    return fitting(mask, block.height, block.width)


def _does_not_fit(mask: Array, block: Block, overlap: float) -> UserError:
    fits = [g for g in GRIDS if _corners(mask, g, overlap).any()]
    hint = f"accepted for this mask: grid={fits[0]} or finer" if fits else "use another image or a larger object"
    return UserError(
        f"no patch of {block.height}×{block.width} pixels fits inside the mask ({int(mask.sum())} pixels)", hint
    )
