"""The suppressions of Burgert et al. and their levels, as recipes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from cuebench.types import REMOVED, Stimulus

SQUARE = "square?size=224&resize=256"
ORIGINAL = "original"
LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "shape": {
        "patch_shuffle": tuple(f"grid={g}" for g in range(2, 17, 2)),
        "patch_rotation": tuple(f"grid={g}" for g in range(2, 17, 2)),
    },
    "texture": {
        # Diameter and colour width rise together from the weakest to the strongest of the published ranges.
        "bilateral": tuple(
            f"diameter={d}&sigma_colour={s}" for d, s in zip(range(4, 15, 2), (50, 80, 110, 140, 170, 200))
        ),
        "gaussian_blur": tuple(f"kernel={k}" for k in range(3, 16, 2)),
        "non_local_means": tuple(f"strength={h}" for h in range(5, 26, 5)),
    },
    "colour": {
        "greyscale": tuple(f"alpha={a}" for a in (0.2, 0.4, 0.6, 0.8, 1.0)),
        "channel_shuffle": ("",),
    },
}
"""What is taken away → suppression → its levels, weak to strong, as options of the cue."""

MIDDLE = {name: levels[len(levels) // 2] for kind in LEVELS.values() for name, levels in kind.items()}
"""The level that a suppression has in a pair."""


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
            recipe=self.recipe,
            # One seed for a photograph: all levels of a shuffle draw from the same numbers.
            seed=zlib.crc32(photograph.id.encode()),
        )


def suppressions() -> tuple[Suppression, ...]:
    """Return the original, every suppression at every level, and the pairs that take away two kinds."""
    return (Suppression(ORIGINAL, (), "", SQUARE), *_single(), *_pairs())


def _single() -> Iterator[Suppression]:
    for kind, members in LEVELS.items():
        for name, levels in members.items():
            for options in levels:
                yield Suppression(name, (kind,), options, f"{SQUARE};{_step(name, options)}")


def _pairs() -> Iterator[Suppression]:
    for (first, first_names), (second, second_names) in combinations(LEVELS.items(), 2):
        for pair in product(first_names, second_names):
            # Patches are moved last, so that no filter smooths the seams between them.
            steps = [_step(name, MIDDLE[name]) for name in sorted(pair, key=lambda name: name in LEVELS["shape"])]
            yield Suppression("+".join(pair), (first, second), "", ";".join([SQUARE, *steps]))


def _step(name: str, options: str) -> str:
    return f"{name}?{options}" if options else name
