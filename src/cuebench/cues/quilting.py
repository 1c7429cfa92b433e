"""Image quilting: new texture from overlapping blocks of the image, joined along minimum-error cuts."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, on_images
from cuebench.cues.blocks import Block, Chooser, Place, fitting, quilt
from cuebench.cues.parameters import check_number, check_whole, optional
from cuebench.errors import UserError

CUE = CueInfo(
    kind="texture",
    reference="Efros & Freeman 2001; the texture proxy of REFINED-BIAS, appendix A.9",
    random=True,
    moves_mask=True,
    quick={"block": 6},
)


def quilting(
    image: Any,
    *,
    block: int = 32,
    overlap: float = 1 / 6,
    tolerance: float = 0.1,
    inside: Any = None,
    mask: Any = None,
    rng: Rng = 0,
) -> Any:
    r"""Synthesise texture of the image's own size by quilting blocks of it.

    Blocks are laid row by row. For each, the squared difference to what is already there, summed over the
    overlap, is computed for every place of the image; one of the places within :math:`(1 + \mathrm{tolerance})`
    of the smallest is drawn, and joined along the path of least difference through the overlap. Every output
    pixel is a pixel of the input.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    block : int
        Side of a block in pixels, at least the size of one texture element. Larger blocks keep more shape; 1
        shuffles pixels. Cut to the image's shorter side.
    overlap : float
        Part of a block in [0, 0.5] shared with each neighbour. 0: no search and no cut.
    tolerance : float
        How much worse than the best a place may be, ≥ 0. 0 always takes the best and tends to repeat itself.
    inside : array, optional
        Object mask; blocks are then taken from its inside only.
    mask : array, optional
        Label mask (bool or integers, H×W or N×H×W) that is moved with the image.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array, or (array, array)
        The image; with ``mask=`` the image and the moved mask.

    Notes
    -----
    Source and result have the same size, so the best match of a block is often the true continuation of its
    neighbour, and the result would be a shifted copy. Places within half a block of that are left out.

    References
    ----------
    .. [1] A. A. Efros and W. T. Freeman, "Image quilting for texture synthesis and transfer", SIGGRAPH 2001.
    """
    cv2 = optional("cv2", "the cue 'quilting'")
    check_whole("block", block)
    check_number("overlap", overlap, low=0, high=0.5)
    check_number("tolerance", tolerance, low=0)

    def kernel(pixels: Array, *, rng: np.random.Generator, mask: Array | None = None, labels: Any = None) -> Any:
        side = min(block, *pixels.shape[:2])
        shared = min(round(side * overlap), side - 1)
        allowed = fitting(np.ones(pixels.shape[:2], bool) if mask is None else mask, side, side)
        if not allowed.any():
            raise UserError(
                f"no block of {side}×{side} pixels fits inside the mask", "use a smaller block= or a larger object"
            )
        source = quilt(
            pixels, Block(side, side, shared, shared), _chooser(cv2, pixels, side, shared, allowed, tolerance, rng)
        )
        moved = pixels.reshape(-1, pixels.shape[2])[source]
        return moved if labels is None else (moved, labels.reshape(-1)[source])

    return on_images(kernel, image, random=True, rng=rng, mask=inside, labels=mask, raw=True)


def _chooser(
    cv2: ModuleType, image: Array, side: int, shared: int, allowed: Array, tolerance: float, rng: np.random.Generator
) -> Chooser:
    pixels = image.astype(np.float32)

    def choose(old: Array, place: Place) -> tuple[int, int]:
        usable = allowed & _not_near(allowed.shape, side, shared, place)
        usable = usable if usable.any() else allowed
        error = np.where(usable, _overlap_error(cv2, pixels, old, side, shared, place), np.inf)
        # FFT round-off can make a perfect match slightly negative; the last term admits equals.
        limit = (1 + tolerance) * max(float(error.min()), 0.0) + 1e-6 * max(1.0, float(pixels.max()) ** 2)
        y, x = np.unravel_index(rng.choice(np.flatnonzero(error <= limit)), error.shape)
        return int(y), int(x)

    return choose


def _overlap_error(cv2: ModuleType, pixels: Array, old: Array, side: int, shared: int, place: Place) -> Array:
    """Squared difference of the L-shaped overlap for each top left corner of a block."""
    rows, columns = pixels.shape[0] - side + 1, pixels.shape[1] - side + 1
    error = np.zeros((rows, columns), dtype=np.float64)
    old = old.astype(np.float32)
    if place.row and shared:
        error += cv2.matchTemplate(pixels, old[:shared], cv2.TM_SQDIFF)[:rows, :columns]
    if place.column and shared:
        below = shared if place.row else 0
        strip = np.ascontiguousarray(old[below:, :shared])
        error += cv2.matchTemplate(pixels, strip, cv2.TM_SQDIFF)[below : below + rows, :columns]
    return error


def _not_near(shape: tuple[int, ...], side: int, shared: int, place: Place) -> Array:
    """Leave out the true continuations of the left and the upper neighbour."""
    far = np.ones(shape, dtype=bool)
    step, reach = side - shared, side // 2
    for neighbour, (down, right) in ((place.left, (0, step)), (place.above, (step, 0))):
        if neighbour is not None:
            y, x = neighbour[0] + down, neighbour[1] + right
            far[max(0, y - reach) : max(0, y + reach + 1), max(0, x - reach) : max(0, x + reach + 1)] = False
    return far
