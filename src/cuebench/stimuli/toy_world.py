"""A toy world of eight things, each with a shape and a material of its own, in which the truth about both is known.

A ``car`` has the outline of a car and is made of crossword paper; a ``bicycle`` has zebra stripes. Shape and material
can be exchanged, taken away or shuffled, so that every protocol can be run on drawings alone, and networks can be
trained where only one of the two predicts the class (``cuebench.controls``). The eight classes are among the 16 of
Geirhos et al. 2019. What ImageNet calls the outline *and* what it calls the material count as an answer with the class,
so that a network trained on photographs can take part.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.labels import label_map
from cuebench.stimuli.drawing import everyday_textures, plain_shapes
from cuebench.stimuli.drawing.outlines import Pose

VERSION = 1
"""A change of any pixel is a new version: pictures of two versions must never be mixed."""


class Thing(NamedTuple):
    """A class: the texture that it is made of, and what ImageNet calls that texture (WordNet ids)."""

    texture: str
    texture_ids: tuple[str, ...]


THINGS: Mapping[str, Thing] = {
    "airplane": Thing("honeycomb", ("n03530642",)),
    "bicycle": Thing("zebra", ("n02391049",)),
    "boat": Thing("tile_roof", ("n04435653",)),
    "bottle": Thing("strawberry", ("n07745940",)),
    "car": Thing("crossword", ("n06785654",)),
    "chair": Thing("knitted_wool", ("n04599235", "n03207743")),
    "clock": Thing("jigsaw_puzzle", ("n03598930",)),
    "knife": Thing("corn", ("n12144580", "n13133613")),
}
"""Class → its material; its shape is the plain shape of the same name."""
CLASSES: tuple[str, ...] = tuple(THINGS)
BACKGROUND = "background"
"""Class of the pixels of a scene that belong to no thing."""


def targets() -> dict[str, list[str]]:
    """Return class → WordNet ids of ImageNet that count as it: those of its shape, then those of its material."""
    shapes = label_map("in16").targets
    return {name: [*map(str, shapes[name]), *thing.texture_ids] for name, thing in THINGS.items()}


def generator(seed: int, name: str, instance: int) -> np.random.Generator:
    """Return the random stream of one instance; crc32, not hash(), because it is the same in every process."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), instance])


def random_pose(rng: np.random.Generator, scale: tuple[float, float] = (0.8, 0.95)) -> Pose:
    """Return how a thing lies in its picture: a little turned, stretched, sheared and moved, perhaps mirrored."""
    return Pose(
        turn=rng.uniform(-12, 12),
        scale=rng.uniform(*scale),
        stretch=rng.uniform(0.92, 1.08),
        shear=rng.uniform(-0.08, 0.08),
        mirror=bool(rng.random() < 0.5),
        move=(rng.uniform(-0.05, 0.05), rng.uniform(-0.05, 0.05)),
    )


def shape(name: str, instance: int, *, seed: int = 0, size: int = 224) -> Floats:
    """Return an instance of a shape: coverage 0 to 1, size × size."""
    return plain_shapes.silhouette(name, random_pose(generator(seed, name, instance)), size)


def material(name: str, instance: int, *, seed: int = 0, size: int = 224) -> Floats:
    """Return an instance of the material of a class over the whole picture: size × size × 3 in [0, 1]."""
    texture = THINGS[name].texture
    return everyday_textures.texture(texture, generator(seed, texture, instance), size)


def picture(cover: Floats, filling: Floats, background: float | Floats = 1.0) -> Array:
    """Return a shape filled with a material on a background, as uint8 height × width × 3."""
    share = cover[..., None]
    return np.rint(255 * (share * filling + (1 - share) * background)).astype(np.uint8)


def outline(cover: Floats) -> Floats:
    """Return the contour of a shape as the coverage of a thin line."""
    from scipy.ndimage import gaussian_gradient_magnitude

    edge = gaussian_gradient_magnitude(cover, len(cover) / 180)
    return np.asarray(np.clip(edge / max(float(edge.max()), 1e-9) * 1.5, 0, 1))


class Scene(NamedTuple):
    """Several things on a background, and the class of each pixel: 0 for the background, then as in ``CLASSES``."""

    image: Array
    mask: Array


def scene(instance: int, *, seed: int = 0, size: int = 128) -> Scene:
    """Draw a scene of three or four things, each about in a quarter of the picture; later ones cover earlier ones."""
    rng = generator(seed, "scene", instance)
    half = size // 2
    image = np.full((size, size, 3), 1.0) * rng.uniform(0.55, 1.0, 3)
    mask = np.zeros((size, size), np.uint8)
    places = [(y, x) for y in (0, half) for x in (0, half)]
    for place in rng.permutation(4)[: int(rng.integers(3, 5))]:
        label = str(rng.choice(CLASSES))
        top, left = (int(np.clip(c + rng.integers(-half // 8, half // 8 + 1), 0, half)) for c in places[place])
        cover = plain_shapes.silhouette(label, random_pose(rng, (0.8, 1.0)), half)[..., None]
        filling = everyday_textures.texture(THINGS[label].texture, rng, size)[:half, :half]
        window = (slice(top, top + half), slice(left, left + half))
        image[window] = cover * filling + (1 - cover) * image[window]
        mask[window] = np.where(cover[..., 0] >= 0.5, CLASSES.index(label) + 1, mask[window])
    return Scene(np.rint(255 * image).astype(np.uint8), mask)
