"""The population H that S_cd is normalised by: the models of a run, or a published one. A helper, not a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.metrics.quality import Quality

RUN = "run"
"""Name of the population that the models of the run are."""


@dataclass(frozen=True)
class Population:
    """A set of models with their qualities on one shape cue and one texture cue.

    Parameters
    ----------
    name : str
        ``run``, or the name of a published population.
    shape, texture : mapping of str to Quality
        Model → Q_S and Q_T; without draws where they are printed numbers.
    source : str
        Where the numbers come from.
    """

    name: str
    shape: Mapping[str, Quality]
    texture: Mapping[str, Quality]
    source: str = ""

    def __post_init__(self) -> None:
        if not self.shape or set(self.shape) != set(self.texture):
            raise UserError(f"population {self.name!r} has {len(self.shape)} Q_S and {len(self.texture)} Q_T")

    def __len__(self) -> int:
        return len(self.shape)

    def without(self, names: set[str]) -> Population:
        """Return the population without some models (the paper leaves out those it trained itself)."""
        keep = [m for m in self.shape if m not in names]
        if not keep:
            raise UserError(f"no model is left in population {self.name!r}", f"its members: {', '.join(self.shape)}")
        left = [m for m in self.shape if m in names]
        if not left:
            return self
        # Another H is another scale, so it has another name.
        shape, texture = ({m: of[m] for m in keep} for of in (self.shape, self.texture))
        source = f"{self.source} without {', '.join(left)}"
        return replace(self, name=f"{self.name} less {len(left)}", shape=shape, texture=texture, source=source)

    @property
    def s(self) -> float:
        """Mean of Q_S."""
        return float(np.mean([q.value for q in self.shape.values()]))

    @property
    def t(self) -> float:
        """Mean of Q_T."""
        return float(np.mean([q.value for q in self.texture.values()]))

    def draws(self, resamples: int) -> tuple[Any, Any]:
        """Return s and t in each resample: drawn with the images in a run, fixed in a frozen population."""
        return _mean_draws(self.shape, self.s, resamples), _mean_draws(self.texture, self.t, resamples)

    def described(self) -> str:
        """Return what stands beside a score."""
        alone = " (one model is its own average: .5 by definition)" if len(self) == 1 and self.name == RUN else ""
        said = f" ({self.source})" if " without " in self.source else ""
        number = f"{len(self)} model{'s' * (len(self) != 1)}"
        return f"H = {self.name}{said}: {number}{alone}, s = {self.s:.4f}, t = {self.t:.4f}"


def fixed(value: float) -> Quality:
    """Return a printed number as a quality without draws."""
    return Quality(float(value), np.empty(0), 0)


def divided(top: Any, bottom: Any) -> Any:
    """Divide; NaN where the denominator is 0. A float for floats."""
    a, b = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    found = np.divide(a, b, out=np.full(np.broadcast(a, b).shape, np.nan), where=b != 0)
    return found if found.ndim else float(found)


def _mean_draws(qualities: Mapping[str, Quality], mean: float, resamples: int) -> Any:
    drawn = [q.draws for q in qualities.values()]
    # Models that were shown another number of images cannot be drawn together with the others.
    together = all(len(d) == resamples for d in drawn)
    return np.mean(drawn, axis=0) if together else mean
