"""Diamond shuffling: the patches of a grid turned by 45°, wrapping at the borders, in random order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._moves import cuts, move_pixels, shuffle_within_classes
from cuebench.cues.base import CueInfo, Rng, Tolerance
from cuebench.cues.parameters import check_whole

CUE = CueInfo(
    kind="texture",
    reference="Heinert et al., Shape Bias and Robustness Evaluation via Cue Decomposition",
    random=True,
    moves_mask=True,
    device=Tolerance(),
)


def diamond_shuffle(image: Any, *, grid: int = 8, mask: Any = None, rng: Rng = 0) -> Any:
    r"""Cut the image, closed to a torus, into diamonds and put them back in random order.

    The same as `patch_shuffle` with the grid turned by 45°, so that seams follow neither the pixel rows of a CNN
    nor the patches of a transformer. Diamonds wrap around the borders and every pixel is kept. Their number along
    a side is :math:`n = \mathrm{round}(\mathrm{grid}/\sqrt 2)`, so that a diamond, of area
    :math:`HW/(2n^2)`, has about the area :math:`HW/\mathrm{grid}^2` of a patch of the straight grid.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    grid : int
        Grid of patches whose size the diamonds have. 1 is the coarsest (two diamonds); larger values leave less
        shape.
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
    Where the size is no multiple of 2n, the half-diagonals differ by one pixel; diamonds change places only with
    diamonds of exactly their form, which are spread over the whole image.

    References
    ----------
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition", Fig. 4.
    """
    check_whole("grid", grid)

    def index_map(height: int, width: int, rng: np.random.Generator) -> Array:
        tiling = _tiling(height, width, grid)
        source = shuffle_within_classes(tiling.forms, rng)
        index = np.empty(height * width, dtype=np.intp)
        # Diamonds of one form list their pixels in the same order: concatenate them in both orders.
        index[tiling.pixels] = np.concatenate([tiling.members(k) for k in source])
        return index.reshape(height, width)

    def on_device(height: int, width: int, rngs: Any, device: Any) -> Any:
        from cuebench.cues.on_device import per_image, to_device

        tiling = _tiling(height, width, grid)
        diamond, place = (to_device(array, device) for array in tiling.places())
        starts = per_image(lambda rng: tiling.starts[shuffle_within_classes(tiling.forms, rng)], rngs, device)
        return to_device(tiling.pixels, device)[starts[:, diamond] + place]

    return move_pixels(index_map, image, labels=mask, rng=rng, on_device=on_device)


class _Tiling(NamedTuple):
    """Diamonds of one image size: pixels sorted by diamond, where each diamond starts, its form."""

    pixels: Array
    starts: Array
    forms: Array

    def members(self, number: int) -> Array:
        """Return the flat pixel indices of one diamond, in the order of its form."""
        return self.pixels[self.starts[number] : self.starts[number + 1]]

    def places(self) -> tuple[Array, Array]:
        """Return for each pixel the number of its diamond, and its place in the list of the diamond's pixels."""
        diamond, place = np.empty_like(self.pixels), np.empty_like(self.pixels)
        numbers = np.repeat(np.arange(len(self.forms)), np.diff(self.starts))
        diamond[self.pixels] = numbers
        place[self.pixels] = np.arange(len(self.pixels)) - self.starts[numbers]
        return diamond, place


@lru_cache(maxsize=8)
def _tiling(height: int, width: int, grid: int) -> _Tiling:
    across = max(1, round(grid / np.sqrt(2)))
    rows, columns = _half_bands(height, across), _half_bands(width, across)
    centre_y, centre_x = _centres(rows, columns)
    number = centre_y * len(columns.size) + centre_x
    down = (np.arange(height)[:, None] - rows.start[centre_y] + height // 2) % height
    right = (np.arange(width)[None, :] - columns.start[centre_x] + width // 2) % width
    pixels = np.lexsort((right.ravel(), down.ravel(), number.ravel()))
    used, starts = np.unique(number.ravel()[pixels], return_index=True)
    y, x = used // len(columns.size), used % len(columns.size)
    counts = np.diff(np.append(starts, height * width))
    forms = np.stack([rows.size[y - 1], rows.size[y], columns.size[x - 1], columns.size[x], counts], axis=1)
    return _Tiling(pixels, np.append(starts, height * width), forms)


class _Bands(NamedTuple):
    """Half-diagonals along one axis: start and size of each, and for each pixel its band and place in it."""

    start: Array
    size: Array
    band: Array
    place: Array


def _half_bands(length: int, across: int) -> _Bands:
    halves = 2 * max(1, min(across, length // 2))
    borders = cuts(length, halves) if length >= halves else np.array([0, 0, 1])
    start, size = borders[:-1], np.diff(borders)
    band = np.repeat(np.arange(halves), size)
    place = (np.arange(length) - start[band] + 0.5) / size[band]
    return _Bands(start, size, band, place)


def _centres(rows: _Bands, columns: _Bands) -> tuple[Array, Array]:
    """Return for each pixel the corner (row, column of half-bands) that is the centre of its diamond.

    Centres are the corners whose row and column sum is even. A quarter (half-band × half-band) has two of them
    at opposite corners; its diagonal between the other two divides it.
    """
    i, j = rows.band[:, None], columns.band[None, :]
    u, v = rows.place[:, None], columns.place[None, :]
    even = (i + j) % 2 == 0
    first = np.where(even, u + v <= 1, u <= v)
    centre_y = np.where(first, i, i + 1) % len(rows.size)
    centre_x = np.where(even == first, j, j + 1) % len(columns.size)
    return centre_y, centre_x
