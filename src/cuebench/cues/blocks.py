"""Tile an image with overlapping blocks from other places of it, joined along minimum-error cuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array


class Block(NamedTuple):
    """Size of a block and of its overlap with the neighbours, in pixels."""

    height: int
    width: int
    overlap_y: int
    overlap_x: int


class Place(NamedTuple):
    """Place of a block: row and column in the tiling, and the sources of its left and upper neighbours."""

    row: int
    column: int
    left: tuple[int, int] | None
    above: tuple[int, int] | None


Chooser = Callable[[Array, Place], tuple[int, int]]
"""``choose(old, place)`` → top left corner of the source block; `old` is what the canvas shows there."""


@dataclass
class _Canvas:
    image: Array
    block: Block
    index: Array = field(init=False)
    sources: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        height, width = self.image.shape[:2]
        rows = _count(height, self.block.height, self.block.overlap_y)
        columns = _count(width, self.block.width, self.block.overlap_x)
        size = (
            (rows - 1) * (self.block.height - self.block.overlap_y) + self.block.height,
            (columns - 1) * (self.block.width - self.block.overlap_x) + self.block.width,
        )
        self.shape = (rows, columns)
        self.index = np.zeros(size, dtype=np.intp)
        self.numbers = np.arange(height * width).reshape(height, width)
        self.pixels = self.image.reshape(height * width, -1)

    def window(self, row: int, column: int) -> tuple[slice, slice]:
        y = row * (self.block.height - self.block.overlap_y)
        x = column * (self.block.width - self.block.overlap_x)
        return slice(y, y + self.block.height), slice(x, x + self.block.width)

    def put(self, row: int, column: int, choose: Chooser) -> None:
        window = self.window(row, column)
        old = self.pixels[self.index[window]]
        place = Place(row, column, self.sources.get((row, column - 1)), self.sources.get((row - 1, column)))
        y, x = self.sources[row, column] = choose(old, place)
        source = self.numbers[y : y + self.block.height, x : x + self.block.width]
        fresh = _fresh(old, self.pixels[source], self.block, place)
        self.index[window] = np.where(fresh, source, self.index[window])


def quilt(image: Array, block: Block, choose: Chooser) -> Array:
    """Return the index map (H×W, flat source indices) of a quilt of the same size as the image."""
    canvas = _Canvas(image, block)
    for row in range(canvas.shape[0]):
        for column in range(canvas.shape[1]):
            canvas.put(row, column, choose)
    return canvas.index[: image.shape[0], : image.shape[1]]


def _count(length: int, block: int, overlap: int) -> int:
    """Blocks needed to cover an axis."""
    return max(1, -(-(length - overlap) // (block - overlap)))


def _fresh(old: Array, new: Array, block: Block, place: Place) -> Array:
    """Return where the new block is shown: beyond the cuts through its left and upper overlap."""
    fresh = np.ones(old.shape[:2], dtype=bool)
    error = ((old.astype(np.float64) - new) ** 2).sum(axis=2)
    if place.column and block.overlap_x:
        path = min_cut(error[:, : block.overlap_x])
        fresh &= np.arange(block.width)[None, :] >= path[:, None]
    if place.row and block.overlap_y:
        path = min_cut(error[: block.overlap_y].T)
        fresh &= np.arange(block.height)[:, None] >= path[None, :]
    return fresh


def min_cut(error: Array) -> Array:
    """Return for each row the column of the cheapest top-to-bottom path (steps of at most one column).

    >>> min_cut(np.array([[9.0, 1.0, 9.0], [9.0, 9.0, 1.0], [9.0, 1.0, 9.0]])).tolist()
    [1, 2, 1]
    """
    rows, columns = error.shape
    total = error.copy()
    padded = np.full(columns + 2, np.inf)
    for row in range(1, rows):
        padded[1:-1] = total[row - 1]
        total[row] += np.minimum(np.minimum(padded[:-2], padded[1:-1]), padded[2:])
    path = np.empty(rows, dtype=np.intp)
    path[-1] = total[-1].argmin()
    for row in range(rows - 2, -1, -1):
        first = max(path[row + 1] - 1, 0)
        path[row] = first + total[row, first : path[row + 1] + 2].argmin()
    return path


def fitting(mask: Array, height: int, width: int) -> Array:
    """Return at which top left corners a block lies wholly inside the mask."""
    sums = np.pad(mask.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    inside = sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width] + sums[:-height, :-width]
    return inside == height * width
