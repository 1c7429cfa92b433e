"""Cue-conflict stimuli without any download: ten silhouettes filled with ten procedural textures.

Every class is an object of ImageNet, so real classifiers can answer: the label map that is written beside the stimuli
says which WordNet ids count. Shape and texture classes are disjoint: all stimuli are in conflict. These are drawings,
not the published images: scores on them say how a tool works, and must not be compared with published values.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError
from cuebench.files import write_atomic, write_json
from cuebench.options import Option
from cuebench.stimuli.drawing import everyday_shapes, everyday_textures
from cuebench.stimuli.drawing.outlines import Pose
from cuebench.stimuli.made import MADE, claim, refuse_surplus
from cuebench.stimuli.makers.base import LARGEST_SIDE, Maker, Progress
from cuebench.stimuli.own_conflicts import METHODS, Settings, make_own
from cuebench.stimuli.png import png_bytes
from cuebench.stimuli.readers.cue_conflict import read
from cuebench.types import StimulusSet

# A change of any pixel is a new version: stimuli of two versions must never be mixed in one folder.
VERSION = 1
DEFAULT_COUNT = 300
MEMORY = 1 << 29
"""Bytes of drawn shapes, and of drawn textures, that are kept to be shown again."""
SHAPE_SOURCES, TEXTURE_SOURCES = 5, 3  # for each class, before a bigger set opens the next block of sources

SHAPES: dict[str, tuple[str, ...]] = {
    "bow_tie": ("n02883205",),
    "cowboy_hat": ("n03124170", "n04259630"),
    "hourglass": ("n03544143",),
    "padlock": ("n03874599", "n03075370"),
    "pitcher": ("n03950228", "n04560804", "n04579145"),
    "starfish": ("n02317335",),
    "sunglasses": ("n04355933", "n04356056"),
    "table_lamp": ("n04380533", "n03637318"),
    "teapot": ("n04398044", "n03063689"),
    "umbrella": ("n04507155",),
}
TEXTURES: dict[str, tuple[str, ...]] = {
    "chainlink_fence": ("n03000134",),
    "corn": ("n12144580", "n13133613"),
    "crossword": ("n06785654",),
    "honeycomb": ("n03530642",),
    "jigsaw_puzzle": ("n03598930",),
    "knitted_wool": ("n04599235", "n03207743"),
    "strawberry": ("n07745940",),
    "tile_roof": ("n04435653",),
    "window_screen": ("n04589890",),
    "zebra": ("n02391049",),
}
ABOUT = "Classes of the cue-conflict stimuli that cuebench makes itself, as WordNet ids of ImageNet-1k."


class Pair(NamedTuple):
    """One stimulus: which instance of which shape, filled with which instance of which texture."""

    shape: str
    i: int
    texture: str
    j: int

    @property
    def path(self) -> Path:
        """Path below the stimuli folder."""
        return Path(self.shape, f"{self.shape}{self.i}-{self.texture}{self.j}.png")


def plan(count: int) -> Iterator[Pair]:
    """Yield ``count`` distinct stimuli such that every prefix is balanced over classes and sources."""
    shapes, textures = list(SHAPES), list(TEXTURES)
    for n in range(count):
        k, (d, s) = n // 100, divmod(n % 100, 10)
        t = (s + d) % 10
        block, turn = divmod(k, SHAPE_SOURCES)
        i = (turn + t) % SHAPE_SOURCES + 1 + SHAPE_SOURCES * block
        j = (turn + s) % TEXTURE_SOURCES + 1 + TEXTURE_SOURCES * block
        yield Pair(shapes[s], i, textures[t], j)


def draw_shape(name: str, i: int, *, seed: int = 0, size: int = 224) -> Floats:
    """Return instance ``i`` of a silhouette in a random pose: coverage 0 to 1, size × size."""
    rng = _rng(seed, name, i)
    pose = Pose(
        turn=rng.uniform(-12, 12),
        scale=rng.uniform(0.80, 0.93),
        stretch=rng.uniform(0.95, 1.05),
        shear=rng.uniform(-0.06, 0.06),
        mirror=bool(rng.random() < 0.5),
        move=(rng.uniform(-0.04, 0.04), rng.uniform(-0.04, 0.04)),
    )
    return everyday_shapes.silhouette(name, pose, size)


def draw_texture(name: str, j: int, *, seed: int = 0, size: int = 224) -> Floats:
    """Return instance ``j`` of a texture over the whole image: size × size × 3 in [0, 1]."""
    return everyday_textures.texture(name, _rng(seed, name, j), size)


def make(
    out: Path,
    *,
    seed: int = 0,
    count: int = 0,
    progress: Progress | None = None,
    size: int = 224,
    background: int = 255,
    shapes: str = "",
    textures: str = "",
    by: str = "composition",
    network: str = "",
    segmenter: str = "grabcut",
    steps: int = 100,
    weight: float = 10.0,
    block: int = 48,
) -> StimulusSet:
    """Write ``out/cue_conflict/stimuli/<shape>/<shape>i-<texture>j.png`` and ``out/cue_conflict/labels.json``.

    Parameters
    ----------
    out : Path
        Data root: ``--data-root OUT -p cue_conflict`` then uses the set.
    seed : int
        The same seed gives the same bytes.
    count : int
        Number of stimuli, 0: 300. A bigger number continues a smaller set.
    progress : callable, optional
        ``progress(done, total)``.
    size : int
        Width and height in pixels.
    background : int
        Grey level around the shape, 0 to 255.
    shapes, textures : str
        Folders of your own pictures, ``<class>/<image>``; both or none. Of none, the set is drawn.
    by : str
        How your shapes and textures are joined: ``composition``, ``quilting`` or ``style``.
    network : str
        Style transfer: an observer whose features are used.
    segmenter : str
        For shapes without a mask.
    steps, weight : int, float
        Style transfer: steps of the optimiser, weight of the texture.
    block : int
        Quilting: side of a block in pixels.

    Returns
    -------
    StimulusSet
        The set as read back from the folder.
    """
    home = out / "cue_conflict"
    if shapes or textures:
        if not (shapes and textures):
            raise UserError("own shapes and own textures go together", "--shapes DIR --textures DIR")
        settings = Settings(by, network, segmenter, size, background, seed, steps, weight, block)
        folders = Path(shapes).expanduser(), Path(textures).expanduser()
        return make_own(home, *folders, settings, count, progress)
    if by != "composition" or network:
        raise UserError("by= and network= join pictures of your own: none are named", "--shapes DIR --textures DIR")
    count = count or DEFAULT_COUNT
    pairs = list(plan(count))
    _prepare(home, pairs, {"seed": seed, "size": size, "background": background})
    missing = [p for p in pairs if not (home / "stimuli" / p.path).is_file()]
    silhouette, filling = _kept(draw_shape, seed, size), _kept(draw_texture, seed, size)

    def write_stimulus(p: Pair) -> None:
        cover = silhouette(p.shape, p.i)[..., None]
        picture = cover * filling(p.texture, p.j) + (1 - cover) * (background / 255)
        write_atomic(home / "stimuli" / p.path, png_bytes((picture * 255).round().astype(np.uint8)))

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for done, _ in enumerate(pool.map(write_stimulus, missing), start=count - len(missing) + 1):
            if progress:
                progress(done, count)
    return read(home / "stimuli", expected=count)


def _prepare(home: Path, pairs: list[Pair], settings: dict[str, int]) -> None:
    """Refuse to mix two sets in one folder, then write the label map and the record of how the set is made."""
    record = {"maker": "cue_conflict", "version": VERSION, **settings}
    stimuli = home / "stimuli"
    there = {p.relative_to(stimuli) for p in stimuli.glob("*/*.png")}
    claim(home, record, there)
    refuse_surplus(home, there, {p.path for p in pairs})
    targets = {name: list(members) for name, members in sorted({**SHAPES, **TEXTURES}.items())}
    write_json(home / "labels.json", {"about": ABOUT, "targets": targets})
    write_json(home / MADE, {**record, "count": len(pairs)})


def _kept(draw: Callable[..., Floats], seed: int, size: int) -> Callable[[str, int], Floats]:
    """Return a function that draws an instance, and keeps the last ones: a block's shapes are shown again and again."""
    most = max(1, MEMORY // (3 * 8 * size * size))
    return lru_cache(most)(lambda name, instance: draw(name, instance, seed=seed, size=size))


def _rng(seed: int, name: str, instance: int) -> np.random.Generator:
    # crc32, not hash(): the same in every process. Each source has its own stream, so a subset changes nothing.
    return np.random.default_rng([seed, zlib.crc32(name.encode()), instance])


MAKER = Maker(
    "cue_conflict",
    "300 images: ten silhouettes of ImageNet objects filled with ten procedural textures, all in conflict; or from "
    "folders of your own shapes and textures",
    make,
    {
        "size": Option(224, "width and height in pixels", low=32, high=LARGEST_SIDE),
        "background": Option(255, "grey level around the shape", low=0, high=255),
        "shapes": Option("", "folder of your own shapes, <class>/<image>, with masks or without"),
        "textures": Option("", "folder of your own textures, <class>/<image>"),
        "by": Option("composition", "how your shapes and textures are joined", choices=METHODS),
        "network": Option("", "style: a torch network whose features are used, e.g. lite:efficientnet_lite0"),
        "segmenter": Option(
            "grabcut", "for shapes without a mask: grabcut, hf:MODEL, sam:MODEL, python:FILE.py:FUNCTION"
        ),
        "steps": Option(100, "style: steps of the optimiser", low=1, high=1_000_000),
        "weight": Option(10.0, "style: weight of the texture against the shape", low=0),
        "block": Option(48, "quilting: side of a block in pixels", low=4, high=LARGEST_SIDE),
    },
)
