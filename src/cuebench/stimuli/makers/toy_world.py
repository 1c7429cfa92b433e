"""A toy world of eight drawn things, each of a material of its own, in the layouts of all protocols that need files.

Everything is drawn; nothing is fetched. The classes are eight of the 16 of cue conflict, and an ImageNet network can
answer them. These are drawings: scores on them show how the instrument and known observers behave, and must not be
compared with published values.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.files import write_atomic, write_json
from cuebench.options import Option
from cuebench.stimuli import toy_world
from cuebench.stimuli.made import MADE, claim, refuse_surplus
from cuebench.stimuli.makers.base import LARGEST_SIDE, MOST_PICTURES, Maker, Progress
from cuebench.stimuli.png import QUICK, png_bytes
from cuebench.stimuli.readers.cue_conflict import read
from cuebench.stimuli.toy_world import BACKGROUND, CLASSES, THINGS, Scene
from cuebench.types import StimulusSet

DEFAULT_COUNT = 128
SHAPE_SOURCES, TEXTURE_SOURCES = 4, 3
"""Of each class, in the pictures of cue conflict."""
PHOTOGRAPHS, PATCHES, OBJECTS, SCENES = 48, 48, 16, 24
"""Pictures of things as they are, of materials alone, of cut-out objects, and of scenes."""
ABOUT = "Classes of cuebench's toy world: WordNet ids of ImageNet-1k for the shape, then for the material."
FOLDERS = {
    "cue_conflict": "shape of one thing, material of another (aligned ones among them); silhouettes; edges",
    "imagenet_val": "things as they are, in the layout of ImageNet's validation set",
    "textures": "materials alone",
    "objects": "cut-out things (PNG with alpha), the source of `cuebench make refined_bias`",
    "scenes": "several things with masks, the source of `cuebench make cue_decomposition` for segmentation",
}
"""Folder below the data root → what lies in it."""


class Drawing(NamedTuple):
    """A file of the set, below the folder of its kind, and what draws it."""

    path: Path
    draw: Callable[[], Array]


class _World:
    """The drawings of one seed and size; shapes and materials that several pictures share are drawn once."""

    def __init__(self, seed: int, size: int, scene_size: int) -> None:
        self.seed, self.size, self.scene_size = seed, size, scene_size
        self.shape = cache(self._shape)
        self.material = cache(self._material)
        self.scene = cache(self._scene)

    def _shape(self, name: str, i: int) -> Floats:
        return toy_world.shape(name, i, seed=self.seed, size=self.size)

    def _material(self, name: str, j: int) -> Floats:
        return toy_world.material(name, j, seed=self.seed, size=self.size)

    def conflicts(self, count: int) -> Iterator[Drawing]:
        """Yield pictures such that every prefix is balanced over classes; of 64, the last eight are aligned."""
        n, number = len(CLASSES), 0
        while number < count:
            turn, rest = divmod(number, n * n)
            shift, a = divmod(rest, n)
            b = (a + shift + 1) % n
            i, j = (b + turn) % SHAPE_SOURCES + 1, (a + turn) % TEXTURE_SOURCES + 1
            i, j = i + SHAPE_SOURCES * (turn // 4), j + TEXTURE_SOURCES * (turn // 4)
            yield self._conflict(CLASSES[a], i, CLASSES[b], j)
            number += 1

    def _conflict(self, shape: str, i: int, texture: str, j: int) -> Drawing:
        path = Path("stimuli", shape, f"{shape}{i}-{texture}{j}.png")
        return Drawing(path, lambda: toy_world.picture(self.shape(shape, i), self.material(texture, j)))

    def pure_shapes(self, count: int) -> Iterator[Drawing]:
        """Yield silhouettes and edges of the shapes of so many pictures of cue conflict, black on white."""
        turns = -(-count // len(CLASSES) ** 2)
        for name in CLASSES:
            for i in range(1, SHAPE_SOURCES * -(-turns // 4) + 1):
                file = Path(name, f"{name}{i}.png")
                yield Drawing("silhouettes" / file, partial(self._silhouette, name, i))
                yield Drawing("edges" / file, partial(self._edges, name, i))

    def _silhouette(self, name: str, i: int) -> Array:
        return toy_world.picture(self.shape(name, i), np.zeros(3))

    def _edges(self, name: str, i: int) -> Array:
        return toy_world.picture(toy_world.outline(self.shape(name, i)), np.zeros(3))

    def photographs(self, count: int) -> Iterator[Drawing]:
        """Yield things as they are: shape and material agree, and the background is a pale colour."""
        for name, instance in _instances(count, 100):
            # What ImageNet calls the material: the folder of a class of its validation set has such a name.
            yield Drawing(
                Path(THINGS[name].texture_ids[0], f"{name}_{instance:03d}.png"), partial(self._thing, name, instance)
            )

    def _thing(self, name: str, instance: int) -> Array:
        pale = toy_world.generator(self.seed, f"background of {name}", instance).uniform(0.75, 1, 3)
        return toy_world.picture(self.shape(name, instance), self.material(name, instance), pale)

    def patches(self, count: int) -> Iterator[Drawing]:
        """Yield materials alone, by the name of their texture."""
        for name, instance in _instances(count, 200):
            texture = THINGS[name].texture
            yield Drawing(Path(texture, f"{texture}_{instance:03d}.png"), partial(self._patch, name, instance))

    def _patch(self, name: str, instance: int) -> Array:
        return np.rint(255 * self.material(name, instance)).astype(np.uint8)

    def objects(self, count: int) -> Iterator[Drawing]:
        """Yield cut-out things: the alpha channel is the mask."""
        for name, instance in _instances(count, 300):
            yield Drawing(Path(name, f"{name}_{instance:03d}.png"), partial(self._cut_out, name, instance))

    def _cut_out(self, name: str, instance: int) -> Array:
        channels = np.dstack([self.material(name, instance), self.shape(name, instance)])
        return np.rint(255 * channels).astype(np.uint8)

    def scenes(self, count: int) -> Iterator[Drawing]:
        """Yield scenes, and their masks under the same name."""
        for k in range(count):
            for kind, field in (("images", "image"), ("masks", "mask")):
                yield Drawing(Path(kind, f"scene_{k:03d}.png"), partial(self._of_scene, k, field))

    def _of_scene(self, k: int, field: str) -> Array:
        drawn: Array = getattr(self.scene(k), field)
        return drawn

    def _scene(self, k: int) -> Scene:
        return toy_world.scene(k, seed=self.seed, size=self.scene_size)


def _instances(count: int, first: int) -> Iterator[tuple[str, int]]:
    """Yield classes in turn, each with the number of its instance."""
    return ((CLASSES[k % len(CLASSES)], first + k // len(CLASSES)) for k in range(count))


def make(
    out: Path,
    *,
    seed: int = 0,
    count: int = 0,
    progress: Progress | None = None,
    size: int = 224,
    scene_size: int = 128,
    photographs: int = PHOTOGRAPHS,
    patches: int = PATCHES,
    objects: int = OBJECTS,
    scenes: int = SCENES,
) -> StimulusSet:
    """Write the toy world below a data root, one folder for each kind of picture.

    Parameters
    ----------
    out : Path
        Data root. ``cue_conflict``, ``pure_shape``, ``textured_silhouettes``, ``imagenet_accuracy``,
        ``feature_suppression``, ``corruption_robustness`` and ``texture_association`` can use it as it is; ``objects``
        and ``scenes`` are sources for the makers of the others.
    seed : int
        The same seed gives the same bytes.
    count : int
        Number of cue-conflict pictures, 0: 128, two for each pair of classes. From 257 on there are more shapes and
        materials of each class.
    progress : callable, optional
        ``progress(done, total)``.
    size, scene_size : int
        Width and height in pixels, of scenes the second.
    photographs, patches, objects, scenes : int
        Number of things as they are, of materials alone, of cut-out objects, and of scenes.

    Returns
    -------
    StimulusSet
        The cue-conflict pictures as read back from the folder.
    """
    count = count or DEFAULT_COUNT
    world = _World(seed, size, scene_size)
    kinds: dict[str, list[Drawing]] = {
        "cue_conflict": [*world.conflicts(count), *world.pure_shapes(count)],
        "imagenet_val": list(world.photographs(photographs)),
        "textures": list(world.patches(patches)),
        "objects": list(world.objects(objects)),
        "scenes": list(world.scenes(scenes)),
    }
    settings = {"maker": "toy_world", "version": toy_world.VERSION, "seed": seed}
    missing = []
    for kind, drawings in kinds.items():
        home = out / kind
        pixels = scene_size if kind == "scenes" else size
        _prepare(home, drawings, {**settings, "size": pixels}, count if kind == "cue_conflict" else len(drawings))
        missing += [(home / d.path, d.draw) for d in drawings if not (home / d.path).is_file()]
    _write_labels(out)
    total = sum(map(len, kinds.values()))

    def write(item: tuple[Path, Callable[[], Array]]) -> None:
        path, draw = item
        write_atomic(path, png_bytes(draw(), QUICK))

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for done, _ in enumerate(pool.map(write, missing), start=total - len(missing) + 1):
            if progress:
                progress(done, total)
    return read(out / "cue_conflict" / "stimuli", expected=count)


def _prepare(home: Path, drawings: list[Drawing], record: dict[str, Any], count: int) -> None:
    """Refuse to mix two sets in one folder, then write the record of how this one is made."""
    there = {path.relative_to(home) for path in home.rglob("*.png")}
    claim(home, record, there)
    refuse_surplus(home, there, {d.path for d in drawings})
    write_json(home / MADE, {**record, "count": count})


def _write_labels(out: Path) -> None:
    """Write what the classes are: for models, for the makers of other sets, and what the numbers of masks mean."""
    for folder in ("cue_conflict", "objects"):
        write_json(out / folder / "labels.json", {"about": ABOUT, "targets": toy_world.targets()})
    names = [BACKGROUND, *CLASSES]
    write_json(out / "scenes" / "classes.json", {"classes": [{"name": n, "ids": [i]} for i, n in enumerate(names)]})
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["class", "shape", "material"])
    writer.writerows([name, name, thing.texture] for name, thing in THINGS.items())
    write_atomic(out / "toy_world.csv", table.getvalue().encode())


MAKER = Maker(
    "toy_world",
    "eight drawn things, each of a material of its own: in conflict, as they are, materials, silhouettes, scenes",
    make,
    {
        "size": Option(224, "width and height in pixels", low=32, high=LARGEST_SIDE),
        "scene_size": Option(128, "width and height of the scenes in pixels", low=32, high=LARGEST_SIDE),
        "photographs": Option(PHOTOGRAPHS, "number of things as they are", low=1, high=MOST_PICTURES),
        "patches": Option(PATCHES, "number of materials alone", low=1, high=MOST_PICTURES),
        "objects": Option(OBJECTS, "number of cut-out objects", low=1, high=MOST_PICTURES),
        "scenes": Option(SCENES, "number of scenes", low=1, high=MOST_PICTURES),
    },
    protocol="cue_conflict",
)
