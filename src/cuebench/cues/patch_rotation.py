"""Patch rotation: each square of a regular grid turned in place by a random multiple of 90°."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._moves import cuts, move_pixels
from cuebench.cues.base import CueInfo, Rng
from cuebench.cues.parameters import check_choice, check_whole
from cuebench.cues.patch_shuffle import BURGERT_GRIDS
from cuebench.errors import UserError

ANGLES = (0, 90, 180, 270)

CUE = CueInfo(
    kind="suppression",
    reference="Burgert et al. 2025 (suppression of global shape)",
    random=True,
    identity={"angles": (0,)},
    moves_mask=True,
    levels={"grid": BURGERT_GRIDS},
)


def patch_rotation(image: Any, *, grid: int = 8, angles: Sequence[int] = ANGLES, mask: Any = None, rng: Rng = 0) -> Any:
    """Turn each patch of a ``grid`` × ``grid`` cutting by a random angle, in place.

    Patches keep their place, so coarse layout and colour stay and contours break. Every pixel is kept. A patch
    that is not square can only be turned by 0° or 180°: for it, 90° and 270° are taken as 0° and 180°.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    grid : int
        Patches along each side. 1 turns the whole image; a grid as fine as the image does nothing.
    angles : sequence of {0, 90, 180, 270}
        Angles, counter-clockwise, to draw from with equal probability. ``(0,)``: identity.
    mask : array, optional
        Label mask (bool or integers, H×W or N×H×W) that is moved with the image.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array, or (array, array)
        The image; with ``mask=`` the image and the moved mask.

    References
    ----------
    .. [1] T. Burgert et al., "ImageNet-trained CNNs are not biased towards texture", 2025.
    """
    check_whole("grid", grid)
    if not isinstance(angles, Sequence | np.ndarray) or len(angles) == 0:
        raise UserError(f"angles is {angles!r}", "accepted: one or more of 0, 90, 180, 270")
    turns = [check_choice("angles", angle, ANGLES) // 90 for angle in angles]

    def index_map(height: int, width: int, rng: np.random.Generator) -> Array:
        rows, columns = cuts(height, grid), cuts(width, grid)
        drawn = rng.choice(turns, size=(len(rows) - 1, len(columns) - 1))
        index = np.arange(height * width).reshape(height, width)
        for row, column in np.ndindex(drawn.shape):
            patch = index[rows[row] : rows[row + 1], columns[column] : columns[column + 1]]
            quarters = int(drawn[row, column])
            if patch.shape[0] != patch.shape[1]:
                quarters -= quarters % 2
            patch[...] = np.rot90(patch, quarters).copy()
        return index

    return move_pixels(index_map, image, labels=mask, rng=rng)
