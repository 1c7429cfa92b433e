"""Procedural textures as files: ``textures/<class>/<class>_<variant>.png``, for texture association without a download.

The same drawings that the protocol shows where no texture folder is found; as files they can be looked at, filtered,
mixed with photographs, and shown to people. They are drawings: the published values belong to other pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.files import write_atomic, write_json
from cuebench.options import Option
from cuebench.stimuli.drawing.textures import VERSION, names
from cuebench.stimuli.made import MADE, claim, refuse_surplus
from cuebench.stimuli.makers.base import LARGEST_SIDE, Maker, Progress
from cuebench.stimuli.png import QUICK, png_bytes
from cuebench.stimuli.readers.texture_folder import read
from cuebench.stimuli.sources.texture import SIZE, draw
from cuebench.types import StimulusSet

VARIANTS = 100
"""Of each class, where no count is given."""


class Patch(NamedTuple):
    """One picture: which variant of which texture."""

    name: str
    variant: int

    @property
    def path(self) -> Path:
        """Path below the set's folder."""
        return Path(self.name, f"{self.name}_{self.variant:04d}.png")


def plan(count: int) -> Iterator[Patch]:
    """Yield ``count`` patches such that every prefix is balanced over the classes."""
    classes = names()
    for n in range(count):
        yield Patch(classes[n % len(classes)], n // len(classes))


def make(
    out: Path,
    *,
    seed: int = 0,
    count: int = 0,
    progress: Progress | None = None,
    size: int = SIZE,
    colour: bool = True,
    scale: float = 1.0,
) -> StimulusSet:
    """Write ``out/textures/<class>/<class>_<variant>.png``.

    Parameters
    ----------
    out : Path
        Data root: ``--data-root OUT -p texture_association`` then uses the set.
    seed : int
        The same seed gives the same bytes.
    count : int
        Number of pictures in all, 0: 100 of each class. A bigger number continues a smaller set.
    progress : callable, optional
        ``progress(done, total)``.
    size : int
        Width and height in pixels.
    colour : bool
        False: grey pictures of the same structure.
    scale : float
        Size of the structure.

    Returns
    -------
    StimulusSet
        The set as read back from the folder.
    """
    count = count or VARIANTS * len(names())
    home, patches = out / "textures", list(plan(count))
    _prepare(home, patches, {"seed": seed, "size": size, "colour": colour, "scale": scale})
    missing = [p for p in patches if not (home / p.path).is_file()]

    def write_patch(p: Patch) -> None:
        picture = draw(seed=p.variant, name=p.name, size=size, colour=colour, scale=scale, series=seed)
        write_atomic(home / p.path, png_bytes(picture, QUICK))

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for done, _ in enumerate(pool.map(write_patch, missing), start=count - len(missing) + 1):
            if progress:
                progress(done, count)
    return read(home, expected=count)


def _prepare(home: Path, patches: list[Patch], settings: dict[str, Any]) -> None:
    """Refuse to mix two sets in one folder, then write the record of how this one is made."""
    record = {"maker": "textures", "version": VERSION, **settings}
    there = {p.relative_to(home) for p in home.glob("*/*.png")}
    claim(home, record, there)
    refuse_surplus(home, there, {p.path for p in patches})
    write_json(home / MADE, {**record, "count": len(patches)})


MAKER = Maker(
    "textures",
    "100 pictures of each procedural texture: stripes, scales, weaves, stone, fur, leaves and sixty more",
    make,
    {
        "size": Option(SIZE, "width and height in pixels", low=8, high=LARGEST_SIDE),
        "colour": Option(True, "false: grey pictures of the same structure"),
        "scale": Option(1.0, "size of the structure", low=0.01, high=100),
    },
    protocol="texture_association",
)
