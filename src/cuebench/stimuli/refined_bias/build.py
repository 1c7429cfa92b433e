"""From one object to its cues: the shape cue, and a texture cue for each patch size, each with its measures."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.stimuli.masks import Segmenter
from cuebench.stimuli.refined_bias.inspection import mask_measures, shape_measures, texture_measures, verdict
from cuebench.stimuli.refined_bias.masks import BadSource, checked, load
from cuebench.stimuli.refined_bias.objects import Object, close_up, flattened, framed
from cuebench.stimuli.refined_bias.shape_cue import draw_contours
from cuebench.stimuli.refined_bias.sources import Source
from cuebench.stimuli.refined_bias.texture_cue import GRIDS, patch_size, shown, source_map

METHODS = ("patches", "quilting")
INSIDE = 2
"""Patches keep this many pixels of distance from the outline."""


@dataclass(frozen=True)
class Settings:
    """What changes a pixel of a made set."""

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
    """A made cue, or why it was not made."""

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
    """Load a source; an image without a mask is given to the segmenter."""
    image, mask = load(source)
    if mask is not None:
        return Loaded(source, image, mask)
    try:
        found = np.asarray(segment(image, source.label), bool)
    except UserError as error:
        raise BadSource(error.message) from error
    if found.shape != image.shape[:2]:
        raise BadSource(f"the segmenter's mask has shape {found.shape}, the image {image.shape[:2]}")
    return Loaded(source, image, checked(found))


def problems_of(source: Source, cues: Sequence[str], settings: Settings) -> dict[str, str]:
    """Return cue → why it cannot be made of this source, before anything is made; a mask to be found is not judged."""
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
    found = framed(loaded.image, loaded.mask, settings.size, settings.margin)
    picture = draw_contours(found.image, found.mask, sigma=sigma)
    measures = mask_measures(found.mask, found.area) | shape_measures(picture, found.mask)
    source = loaded.source
    return Made(f"{source.label}_{number}", "shape", source.label, source.id, 0, picture, measures, verdict(measures))


def textures_of(loaded: Loaded, number: int, settings: Settings) -> list[Made]:
    """Make and measure the texture cues of an object, one for each patch size."""
    found = close_up(loaded.image, loaded.mask, settings.size, settings.largest, settings.margin)
    found = found._replace(image=flattened(found.image, found.mask, sigma=settings.size / 6))
    inside = _eroded(found.mask, INSIDE)
    own = mask_measures(found.mask, found.area)
    return [_texture(loaded.source, number, grid, found, inside, own, settings) for grid in settings.grids]


def _texture(
    source: Source, number: int, grid: int, found: Object, inside: Array, own: dict[str, float], settings: Settings
) -> Made:
    rng = np.random.default_rng([settings.seed, zlib.crc32(source.id.encode()), grid])
    make = source_map if settings.texture == "patches" else quilted_map
    where = make(found.image, inside, grid, rng, size=settings.size)
    picture = shown(found.image, where, grid)
    measures = own | texture_measures(picture, grid, where, found.mask)
    name = f"{grid}x{grid}_{source.label}_{number}"
    return Made(name, "texture", source.label, source.id, grid, picture, measures, verdict(measures))


def quilted_map(image: Array, mask: Array, grid: int, rng: np.random.Generator, *, size: int = 224) -> Array:
    """Return the source map of image quilting (Efros & Freeman) with blocks as large as the patches of a grid.

    The second method, and the proxy of the paper's appendix A.9: blocks are searched for, not drawn, so that texture
    goes on across them.
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


def _eroded(mask: Array, pixels: int) -> Array:
    from scipy.ndimage import binary_erosion

    return np.asarray(binary_erosion(mask, iterations=pixels))
