"""From an object to its cues: the shape cue, and a texture cue for each patch size, each with its measures."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.stimuli.masks.base import BadSource, Segmenter, checked
from cuebench.stimuli.refined_bias.inspection import mask_measures, shape_measures, texture_measures, verdict
from cuebench.stimuli.refined_bias.masks import load
from cuebench.stimuli.refined_bias.objects import close_up, flattened, framed
from cuebench.stimuli.refined_bias.shape_cue import draw_contours
from cuebench.stimuli.refined_bias.sources import Source
from cuebench.stimuli.refined_bias.texture_cue import GRIDS, patch_size, shown, source_map

METHODS = ("patches", "quilting")
INSIDE = 2
"""Patches keep this many pixels of distance from the outline."""


@dataclass(frozen=True)
class Settings:
    """Everything that changes a pixel of a set."""

    seed: int = 0
    size: int = 224
    margin: float = 0.05
    grids: tuple[int, ...] = GRIDS
    texture: str = "patches"
    segmenter: str = "grabcut"
    sigma: float = 0.0

    def __post_init__(self) -> None:
        problems = []
        if self.texture not in METHODS:
            problems.append(f"texture={self.texture!r}; one of {', '.join(METHODS)}")
        if self.size < 32 or not 0 <= self.margin < 0.4 or self.sigma < 0:
            problems.append(f"size={self.size}, margin={self.margin}, sigma={self.sigma}")
        if not self.grids or any(not 2 <= g <= self.size // 4 for g in self.grids):
            problems.append(f"grids={self.grids}; each between 2 and {self.size // 4}")
        if problems:
            raise UserError("; ".join(problems), "size ≥ 32, 0 ≤ margin < 0.4, sigma ≥ 0 (0: chosen for each class)")

    @property
    def largest(self) -> int:
        """Side of the square that must fit inside an object for its texture, with the distance from the outline."""
        return patch_size(self.size, min(self.grids))[0] + 2 * INSIDE


@dataclass(frozen=True)
class Made:
    """A cue that was made, or why it was not."""

    name: str
    cue: str
    label: str
    source: str
    grid: int = 0
    picture: Array | None = field(default=None, compare=False)
    measures: dict[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def path(self) -> str:
        """Path in the published layout, below the folder of the cue."""
        return f"{self.label}/{self.name}.png"


@dataclass(frozen=True)
class Loaded:
    """A source with its pixels and mask."""

    source: Source
    image: Array
    mask: Array


def open_source(source: Source, segment: Segmenter) -> Loaded:
    """Load a source; the segmenter makes the mask of an image that has none."""
    image, mask = load(source)
    if mask is not None:
        return Loaded(source, image, mask)
    try:
        segmented = np.asarray(segment(image, source.label), bool)
    except UserError as error:
        raise BadSource(error.message) from error
    if segmented.shape != image.shape[:2]:
        raise BadSource(f"the segmenter's mask has shape {segmented.shape}, the image {image.shape[:2]}")
    return Loaded(source, image, checked(segmented))


def problems_of(source: Source, cues: Sequence[str], settings: Settings) -> dict[str, str]:
    """Return cue → why it cannot be made of this source; a mask that the segmenter will make is not checked."""
    try:
        image, mask = load(source)
        if mask is not None and "texture" in cues:
            close_up(image, mask, settings.size, settings.largest, settings.margin)
    except BadSource as error:
        small = error.message.startswith("the object is smaller")
        return {"texture": error.message} if small else dict.fromkeys(cues, error.message)
    return {}


def shape_of(loaded: Loaded, number: int, sigma: float, settings: Settings) -> Made:
    """Make and measure the shape cue of an object."""
    frame = framed(loaded.image, loaded.mask, settings.size, settings.margin)
    picture = draw_contours(frame.image, frame.mask, sigma=sigma)
    measures = mask_measures(frame.mask, frame.area) | shape_measures(picture, frame.mask)
    source = loaded.source
    return Made(f"{source.label}_{number}", "shape", source.label, source.id, 0, picture, measures, verdict(measures))


def textures_of(loaded: Loaded, number: int, settings: Settings) -> list[Made]:
    """Make and measure the texture cues of an object, one for each patch size."""
    from scipy.ndimage import binary_erosion

    source = loaded.source
    close = close_up(loaded.image, loaded.mask, settings.size, settings.largest, settings.margin)
    image = flattened(close.image, close.mask, sigma=settings.size / 6)
    inside = np.asarray(binary_erosion(close.mask, iterations=INSIDE))
    source_map_of = source_map if settings.texture == "patches" else quilted_map
    cues = []
    for grid in settings.grids:
        rng = np.random.default_rng([settings.seed, zlib.crc32(source.id.encode()), grid])
        where = source_map_of(image, inside, grid, rng, size=settings.size)
        picture = shown(image, where, grid)
        measures = mask_measures(close.mask, close.area) | texture_measures(picture, grid, where, close.mask)
        name = f"{grid}x{grid}_{source.label}_{number}"
        cues.append(Made(name, "texture", source.label, source.id, grid, picture, measures, verdict(measures)))
    return cues


def quilted_map(image: Array, mask: Array, grid: int, rng: np.random.Generator, *, size: int = 224) -> Array:
    """Return the source map of image quilting (Efros & Freeman) with blocks as large as the patches of a grid.

    The second method, and the proxy of the paper's appendix A.9: blocks are searched for, not drawn at random, so that
    texture continues across them.
    """
    from cuebench.cues.quilting import quilting

    canvas = np.zeros((max(size, image.shape[0]), max(size, image.shape[1]), 3), np.uint8)
    inside = np.zeros(canvas.shape[:2], bool)
    canvas[: image.shape[0], : image.shape[1]] = image
    inside[: mask.shape[0], : mask.shape[1]] = mask
    numbers = np.zeros(inside.shape, np.int64)
    numbers[: image.shape[0], : image.shape[1]] = np.arange(mask.size).reshape(mask.shape)
    _, moved = quilting(
        canvas, block=patch_size(size, grid)[0], inside=inside, mask=numbers, rng=int(rng.integers(2**31))
    )
    return np.asarray(moved[:size, :size])
