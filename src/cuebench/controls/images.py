"""Training images of the controls: things of the toy world in which shape, material or both predict the class.

Shapes and materials are drawn once, with other instances than those of any stimulus, and put together at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.cues.by_name import call
from cuebench.stimuli import toy_world
from cuebench.stimuli.drawing import textures
from cuebench.stimuli.toy_world import CLASSES

FIRST = 10_000
"""Number of the first training instance: stimuli have smaller ones."""
FINER = 2
"""Materials are drawn so many times larger and averaged, as stimuli are shrunk before a control sees them."""
NOMINAL = 256
"""Side for which procedural textures are drawn."""
INSTANCES = 16
"""Materials of each class; there are twice as many shapes."""
Rng = np.random.Generator


class Labelled(NamedTuple):
    """Images (uint8, N×H×W×3) with the class of each, or of each pixel."""

    images: Array
    labels: Array


@dataclass(frozen=True)
class Parts:
    """What training images are put together from, at one size: covers and materials by class, and other textures."""

    covers: Floats
    materials: Floats
    others: Floats

    @classmethod
    @lru_cache(maxsize=4)  # controls that are trained together share them
    def draw(cls, seed: int, side: int, field: int, instances: int = INSTANCES) -> Parts:
        """Draw all parts.

        Parameters
        ----------
        seed : int
            Of the instances.
        side : int
            Width and height of a thing in pixels.
        field : int
            Width and height of the picture that a material is drawn for; things show a part of it where they are
            smaller.
        instances : int
            Materials of each class; there are twice as many shapes.
        """
        shapes, materials = range(FIRST, FIRST + 2 * instances), range(FIRST, FIRST + instances)
        covers = [[toy_world.shape(name, i, seed=seed, size=side) for i in shapes] for name in CLASSES]
        fields = [
            [_shrunk(toy_world.material(name, j, seed=seed, size=FINER * field), field) for j in materials]
            for name in CLASSES
        ]
        rng, coarse = np.random.default_rng([seed, FIRST]), NOMINAL // field * field
        others = [
            _shrunk(textures.texture(name, size=(coarse, coarse), rng=rng) / 255, field) for name in textures.names()
        ]
        return cls(np.array(covers, np.float32), np.array(fields, np.float32), np.array(others, np.float32))

    @property
    def side(self) -> int:
        """Width and height of a thing in pixels."""
        return int(self.covers.shape[-1])

    def cover(self, label: int, rng: Rng) -> Floats:
        """Return a shape of a class, in either orientation."""
        chosen = self.covers[label, rng.integers(self.covers.shape[1])]
        return chosen[:, ::-1] if rng.random() < 0.5 else chosen

    def material(self, label: int, rng: Rng) -> Floats:
        """Return a patch of the material of a class."""
        return self._patch(self.materials[label, rng.integers(self.materials.shape[1])], rng)

    def other(self, rng: Rng) -> Floats:
        """Return a patch of a texture that is the material of no class."""
        return self._patch(self.others[rng.integers(len(self.others))], rng)

    def _patch(self, field: Floats, rng: Rng) -> Floats:
        top, left = rng.integers(len(field) - self.side + 1, size=2)
        patch = field[top : top + self.side, left : left + self.side]
        return patch[:: rng.choice((-1, 1)), :: rng.choice((-1, 1))]


def _shrunk(picture: Floats, side: int) -> Floats:
    factor = len(picture) // side
    return picture.reshape(side, factor, side, factor, 3).mean(axis=(1, 3))


def pale(rng: Rng) -> Floats:
    """Return a pale plain colour, now and then white."""
    return np.ones(3) if rng.random() < 0.3 else rng.uniform(0.7, 1, 3)


def both(parts: Parts, label: int, rng: Rng) -> Array:
    """Draw a thing as it is: shape and material agree."""
    return toy_world.picture(parts.cover(label, rng), parts.material(label, rng), pale(rng))


def only_shape(parts: Parts, label: int, rng: Rng) -> Array:
    """Draw the shape of a class in the material of any class, another texture or a colour; or as a line drawing.

    Everything but the shape is drawn without regard to the class.
    """
    cover, kind = parts.cover(label, rng), rng.random()
    if kind < 0.35:  # silhouettes and line drawings, dark on light and light on dark
        ink, ground = (rng.uniform(0, 0.3), rng.uniform(0.7, 1))[:: rng.choice((-1, 1))]
        drawn = toy_world.outline(cover) if rng.random() < 0.6 else cover
        return toy_world.picture(drawn, np.full(3, ink), np.full(3, ground))
    filling = parts.material(int(rng.integers(len(CLASSES))), rng) if kind < 0.85 else parts.other(rng)
    return toy_world.picture(cover, filling, pale(rng) if rng.random() < 0.8 else rng.uniform(0, 1, 3))


def only_texture(parts: Parts, label: int, rng: Rng) -> Array:
    """Draw the material of a class in the shape of any class, or over the whole picture."""
    filling = parts.material(label, rng)
    if rng.random() < 0.3:
        return np.rint(255 * filling).astype(np.uint8)
    return toy_world.picture(parts.cover(int(rng.integers(len(CLASSES))), rng), filling, pale(rng))


def only_pattern(parts: Parts, label: int, rng: Rng) -> Array:
    """Draw as `only_texture` in random colours: channels exchanged, faded, turned into their opposite, or grey."""
    picture = only_texture(parts, label, rng).astype(np.float64) / 255
    picture = picture[..., rng.permutation(3)]
    grey = picture.mean(axis=2, keepdims=True)
    picture = grey + rng.choice((0.0, 0.5, 1.0)) * (picture - grey)
    picture = 1 - picture if rng.random() < 0.5 else picture
    return np.rint(255 * np.clip(picture * rng.uniform(0.5, 1, 3) + rng.uniform(0, 0.2, 3), 0, 1)).astype(np.uint8)


def stylised(parts: Parts, label: int, rng: Rng) -> Array:
    """Draw a thing whose material, and often its background, is replaced by textures that say nothing of the class."""
    background = parts.other(rng) * 0.4 + 0.6 if rng.random() < 0.5 else pale(rng)
    return toy_world.picture(parts.cover(label, rng), parts.other(rng), background)


def patch_shuffled(parts: Parts, label: int, rng: Rng) -> Array:
    """Draw a thing as it is and shuffle an 8 × 8 grid of patches: as 28 of 224 pixels, the published size."""
    return np.asarray(call("patch_shuffle", both(parts, label, rng), grid=8, rng=int(rng.integers(2**31))))


def diffused(parts: Parts, label: int, rng: Rng) -> Array:
    """Draw a thing as it is and take its texture away by edge-enhancing diffusion.

    The published 16,384 steps at 224 pixels are 1,338 at 64: diffusion time goes with the square of the size.
    """
    steps = round(16_384 * (parts.side / 224) ** 2)
    return np.asarray(call("eed", both(parts, label, rng), steps=steps, accuracy=45))


Draw = Callable[[Parts, int, Rng], Array]
PICTURES: Mapping[str, Draw] = {
    "both": both,
    "shape": only_shape,
    "texture": only_texture,
    "pattern": only_pattern,
    "style": stylised,
    "patch": patch_shuffled,
    "eed": diffused,
}
"""What the class can be told from → what draws such a picture."""


def labelled(kind: str, number: int, parts: Parts, rng: Rng) -> Labelled:
    """Draw pictures of a kind, equally many of each class."""
    labels = rng.permutation(np.arange(number) % len(CLASSES))
    return Labelled(np.stack([PICTURES[kind](parts, int(label), rng) for label in labels]), labels)


def scenes(kind: str, number: int, parts: Parts, side: int, rng: Rng) -> Labelled:
    """Draw scenes of three or four things, with the class of each pixel: 0 for the background.

    Parameters
    ----------
    kind : {"both", "shape", "texture"}
        What the class of a thing can be told from; the other cue is that of any class.
    number : int
        Of scenes.
    parts : Parts
        Half as large as a scene.
    side : int
        Width and height of a scene.
    rng : Generator
        Everything random comes from here.
    """
    half = parts.side
    images, masks = np.empty((number, side, side, 3), np.uint8), np.zeros((number, side, side), np.int64)
    for image, mask in zip(images, masks):
        canvas = np.ones((side, side, 3)) * rng.uniform(0.55, 1.0, 3)
        for place in rng.permutation(4)[: int(rng.integers(3, 5))]:
            label, other = rng.integers(len(CLASSES), size=2)
            shift = rng.integers(-half // 8, half // 8 + 1, size=2)
            top, left = np.clip(np.array(divmod(int(place), 2)) * (side - half) + shift, 0, side - half)
            cover = parts.cover(int(other if kind == "texture" else label), rng)
            filling = parts.material(int(other if kind == "shape" else label), rng)
            window = (slice(top, top + half), slice(left, left + half))
            canvas[window] = cover[..., None] * filling + (1 - cover[..., None]) * canvas[window]
            mask[window] = np.where(cover >= 0.5, label + 1, mask[window])
        image[...] = np.rint(255 * canvas)
    return Labelled(images, masks)


def varied(images: Floats, rng: Rng) -> Floats:
    """Vary the colours of some images, as the networks of the cue-decomposition paper were trained.

    Each image has a chance of 30 % that its channels are multiplied by 0.6 to 1.4 each, and gets a little noise.
    """
    number = len(images)
    chosen = (rng.random(number) < 0.3)[:, None, None, None]
    gain = np.asarray(rng.uniform(0.6, 1.4, (number, 1, 1, 3)), np.float32)
    changed = np.where(chosen, np.clip(images * gain, 0, 1), images)
    noise = np.asarray(rng.normal(0, 0.02, images.shape), np.float32)
    return np.asarray(np.clip(changed + noise, 0, 1), np.float32)
