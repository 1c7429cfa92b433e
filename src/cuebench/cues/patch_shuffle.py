"""Patch shuffling: the squares of a regular grid in random order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._moves import cuts, move_pixels, shuffle_within_classes
from cuebench.cues.base import CueInfo, Rng, Tolerance
from cuebench.cues.parameters import check_whole

GRID = 8
"""Grid of the cue-decomposition paper."""
BURGERT_GRIDS = (2, 4, 6, 8, 10, 12, 14, 16)
"""Grids of the feature-suppression paper."""

CUE = CueInfo(
    kind="texture",
    reference="Heinert et al. (8×8); Burgert et al. 2025 (2×2 to 16×16)",
    random=True,
    identity={"grid": 1},
    moves_mask=True,
    levels={"grid": BURGERT_GRIDS},
    device=Tolerance(),
)


def patch_shuffle(image: Any, *, grid: int = GRID, mask: Any = None, rng: Rng = 0) -> Any:
    r"""Cut the image into ``grid`` × ``grid`` patches and put them back in random order.

    :math:`\mathrm{out}(o_{\pi(k)} + x) = I(o_k + x)` for the patches' origins :math:`o_k` and a random permutation
    :math:`\pi`. Every pixel is kept. Where the size is no multiple of `grid`, patches differ by one pixel in
    height or width, and only patches of the same size change places, so that this still holds.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    grid : int
        Patches along each side. 1: identity; 16 on 224 pixels (patches of 14) leaves little but colour and fine
        texture; a grid finer than the image shuffles single pixels.
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
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition": 8×8.
    .. [2] T. Burgert et al., "ImageNet-trained CNNs are not biased towards texture", 2025: 2×2 … 16×16.
    """
    check_whole("grid", grid)

    def index_map(height: int, width: int, rng: np.random.Generator) -> Array:
        patches = _patches(height, width, grid)
        return np.arange(height * width).reshape(height, width) + patches.shifts(rng)[patches.number]

    def on_device(height: int, width: int, rngs: Any, device: Any) -> Any:
        from cuebench.cues.on_device import per_image, shifted, to_device

        patches = _patches(height, width, grid)
        return shifted(per_image(patches.shifts, rngs, device), to_device(patches.number.reshape(-1), device))

    return move_pixels(index_map, image, labels=mask, rng=rng, on_device=on_device)


class _Patches(NamedTuple):
    """The grid of one image size: flat index of each patch's corner, its size, and the number of each pixel's patch."""

    corner: Array
    size: Array
    number: Array

    def shifts(self, rng: np.random.Generator) -> Array:
        """Draw for each patch how far away, in flat indices, the patch lies that it shows."""
        return self.corner[shuffle_within_classes(self.size, rng)] - self.corner


@lru_cache(maxsize=32)
def _patches(height: int, width: int, grid: int) -> _Patches:
    rows, columns = cuts(height, grid), cuts(width, grid)
    tall, wide = np.diff(rows), np.diff(columns)
    corner = (rows[:-1, None] * width + columns[:-1]).reshape(-1)
    size = np.stack(np.meshgrid(tall, wide, indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.repeat(np.arange(len(tall)), tall)[:, None] * len(wide) + np.repeat(np.arange(len(wide)), wide)
    return _Patches(corner, size, number)
