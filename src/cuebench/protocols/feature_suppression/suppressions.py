"""The suppressions of Burgert et al. and their levels, as recipes: as the authors' code makes them, and corrected.

``faithful`` is what the authors' repository (tomburgert/feature-reliance) does: the whole photograph stretched to 224 ×
224; Gaussian blur with the listed σ; non-local means on the three channels together; OpenCV's grey, its mixtures
truncated; any of the six orders of channels; patches turned as squares, for which the image is resized to a multiple of
the grid and back; pairs over the levels. ``corrected`` keeps proportions (the usual centre square), takes the usual σ
of a kernel, filters luminance and chroma apart, never draws the original order of channels, and pairs every two kinds
at a middle level.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations, product

from cuebench.errors import UserError
from cuebench.types import REMOVED, Stimulus

FAITHFUL, CORRECTED = "faithful", "corrected"
MODES = (FAITHFUL, CORRECTED)
SIZE = 224
"""Width and height of the published pictures."""
ORIGINAL = "original"
GRIDS = tuple(f"grid={g}" for g in range(2, 17, 2))
BILATERAL = tuple(f"diameter={d}&sigma_colour={s}" for d, s in zip(range(4, 15, 2), (50, 80, 110, 140, 170, 200)))
"""Diameter and colour width rise together."""
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
GREY = "alpha=1.0&weights=rec601"
"""Colour removed completely, in the pairs of the authors."""
ORDERS = tuple(permutations(range(3)))

Levels = Mapping[str, Mapping[str, tuple[str, ...]]]
LEVELS: Levels = {
    "shape": {"patch_shuffle": GRIDS, "patch_rotation": GRIDS},
    "texture": {
        "bilateral": BILATERAL,
        "gaussian_blur": tuple(
            f"kernel={k}&sigma={s}" for k, s in zip(range(3, 16, 2), (0.33, 0.66, 1.0, 1.33, 1.66, 2.0, 2.33))
        ),
        # OpenCV takes the published template of 14 pixels for 15.
        "non_local_means": tuple(f"strength={h}&patch=15&colour=rgb" for h in range(5, 26, 5)),
    },
    "colour": {"greyscale": tuple(f"alpha={a}&weights=rec601" for a in ALPHAS), "channel_shuffle": ("",)},
}
"""What is taken away → suppression → its levels as the authors have them, weak to strong, as options of the cue."""
CORRECTED_LEVELS: Levels = {
    "shape": LEVELS["shape"],
    "texture": {
        "bilateral": BILATERAL,
        "gaussian_blur": tuple(f"kernel={k}" for k in range(3, 16, 2)),
        "non_local_means": tuple(f"strength={h}" for h in range(5, 26, 5)),
    },
    "colour": {"greyscale": tuple(f"alpha={a}" for a in ALPHAS), "channel_shuffle": ("",)},
}
MIDDLE = {name: levels[len(levels) // 2] for kind in CORRECTED_LEVELS.values() for name, levels in kind.items()}
"""The level that a suppression has in a corrected pair."""
PAIRS: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("patch_shuffle", "greyscale"): tuple((grid, GREY) for grid in GRIDS),
    ("bilateral", "patch_shuffle"): (*zip(BILATERAL, GRIDS), *((BILATERAL[4], grid) for grid in GRIDS)),
    ("bilateral", "greyscale"): tuple((filtered, GREY) for filtered in BILATERAL),
}
"""The pairs of the authors → their levels. Bilateral with shuffled patches: both rising, and diameter 12 with all."""


@dataclass(frozen=True)
class Suppression:
    """One condition: what is taken away, by what, at which level."""

    name: str
    kinds: tuple[str, ...]
    options: str
    recipe: str

    @property
    def condition(self) -> str:
        """Name in the score table: ``patch_shuffle/grid=4``."""
        return f"{self.name}/{self.options}" if self.options else self.name

    def stimulus(self, photograph: Stimulus) -> Stimulus:
        """Return the picture of a photograph; a cue that was taken away is marked, for ideal observers."""
        # One seed for a photograph: all levels of a shuffle draw from the same numbers.
        seed = zlib.crc32(photograph.id.encode())
        order = ORDERS[zlib.crc32(b"order", seed) % len(ORDERS)]
        return Stimulus(
            id=f"{photograph.id}|{self.condition}",
            path=photograph.path,
            sha256=photograph.sha256,
            width=photograph.width,
            height=photograph.height,
            label=photograph.label,
            shape=REMOVED if "shape" in self.kinds else photograph.label,
            texture=REMOVED if "texture" in self.kinds else photograph.label,
            condition=self.condition,
            recipe=self.recipe.replace("{order}", "[{},{},{}]".format(*order)),
            seed=seed,
        )


def suppressions(mode: str = FAITHFUL, size: int = SIZE) -> tuple[Suppression, ...]:
    """Return the original, every suppression at every level, and the pairs that take away two kinds.

    Parameters
    ----------
    mode : {"faithful", "corrected"}
        See the module.
    size : int
        Width and height of the pictures that are suppressed; widths of filters are in their pixels.
    """
    if mode not in MODES:
        raise UserError(f"mode {mode!r}", f"one of {', '.join(MODES)}")
    before = _before(mode, size)
    pairs = _pairs(before) if mode == FAITHFUL else _corrected_pairs(before)
    planned = (Suppression(ORIGINAL, (), "", before), *_single(mode, size), *pairs)
    # Diameter 12 with a grid of 10 is in both of the authors' lists.
    return tuple({c.condition: c for c in planned}.values())


def kinds_of(name: str) -> tuple[str, ...]:
    """Return what a suppression, or a pair ``a+b`` of two, takes away; empty for the original."""
    return tuple(kind for kind, names in LEVELS.items() if set(name.split("+")) & set(names))


def _before(mode: str, size: int) -> str:
    """Return what is done to a photograph first: stretched, or the usual centre square."""
    return f"stretch?size={size}" if mode == FAITHFUL else f"square?size={size}&resize={round(256 * size / SIZE)}"


def _single(mode: str, size: int) -> Iterator[Suppression]:
    before = _before(mode, size)
    for kind, members in (LEVELS if mode == FAITHFUL else CORRECTED_LEVELS).items():
        for name, levels in members.items():
            for options in levels:
                step = _faithful_step(name, options, size) if mode == FAITHFUL else _step(name, options)
                yield Suppression(name, (kind,), options, f"{before};{step}")


def _pairs(before: str) -> Iterator[Suppression]:
    for names, levels in PAIRS.items():
        for options in levels:
            steps = [_step(name, option) for name, option in zip(names, options)]
            name = "+".join(names)
            yield Suppression(name, kinds_of(name), "&".join(options), ";".join([before, *steps]))


def _corrected_pairs(before: str) -> Iterator[Suppression]:
    for (first, first_names), (second, second_names) in combinations(CORRECTED_LEVELS.items(), 2):
        for pair in product(first_names, second_names):
            # Patches are moved last, so that no filter smooths the seams between them.
            steps = [_step(name, MIDDLE[name]) for name in sorted(pair, key=lambda name: name in LEVELS["shape"])]
            yield Suppression("+".join(pair), (first, second), "", ";".join([before, *steps]))


def _faithful_step(name: str, options: str, size: int) -> str:
    if name == "channel_shuffle":
        return f"{name}?order={{order}}"
    step = _step(name, options)
    if name == "gaussian_blur":
        return f"{step}&quantised=true"
    if name == "greyscale":
        return f"{step}&rounding=truncate"
    grid = int(options.removeprefix("grid=")) if name == "patch_rotation" else 1
    if size % grid == 0:
        return step
    return f"stretch?size={math.ceil(size / grid) * grid};{step};stretch?size={size}"


def _step(name: str, options: str) -> str:
    return f"{name}?{options}" if options else name
