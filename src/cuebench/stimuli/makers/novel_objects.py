"""Novel objects: sixteen shapes without a name in sixteen textures, at five sizes, aligned and unaligned.

The stimuli of experiment 3 of the protocol ``triplets``, as files. Your own masks and textures take the place of the
built-in ones: ``--set shapes=FOLDER`` (black on white) and ``--set textures=FOLDER`` (pictures of at least 224 pixels).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.arrays import Pixels
from cuebench.errors import UserError, did_you_mean
from cuebench.files import write_atomic, write_json
from cuebench.options import Option
from cuebench.stimuli.drawing import novel_shapes
from cuebench.stimuli.drawing import textures as texture_parts
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.made import MADE, claim
from cuebench.stimuli.makers._novel_inputs import masks_of, photographs_of
from cuebench.stimuli.makers._novel_sheet import contact_sheet
from cuebench.stimuli.makers.base import Maker, Progress
from cuebench.stimuli.manifest import write_manifest
from cuebench.stimuli.png import QUICK, png_bytes
from cuebench.stimuli.readers.scan import shortfall
from cuebench.stimuli.sources import novel_object
from cuebench.types import Stimulus, StimulusSet

NAME = "novel_objects"
SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)
PLACES = {"aligned": "centre", "unaligned": "random"}
Parts = Mapping[str, Pixels | None]
"""Name → mask or picture of the user; None: the built-in shape or texture of that name."""


class Settings(NamedTuple):
    """What decides the pixels, next to shapes and textures."""

    seed: int
    background: str
    colour: bool


class Object(NamedTuple):
    """One stimulus: shape, texture, condition, and which of several patches."""

    shape: str
    texture: str
    size: float
    place: str
    patch: int

    @property
    def id(self) -> str:
        """Name of the stimulus."""
        return f"{self.shape}-{self.texture}{f'.{self.patch}' if self.patch else ''}/{self.condition}"

    @property
    def condition(self) -> str:
        """Condition of experiment 3."""
        return f"experiment3/size={self.size:.1f}/{self.place}"

    @property
    def path(self) -> str:
        """File below the folder of the set."""
        return f"size={self.size:.1f}/{self.place}/{self.id.partition('/')[0]}.png"


def plan(shapes: Parts, textures: Parts, count: int = 0) -> list[Object]:
    """Return the stimuli: every shape in every texture at every size and place; a larger ``count`` adds patches.

    An object of full size has one place only, so ``size=1.0`` has no unaligned form. A smaller ``count`` keeps all
    conditions and takes the first shapes in the first textures: anchors find their matches among few, too.
    """
    conditions = [(s, p) for p in PLACES for s in SIZES if (s, p) != (1.0, "unaligned")]
    whole = len(shapes) * len(textures) * len(conditions)
    patches = -(-(count or whole) // whole)
    objects = [
        Object(shape, texture, size, place, patch)
        for patch in range(patches)
        for size, place in conditions
        for shape in shapes
        for texture in textures
    ]
    ranks = {name: rank for names in (shapes, textures) for rank, name in enumerate(names)}

    def order(o: Object) -> tuple[int, int, int]:
        return o.patch, max(ranks[o.shape], ranks[o.texture]), ranks[o.shape]

    chosen = set(sorted(objects, key=order)[: count or whole])
    return [o for o in objects if o in chosen]


def make(
    out: Path,
    *,
    seed: int = 0,
    count: int = 0,
    progress: Progress | None = None,
    shapes: str = "",
    textures: str = "",
    background: str = "white",
    colour: bool = True,
) -> StimulusSet:
    """Write ``out/novel_objects/size=S/PLACE/SHAPE-TEXTURE.png``, the manifest and a contact sheet.

    Parameters
    ----------
    out : Path
        Data root: ``--data-root OUT -p triplets`` then shows these objects in experiment 3.
    seed : int
        The same seed gives the same bytes; another one other instances of the textures, other patches and places.
    count : int
        Number of stimuli, 0: all 2,304. A bigger number adds further patches of the same textures.
    progress : callable, optional
        ``progress(done, total)``.
    shapes, textures : str
        Names with commas between them, or a folder of your own: masks (black on white) and pictures.
    background : str
        ``white``, ``grey`` or ``noise``.
    colour : bool
        False: grey textures.

    Returns
    -------
    StimulusSet
        The set as written to ``manifest.parquet``.
    """
    masks = _chosen("shape", shapes, novel_object.SHAPES, novel_shapes.names(), masks_of)
    pictures = _chosen("texture", textures, novel_object.TEXTURES, texture_parts.names(), photographs_of)
    settings = Settings(seed, background, colour)
    home, objects, whole = out / NAME, plan(masks, pictures, count), len(plan(masks, pictures))
    _prepare(home, settings, masks, pictures)
    missing = [o for o in objects if not (home / o.path).is_file()]

    def write_object(o: Object) -> None:
        write_atomic(home / o.path, png_bytes(drawn(o, masks, pictures, settings), QUICK))

    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        for done, _ in enumerate(pool.map(write_object, missing), start=len(objects) - len(missing) + 1):
            if progress:
                progress(done, len(objects))
    write_atomic(home / "contact_sheet.png", png_bytes(contact_sheet(masks, pictures, settings, drawn), QUICK))
    return _written(home, objects, settings, max(whole, len(objects)))


def drawn(o: Object, shapes: Parts, textures: Parts, settings: Settings) -> Pixels:
    """Draw one stimulus."""
    mask, picture = shapes[o.shape], textures[o.texture]
    return novel_object.draw(
        seed=novel_object.seed_of(o.id, settings.seed),
        shape=o.shape if mask is None else mask,
        texture=o.texture if picture is None else picture,
        size=o.size,
        position=PLACES[o.place],
        background=settings.background,
        colour=settings.colour,
        series=settings.seed,
    )


def _chosen(kind: str, text: str, default: tuple[str, ...], known: list[str], read: Any) -> Parts:
    if text and Path(text).expanduser().is_dir():
        return dict(read(Path(text).expanduser()))
    names = [n.strip() for n in text.split(",") if n.strip()] or list(default)
    for name in names:
        if name not in known:
            raise did_you_mean(f"{kind} (or folder)", name, known)
    if len(names) < 2:
        raise UserError(f"one {kind} gives no match of another {kind}", "name two or more")
    return dict.fromkeys(names)


def _prepare(home: Path, settings: Settings, shapes: Parts, textures: Parts) -> None:
    """Refuse to mix two sets in one folder, then write the record of how this one is made."""
    record = {"maker": NAME, "version": novel_object.VERSION, **settings._asdict()}
    record |= {"shapes": list(shapes), "textures": list(textures)}
    claim(home, record, list(islice(home.glob("size=*/*/*.png"), 1)))
    write_json(home / MADE, record)


def _written(home: Path, objects: list[Object], settings: Settings, whole: int) -> StimulusSet:
    """Write the manifest of what lies in the folder."""
    facts = hash_files([home / o.path for o in objects])
    stimuli = [
        Stimulus(
            o.id,
            path=o.path,
            sha256=f.sha256,
            width=novel_object.PIXELS,
            height=novel_object.PIXELS,
            shape=o.shape,
            texture=o.texture,
            shape_source=o.shape,
            texture_source=f"{o.texture}.{settings.seed}",
            condition=o.condition,
        )
        for o, f in zip(objects, facts)
    ]
    stimulus_set = StimulusSet(NAME, tuple(stimuli), "", whole, shortfall(len(stimuli), whole))
    write_manifest(stimulus_set, home / "manifest.parquet")
    return replace(stimulus_set, root=str(home))


MAKER = Maker(
    NAME,
    "2,304 novel objects: 16 shapes × 16 textures, five sizes, aligned and unaligned, with a contact sheet",
    make,
    {
        "shapes": Option("", "names separated by commas, or a folder of masks, black on white; default: 16 built in"),
        "textures": Option("", "names separated by commas, or a folder of pictures; default: 16 built in"),
        "background": Option("white", "what surrounds the object", choices=novel_object.BACKGROUNDS),
        "colour": Option(True, "false: grey textures"),
    },
    protocol="triplets",
)
