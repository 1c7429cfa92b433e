"""The corruptions and their levels, as recipes."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from cuebench.registry import cues
from cuebench.types import Stimulus

CLEAN = "clean"
TYPES: dict[str, str] = {
    "contrast": "level",
    "high_pass": "sigma",
    "low_pass": "sigma",
    "uniform_noise": "width",
    "phase_noise": "width",
}
"""Cue → the keyword that its published levels belong to."""
ADDED: dict[str, str] = {"saturation": "factor", "salt_and_pepper": "probability"}
"""Further corruptions that can be asked for; they are shown beside the published ones, never in their mean."""
LEVELS: dict[str, dict[str, tuple[float, ...]]] = {
    "geirhos2018": {},
    "with_figure3": {"contrast": (0.2,), "low_pass": (8.0,)},
}
"""Name of a list of levels → what it adds to those of Geirhos et al. 2018.

Heinert et al. do not print their levels. Their Fig. 3 shows one of each corruption, two of which are not in that list.
"""
CORRECTED = "phase_noise_corrected"
"""Phase noise with mirrored shifts, so that the spectrum stays Hermitian; beside the published one, not in the mean."""


@dataclass(frozen=True)
class Corruption:
    """One picture of every image."""

    kind: str
    level: float
    recipe: str

    @property
    def condition(self) -> str:
        """Name in the scores: ``contrast/level=0.3``."""
        if self.kind == CLEAN:
            return CLEAN
        return f"{self.kind}/{(TYPES | ADDED)[self.kind.removesuffix('_corrected')]}={self.level:g}"

    def stimulus(self, image: Stimulus, before: str) -> Stimulus:
        """Return the corrupted picture of an image; ``before`` is the recipe that cuts it."""
        name = image.id.partition("|")[0]
        return Stimulus(
            id=f"{name}|{self.condition}",
            path=image.path,
            sha256=image.sha256,
            width=image.width,
            height=image.height,
            label=image.label,
            condition=self.condition,
            recipe=";".join(step for step in (before, self.recipe) if step),
            # One seed for an image: all levels of a noise draw the same numbers.
            seed=zlib.crc32(name.encode()),
            mask=image.mask,
            mask_sha256=image.mask_sha256,
        )


def corruptions(*, keep_colour: bool, levels: str = "geirhos2018", also: Sequence[str] = ()) -> tuple[Corruption, ...]:
    """Return the clean picture, every corruption at every level, the corrected phase noise, and further corruptions.

    Parameters
    ----------
    keep_colour : bool
        As published for segmentation; for classification images are grey.
    levels : str
        Name of a list in ``LEVELS``.
    also : sequence of str
        Names in ``ADDED``.
    """
    planned = [Corruption(CLEAN, 0.0, "")]
    for name, keyword in TYPES.items():
        published: Sequence[float] = cues.get(name).info.levels[keyword]
        added = LEVELS[levels].get(name, ())
        strong_last = sorted([*published, *added], reverse=published[0] > published[-1])
        planned += [Corruption(name, level, _step(name, keyword, level, keep_colour)) for level in strong_last]
    for level in cues.get("phase_noise").info.levels["width"]:
        step = _step("phase_noise", "width", level, keep_colour, mode="corrected")
        planned.append(Corruption(CORRECTED, level, step))
    for name in also:
        # Saturation without colour would change nothing.
        coloured = keep_colour or name == "saturation"
        for level in cues.get(name).info.levels[ADDED[name]]:
            planned.append(Corruption(name, level, _step(name, ADDED[name], level, coloured)))
    return tuple(planned)


def _step(name: str, keyword: str, level: float, keep_colour: bool, **more: str) -> str:
    value = "Infinity" if math.isinf(level) else json.dumps(level)  # what a recipe reads as JSON
    colour = {"keep_colour": "true"} if keep_colour and name != "saturation" else {}
    return f"{name}?{urlencode({keyword: value, **more, **colour})}"
