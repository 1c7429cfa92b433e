"""Voronoi shuffling: each cell of a random Voronoi diagram shows another part of the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._moves import move_pixels
from cuebench.cues.base import CueInfo, Rng
from cuebench.cues.parameters import check_whole

SITES = 32
"""Published number of sites."""
ABLATION_SITES = (8, 16, 32, 64, 128)
"""The published ablations range from 8 to 128; the steps between are ours."""

CUE = CueInfo(
    kind="texture",
    reference="Heinert et al., Shape Bias and Robustness Evaluation via Cue Decomposition",
    random=True,
    identity={"sites": 1},
    moves_mask=True,
    levels={"sites": ABLATION_SITES},
)

TILES = 16
"""Tiles along a side for finding where a site can have pixels: more find less, and take longer."""


def voronoi_shuffle(image: Any, *, sites: int = SITES, mask: Any = None, rng: Rng = 0) -> Any:
    r"""Fill each cell of a random Voronoi diagram with a randomly shifted part of the image.

    With sites :math:`p_1 … p_N` drawn uniformly from the pixels, a pixel :math:`x` belongs to the cell of its
    nearest site, :math:`k(x) = \arg\min_k \lVert x - p_k\rVert_2` (ties: the site drawn first). Each cell keeps its
    form and place and shows the image under the same cell moved by a random shift :math:`d_k`,

    .. math:: \mathrm{out}(x) = I(x + d_{k(x)}),

    uniform over all whole shifts that keep the cell inside the image. Nothing wraps, every pixel is covered, and
    every output pixel is a pixel of the input.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    sites : int
        Number of cells. 1: one cell, the whole image, which cannot shift (identity). The more sites, the less
        shape is left: large values leave texture of the size of a few pixels. More sites than pixels: one for
        each pixel.
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
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition for Image
       Classification and Segmentation", 32 sites.
    .. [2] F. Aurenhammer, "Voronoi diagrams", ACM Comput. Surv. 23, 1991.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.arange(64, dtype=np.uint8).reshape(8, 8)
    >>> bool(np.isin(voronoi_shuffle(image, sites=4, rng=1), image).all())
    True
    """
    check_whole("sites", sites)

    def index_map(height: int, width: int, rng: np.random.Generator) -> Array:
        points = rng.choice(height * width, size=min(sites, height * width), replace=False)
        cell = nearest_site(height, width, points // width, points % width)
        down, right = _shifts(cell, len(points), rng)
        offset = (down * width + right).astype(np.intp)
        return np.arange(height * width).reshape(height, width) + offset[cell]

    return move_pixels(index_map, image, labels=mask, rng=rng)


def nearest_site(height: int, width: int, ys: Array, xs: Array) -> Array:
    """Return for each pixel the number of its nearest site; of equally near ones the first.

    The squared distance and the site's number share one integer, so that a running minimum finds both. A site is
    compared in the rectangle only that it can have pixels in.
    """
    count = len(ys)
    dtype = np.int32 if (height**2 + width**2) * count < 2**31 else np.int64
    number: Array = np.arange(count, dtype=dtype)[:, None]
    rows: Array = (((np.arange(height) - ys[:, None]) ** 2).astype(dtype) * count + number)[:, :, None]
    columns: Array = (((np.arange(width) - xs[:, None]) ** 2).astype(dtype) * count)[:, None, :]
    best: Array = np.full((height, width), np.iinfo(dtype).max, dtype)
    for k, (top, bottom, left, right) in enumerate(_reach(height, width, ys, xs).tolist()):
        part = best[top:bottom, left:right]
        np.minimum(part, rows[k, top:bottom] + columns[k, :, left:right], out=part)
    return best % count


def _reach(height: int, width: int, ys: Array, xs: Array) -> Array:
    """Return for each site (top, bottom, left, right) of a rectangle outside which another site is always nearer.

    In a tile no pixel is nearer to a site than the tile's nearest point, and some site is no farther from all its
    pixels than from the tile's farthest corner.
    """
    (near_y, far_y, edges_y), (near_x, far_x, edges_x) = _tiles(height, ys), _tiles(width, xs)
    least = near_y[:, :, None] + near_x[:, None, :]
    most = (far_y[:, :, None] + far_x[:, None, :]).min(axis=0)
    possible = least <= most
    bounds = []
    for axis, edges in ((2, edges_y), (1, edges_x)):
        there = possible.any(axis=axis)
        bounds += [edges[there.argmax(axis=1)], edges[there.shape[1] - there[:, ::-1].argmax(axis=1)]]
    return np.stack(bounds, axis=1)


def _tiles(length: int, places: Array) -> tuple[Array, Array, Array]:
    """Return sites × tiles of squared least and greatest distances along one axis, and the edges of the tiles."""
    edges = np.linspace(0, length, min(TILES, length) + 1).astype(np.int64)
    first, last = edges[:-1] - places[:, None], edges[1:] - 1 - places[:, None]
    least = np.maximum(np.maximum(first, -last), 0)
    return least**2, np.maximum(np.abs(first), np.abs(last)) ** 2, edges


def _shifts(cell: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw for each cell a whole shift (down, right) that keeps its bounding box inside the image."""
    from scipy.ndimage import find_objects

    boxes = np.array([[(s.start, s.stop) for s in box] for box in find_objects(cell + 1, max_label=count)])
    lengths = np.array(cell.shape)
    # integers(low, high) draws from [low, high): up to −start, down to length − stop.
    shift = rng.integers(-boxes[:, :, 0], lengths - boxes[:, :, 1] + 1)
    return shift[:, 0], shift[:, 1]
