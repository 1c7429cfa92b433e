"""The texture cue: patches from the inside of an object, re-ordered over the whole image and joined without a grid.

Patches lie wholly inside the mask, so none holds a piece of the outline. Cells are filled along the diagonals: of a few
random candidates the one that fits its left and upper neighbours best is taken, and neighbours are joined along the
path of least difference through their overlap (the cut of Efros & Freeman 2001), all seams of one direction at once.
The pixels along a cut are softened, except where patches are so small that this would soften everything.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cuebench.arrays import Array
from cuebench.cues.blocks import fitting
from cuebench.stimuli.masks.base import BadSource

GRIDS = (4, 8, 16, 32)
"""Patches along a side; published."""
SOFTEN = 10
"""Seams are softened where a patch has at least this many pixels a side."""
OVERLAP = 0.25
"""Part of a patch that it shares with each neighbour."""
CANDIDATES = 24
"""Random patches of which the best-fitting one is taken."""


def patch_size(size: int, grid: int) -> tuple[int, int]:
    """Return the side of a patch with its overlap, and the overlap, in pixels."""
    step = -(-size // grid)
    shared = min(step, max(3, round(step * OVERLAP)))
    return step + shared, shared


def shown(image: Array, source: Array, grid: int) -> Array:
    """Return the picture of a source map, with softened seams.

    Parameters
    ----------
    image : uint8 array H×W×3
        The object.
    source : int array
        For each pixel of the cue the flat index of the object's pixel.
    grid : int
        Patches along a side.
    """
    from scipy.ndimage import gaussian_filter

    picture = image.reshape(-1, 3)[source]
    if source.shape[0] // grid < SOFTEN:
        return picture
    soft = gaussian_filter(picture.astype(np.float32), (0.8, 0.8, 0)).round().astype(np.uint8)
    return np.where(_seams(source, image.shape[1])[..., None], soft, picture)


def _seams(source: Array, width: int) -> Array:
    """Return the pixels beside a cut: neighbours in the cue that are no neighbours in the object."""
    across, down = np.diff(source, axis=1) != 1, np.diff(source, axis=0) != width
    seams = np.zeros(source.shape, bool)
    seams[:, 1:] |= across
    seams[:, :-1] |= across
    seams[1:] |= down
    seams[:-1] |= down
    return seams


def source_map(image: Array, mask: Array, grid: int, rng: np.random.Generator, *, size: int = 224) -> Array:
    """Return for each pixel of the cue the flat index of the pixel of the object that it shows.

    Parameters
    ----------
    image : uint8 array H×W×3
        The object, of any size.
    mask : bool array H×W
        Where patches may be taken from.
    grid : int
        Patches along each side of the result.
    rng : Generator
        Chooses the patches.
    size : int
        Side of the result in pixels.

    Raises
    ------
    BadSource
        No patch of this size fits inside the mask.
    """
    block, shared = patch_size(size, grid)
    fits = fitting(mask, block, block) if min(mask.shape) >= block else np.zeros((0, 0), bool)
    corners = np.argwhere(fits)
    if not len(corners):
        raise BadSource(f"the object is smaller than a patch of {block}×{block} pixels")
    chosen = _chosen(image.astype(np.float32), corners, grid, block, shared, rng)
    numbers = np.arange(mask.size).reshape(mask.shape)
    patches = sliding_window_view(numbers, (block, block))[chosen[..., 0], chosen[..., 1]]
    pixels = image.reshape(-1, 3).astype(np.float32)
    strips = _joined(patches, pixels, shared)
    whole = _joined(strips.transpose(0, 2, 1)[None], pixels, shared)[0].T
    return whole[:size, :size]


def _chosen(pixels: Array, corners: Array, grid: int, block: int, shared: int, rng: np.random.Generator) -> Array:
    """Choose the corner of every cell's patch, diagonal by diagonal: grid × grid × 2."""
    chosen = np.zeros((grid, grid, 2), np.intp)
    upright = sliding_window_view(pixels, (block, shared), axis=(0, 1))
    level = sliding_window_view(pixels, (shared, block), axis=(0, 1))
    step = block - shared
    for diagonal in range(2 * grid - 1):
        row = np.arange(max(0, diagonal - grid + 1), min(grid, diagonal + 1))
        column = diagonal - row
        options = corners[rng.integers(len(corners), size=(len(row), CANDIDATES))]
        error = np.zeros(options.shape[:2], np.float32)
        for windows, (back_y, back_x) in ((upright, (0, 1)), (level, (1, 0))):
            there = (row >= back_y) & (column >= back_x)
            y, x = chosen[row[there] - back_y, column[there] - back_x].T
            old = windows[y + back_y * step, x + back_x * step][:, None]
            new = windows[options[there, :, 0], options[there, :, 1]]
            error[there] += ((new - old) ** 2).sum(axis=(2, 3, 4))
        chosen[row, column] = options[np.arange(len(row)), error.argmin(axis=1)]
    return chosen


def _joined(patches: Array, pixels: Array, shared: int) -> Array:
    """Join patches (rows × n × height × width of source indices) side by side along cuts of least difference."""
    rows, count, height, width = patches.shape
    step = width - shared
    left, right = patches[:, :-1, :, step:], patches[:, 1:, :, :shared]
    cuts = least_cuts(((pixels[left] - pixels[right]) ** 2).sum(axis=-1))
    overlap = np.where(np.arange(shared) < cuts[..., None], left, right)
    out = np.empty((rows, height, count * step + shared), patches.dtype)
    for k in range(count):
        start = k * step
        out[:, :, start : start + width] = patches[:, k]
        if k:
            out[:, :, start : start + shared] = overlap[:, k - 1]
    return out


def least_cuts(error: Array) -> Array:
    """Return for each row of each table (… × rows × columns) the column of the cheapest path from top to bottom.

    A path moves by at most one column from row to row; all tables are solved at once.

    >>> least_cuts(np.array([[9.0, 1.0, 9.0], [9.0, 9.0, 1.0], [9.0, 1.0, 9.0]])).tolist()
    [1, 2, 1]
    """
    total = error.astype(np.float64)
    rows, columns = total.shape[-2:]
    wide = np.full((*total.shape[:-2], columns + 2), np.inf)
    for row in range(1, rows):
        wide[..., 1:-1] = total[..., row - 1, :]
        total[..., row, :] += np.minimum(np.minimum(wide[..., :-2], wide[..., 1:-1]), wide[..., 2:])
    path = np.empty(total.shape[:-1], np.intp)
    path[..., -1] = total[..., -1, :].argmin(axis=-1)
    columns_at = np.arange(columns)
    for row in range(rows - 2, -1, -1):
        far = np.abs(columns_at - path[..., row + 1, None]) > 1
        path[..., row] = np.where(far, np.inf, total[..., row, :]).argmin(axis=-1)
    return path
