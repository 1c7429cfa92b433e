"""Voronoi shuffling: each cell of a random Voronoi diagram shows another part of the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._moves import move_pixels
from cuebench.cues.base import CueInfo, Rng, Tolerance
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
    device=Tolerance(),
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

    def on_device(height: int, width: int, rngs: Any, device: Any) -> Any:
        from cuebench.cues.on_device import per_image, shifted, to_device

        points = per_image(
            lambda rng: rng.choice(height * width, size=min(sites, height * width), replace=False), rngs, device
        )
        cell = _nearest_on_device(height, width, points // width, points % width)
        boxes = _boxes_on_device(cell, height, width, points.shape[1]).cpu().numpy()
        down, right = np.stack([_drawn_shifts(box, (height, width), rng) for box, rng in zip(boxes, rngs)], axis=1)
        return shifted(to_device(down * width + right, device), cell)

    return move_pixels(index_map, image, labels=mask, rng=rng, on_device=on_device)


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
    down, right = _drawn_shifts(boxes, cell.shape, rng)
    return down, right


def _drawn_shifts(boxes: Array, size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw shifts (down, right) × cells for bounding boxes cells × axis × (start, stop)."""
    # integers(low, high) draws from [low, high): up to −start, down to length − stop.
    return rng.integers(-boxes[:, :, 0], np.array(size) - boxes[:, :, 1] + 1).T


def _nearest_on_device(height: int, width: int, ys: Any, xs: Any) -> Any:
    """Return `nearest_site` for sites N×K, as N×HW."""
    import torch

    count = ys.shape[1]
    dtype = torch.int32 if (height**2 + width**2) * count < 2**31 else torch.int64
    rows, columns = (torch.arange(n, device=ys.device) for n in (height, width))
    best = torch.full((len(ys), height, width), torch.iinfo(dtype).max, dtype=dtype, device=ys.device)
    for k in range(count):
        down = ((rows - ys[:, k, None]) ** 2 * count + k).to(dtype)
        across = ((columns - xs[:, k, None]) ** 2 * count).to(dtype)
        torch.minimum(best, down[:, :, None] + across[:, None, :], out=best)
    return (best % count).reshape(len(ys), -1).long()


def _boxes_on_device(cell: Any, height: int, width: int, count: int) -> Any:
    """Return the bounding boxes N × cells × axis × (start, stop) of cells N×HW."""
    import torch

    pixel = torch.arange(height * width, device=cell.device)
    bounds = []
    for length, place in ((height, pixel // width), (width, pixel % width)):
        there = torch.zeros(len(cell), count * length, dtype=torch.bool, device=cell.device)
        there.scatter_(1, cell * length + place, True)
        there, places = there.reshape(-1, count, length), torch.arange(length, device=cell.device)
        first, last = torch.where(there, places, length).amin(2), torch.where(there, places, -1).amax(2)
        bounds.append(torch.stack([first, last + 1], -1))
    return torch.stack(bounds, 2)
