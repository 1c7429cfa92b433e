"""Patch rotation: each square of a regular grid turned in place by a random multiple of 90°."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._moves import cuts, move_pixels
from cuebench.cues.base import CueInfo, Rng, Tolerance
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
    device=Tolerance(),
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
        patch, turned = _turned(height, width, grid)
        quarters = draw(height, width, rng)[patch]
        return np.take_along_axis(turned, quarters[None], 0)[0].reshape(height, width)

    def draw(height: int, width: int, rng: np.random.Generator) -> Array:
        """Draw the quarter turns of each patch."""
        return rng.choice(turns, size=(min(grid, height), min(grid, width))).reshape(-1)

    def on_device(height: int, width: int, rngs: Any, device: Any) -> Any:
        from cuebench.cues.on_device import per_image, to_device

        patch, turned = (to_device(array, device) for array in _turned(height, width, grid))
        quarters = per_image(lambda rng: draw(height, width, rng), rngs, device)
        return turned.gather(0, quarters[:, patch])

    return move_pixels(index_map, image, labels=mask, rng=rng, on_device=on_device)


@lru_cache(maxsize=32)
def _turned(height: int, width: int, grid: int) -> tuple[Array, Array]:
    """Return the number of each pixel's patch (HW), and where its pixel comes from after 0 … 3 quarter turns (4×HW)."""
    rows, columns = cuts(height, grid), cuts(width, grid)
    patch: Array = np.empty((height, width), np.intp)
    turned = np.stack([np.arange(height * width).reshape(height, width)] * 4)
    for number, (row, column) in enumerate(np.ndindex(len(rows) - 1, len(columns) - 1)):
        window = slice(rows[row], rows[row + 1]), slice(columns[column], columns[column + 1])
        patch[window] = number
        square = patch[window].shape[0] == patch[window].shape[1]
        for quarters in range(1, 4):
            possible = quarters if square else quarters - quarters % 2
            turned[(quarters, *window)] = np.rot90(turned[(0, *window)], possible)
    return patch.reshape(-1), turned.reshape(4, -1)
