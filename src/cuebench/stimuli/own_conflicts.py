"""Cue-conflict stimuli from a folder of the user's own shapes and a folder of their own textures.

Folder names are classes: ``SHAPES/cat/photo.jpg``, ``TEXTURES/knitted/patch.png``. Three ways to join them:

- ``composition``: the object is cut out by its mask and filled with the texture picture;
- ``quilting``: the same, filled with texture that was quilted from the texture picture (from inside its mask, where it
  has one), so that no shape of the texture picture is left (Efros & Freeman 2001);
- ``style``: the photograph of the shape takes over the texture by optimisation (``stimuli.style_transfer``); no mask.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from cuebench.arrays import Array, Pixels
from cuebench.csv_text import csv_text
from cuebench.errors import UserError, all_problems
from cuebench.files import write_atomic, write_json
from cuebench.labels import members_by_name
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.image_files import as_rgb
from cuebench.stimuli.made import MADE, claim, refuse_surplus
from cuebench.stimuli.masks import segmenter as segmenter_by_name
from cuebench.stimuli.masks.base import BadSource
from cuebench.stimuli.png import png_bytes
from cuebench.stimuli.readers import cue_conflict as reader
from cuebench.stimuli.refined_bias.build import open_source
from cuebench.stimuli.refined_bias.masks import load, open_image
from cuebench.stimuli.refined_bias.objects import framed
from cuebench.stimuli.refined_bias.sources import Source, find_sources, labels_file, where_masks_came_from
from cuebench.stimuli.style_transfer import VERSION as STYLE_VERSION
from cuebench.types import StimulusSet

VERSION = 1
METHODS = ("composition", "quilting", "style")
MOST = 300
"""Stimuli that are made where nobody says how many."""
MARGIN = 0.05
ABOUT = "Classes of cue-conflict stimuli made from a user's own pictures; a class without a map is matched by its name."


class Settings(NamedTuple):
    """Everything that changes a pixel."""

    by: str = "composition"
    network: str = ""
    segmenter: str = "grabcut"
    size: int = 224
    background: int = 255
    seed: int = 0
    steps: int = 100
    weight: float = 10.0
    block: int = 48


class Conflict(NamedTuple):
    """One stimulus: a shape and a texture, and the number of each within its class."""

    shape: Source
    i: int
    texture: Source
    j: int

    @property
    def path(self) -> Path:
        """Path below the stimuli folder."""
        return Path(self.shape.label, f"{self.shape.label}{self.i}-{self.texture.label}{self.j}.png")


def make_own(
    home: Path,
    shapes: Path,
    textures: Path,
    settings: Settings,
    count: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> StimulusSet:
    """Write ``home/stimuli``, ``labels.json`` and ``sources.csv`` (which file and which mask each stimulus is made of).

    Parameters
    ----------
    home : Path
        ``DATA/cue_conflict``.
    shapes, textures : Path
        Folders with a sub-folder for each class.
    settings : Settings
        How they are joined.
    count : int
        Number of stimuli, drawn by the seed; 0: all pairs of different classes, at most 300.
    progress : callable, optional
        ``progress(done, total)``.
    """
    if settings.by == "style" and not settings.network:
        raise UserError(
            "style transfer works on the features of a network: none is named",
            "--by style --network lite:efficientnet_lite0, or another: timm:vgg19.tv_in1k, checkpoint:FILE?arch=…",
        )
    of_shape, problems = find_sources(shapes)
    of_texture, more = find_sources(textures)
    problems += more + [p for s in (*of_shape, *of_texture) for p in _problems(s)]
    conflicts = plan(of_shape, of_texture, settings.seed, count)
    if not conflicts:
        problems.append("there is no pair of a shape and a texture of different classes")
    if problems:
        hint = "expected: SHAPES/<class>/<image> and TEXTURES/<class>/<image>; see docs/own_data.md"
        raise all_problems(f"own shapes in {shapes} and textures in {textures}", dict.fromkeys(problems), hint)
    files = list(dict.fromkeys(p for s in (*of_shape, *of_texture) for p in (s.path, s.mask) if p))
    hashes = ",".join(fact.sha256 for fact in hash_files(files))
    record = {
        "maker": "cue_conflict",
        "version": STYLE_VERSION if settings.by == "style" else VERSION,
        "sources": hashlib.sha256(hashes.encode()).hexdigest()[:16],
        **settings._asdict(),
    }
    folder = home / "stimuli"
    there = {p.relative_to(folder) for p in folder.glob("*/*.png")}
    claim(home, record, there)
    refuse_surplus(home, there, {c.path for c in conflicts})
    draw = _drawer(settings)
    targets = targets_of(conflicts, *([home] if there else []), shapes, textures)
    write_json(home / "labels.json", {"about": ABOUT, "targets": targets})
    write_json(home / MADE, {**record, "count": len(conflicts)})
    for done, conflict in enumerate(conflicts, start=1):
        if not (folder / conflict.path).is_file():
            write_atomic(folder / conflict.path, png_bytes(draw(conflict)))
        if progress:
            progress(done, len(conflicts))
    masks = {} if settings.by == "style" else where_masks_came_from([c.shape for c in conflicts], settings.segmenter)
    write_atomic(home / "sources.csv", _table(conflicts, masks))
    stimuli = reader.read(folder, expected=len(conflicts))
    notes = [f"masks: {n:,} {where}" for where, n in Counter(masks.values()).items()]
    if by_name := [name for name, members in targets.items() if members == [name]]:
        notes.append(
            f"a model must have classes of these names: {', '.join(by_name)}; or say which of its classes are meant in "
            f'{home / "labels.json"}: "{by_name[0]}": ["coffee mug"]'
        )
    return replace(stimuli, notes=(*stimuli.notes, *notes))


def plan(shapes: Sequence[Source], textures: Sequence[Source], seed: int, count: int = 0) -> list[Conflict]:
    """Return pairs of different classes in an order that the seed draws: more stimuli continue fewer."""
    numbered = [(s, _number(s, shapes)) for s in shapes]
    pairs = [
        Conflict(shape, i, texture, _number(texture, textures))
        for shape, i in numbered
        for texture in textures
        if shape.label != texture.label
    ]
    order = np.random.default_rng(seed).permutation(len(pairs))
    wanted = min(count or MOST, len(pairs))
    if count > len(pairs):
        raise UserError(
            f"{count:,} stimuli of {len(pairs):,} pairs of different classes", f"--count {len(pairs)} at most"
        )
    return [pairs[k] for k in order[:wanted]]


def _number(source: Source, among: Sequence[Source]) -> int:
    return 1 + [s.name for s in among if s.label == source.label].index(source.name)


def _problems(source: Source) -> list[str]:
    if reader.parse(f"{source.label}1-{source.label}1") is None or source.label[-1:].isdigit():
        return [
            f"class {source.label!r}: a class begins with a letter and has letters, digits and _ only, no last digit"
        ]
    try:
        load(source)
    except BadSource as error:
        return [f"{source.id}: {error.message}"]
    return []


def targets_of(conflicts: Sequence[Conflict], *folders: Path) -> dict[str, list[Any]]:
    """Return class → the classes of a model that are it: from ``labels.json``, the 16 or ImageNet's, or its name.

    Of several files the last counts. A member that is only the name of the class says nothing: a file of an earlier
    call has it where nobody knew better.
    """
    listed = {
        name: members
        for folder in folders
        for name, members in labels_file(folder / "labels.json").get("targets", {}).items()
        if members != [name]
    }
    return known_targets({c for conflict in conflicts for c in (conflict.shape.label, conflict.texture.label)}, listed)


def known_targets(classes: Iterable[str], listed: Mapping[str, list[Any]] | None = None) -> dict[str, list[Any]]:
    """Return class → its members: as listed, else those of the 16 or of ImageNet, else a class of the same name."""
    listed = listed or {}
    return {name: list(listed.get(name) or members_by_name(name) or [name]) for name in sorted(classes)}


# --------------------------------------------------------------------------------------------------- pictures


def _drawer(settings: Settings) -> Callable[[Conflict], Pixels]:
    """Return the function that draws a stimulus; sources are read once each."""
    size = settings.size
    photograph = lru_cache(maxsize=64)(lambda source: _square(_photograph(source), size))
    if settings.by == "style":
        from cuebench.stimuli.style_transfer import style_network, transfer

        network = style_network(settings.network, size)
        return lambda c: transfer(
            network, photograph(c.shape), photograph(c.texture), steps=settings.steps, weight=settings.weight,
            seed=settings.seed,
        )  # fmt: skip
    segment = segmenter_by_name(settings.segmenter)
    cover = lru_cache(maxsize=64)(lambda source: _cover(source, segment, size))
    filling = (
        lru_cache(maxsize=64)(lambda source: _quilted(source, settings)) if settings.by == "quilting" else photograph
    )

    def draw(conflict: Conflict) -> Pixels:
        inside = cover(conflict.shape)[..., None]
        picture = inside * filling(conflict.texture) + (1 - inside) * settings.background
        return np.asarray(picture.round(), np.uint8)

    return draw


def _square(picture: Pixels, size: int) -> Pixels:
    """Return the middle square of a picture, scaled to ``size``."""
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = Image.fromarray(np.ascontiguousarray(picture[top : top + side, left : left + side]))
    return np.asarray(square.resize((size, size), Image.Resampling.LANCZOS))


def _cover(source: Source, segment: Any, size: int) -> Array:
    """Return how much of each pixel the object covers, 0 to 1: drawn at twice the size, so that edges are smooth."""
    try:
        loaded = open_source(source, segment)
    except BadSource as error:
        raise UserError(
            f"{source.id}: {error.message}", "give it a mask: an alpha channel, or NAME_mask.png beside it"
        ) from None
    mask = framed(loaded.image, loaded.mask, 2 * size, MARGIN).mask
    return np.asarray(mask.reshape(size, 2, size, 2).mean(axis=(1, 3)))


def _photograph(source: Source) -> Pixels:
    return np.asarray(as_rgb(open_image(source.path), source.id))


def _quilted(source: Source, settings: Settings) -> Pixels:
    """Return a square of texture quilted from a picture; from inside its mask where it has one."""
    from cuebench.cues.quilting import quilting

    image, mask = load(source)
    if mask is None:
        picture, inside = _square(image, settings.size), None
    else:
        close = framed(image, mask, settings.size, 0.0)
        picture, inside = close.image, close.mask
    number = int.from_bytes(hashlib.sha256(source.id.encode()).digest()[:4], "big")
    block = min(settings.block, settings.size // 2)
    try:
        return np.asarray(quilting(picture, block=block, inside=inside, rng=[settings.seed * 2**32 + number])[...])
    except UserError as error:
        raise UserError(f"{source.id}: {error.message}", f"a smaller block: --set block={max(8, block // 2)}") from None


def _table(conflicts: Sequence[Conflict], masks: dict[str, str]) -> bytes:
    rows = ((c.path.stem, c.shape.path.name, c.texture.path.name, masks.get(c.shape.id)) for c in conflicts)
    return csv_text(["stimulus", "shape", "texture", "mask"], rows).encode()
