"""Choosing classes so that two cues are equally recognisable. A helper, not a metric."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from cuebench.errors import UserError

EXHAUSTIVE = 200_000
"""Up to this many choices are all looked at."""


class Balance(NamedTuple):
    """The chosen classes with their recognisability, and the means of both cues."""

    shape: dict[str, float]
    texture: dict[str, float]

    @property
    def means(self) -> tuple[float, float]:
        """Mean recognisability of the chosen shape and texture classes."""
        return float(np.mean(list(self.shape.values()))), float(np.mean(list(self.texture.values())))

    @property
    def gap(self) -> float:
        """Shape minus texture."""
        return self.means[0] - self.means[1]


def balance(shape: Mapping[str, float], texture: Mapping[str, float], classes: int) -> Balance:
    """Choose ``classes`` shape classes and as many others for texture, so that both cues are equally recognisable.

    A class that both cues exist of goes to the one in which it is better recognised. The cue that is harder even with
    its best classes sets the level; of the other, those classes are taken whose mean comes nearest to it.

    Parameters
    ----------
    shape, texture : mapping of class to recognisability
        Mean over a panel of observers, e.g. of the class-wise sensitivity.
    classes : int
        How many for each cue.

    Examples
    --------
    >>> found = balance({"a": 0.9, "b": 0.5, "c": 0.3}, {"x": 0.5, "y": 0.4, "z": 0.1}, 2)
    >>> sorted(found.shape), sorted(found.texture), round(abs(found.gap), 2)
    (['b', 'c'], ['x', 'y'], 0.05)
    """
    one, other = _disjoint(shape, texture)
    if not shape and not texture:
        raise UserError(
            "no class has a value for all observers of the panel",
            "run refined_bias with models, or choose another --measure (sensitivity, top1, top5) or --condition "
            "(faithful, native); ideal observers have no native view",
        )
    if classes < 1 or len(one) < classes or len(other) < classes:
        raise UserError(
            f"cannot choose {classes} classes of each cue from {len(one)} shape and {len(other)} texture classes",
            "ask for fewer with --classes, or make cues of more classes",
        )
    best = {cue: _best(values, classes) for cue, values in (("shape", one), ("texture", other))}
    level = {cue: float(np.mean(list(found.values()))) for cue, found in best.items()}
    if level["shape"] <= level["texture"]:
        return Balance(best["shape"], _nearest(other, classes, level["shape"]))
    return Balance(_nearest(one, classes, level["texture"]), best["texture"])


def _disjoint(shape: Mapping[str, float], texture: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    one = {c: v for c, v in sorted(shape.items()) if v >= texture.get(c, -1.0)}
    return one, {c: v for c, v in sorted(texture.items()) if c not in one}


def _best(values: Mapping[str, float], count: int) -> dict[str, float]:
    return dict(sorted(values.items(), key=lambda item: (-item[1], item[0]))[:count])


def _nearest(values: Mapping[str, float], count: int, level: float) -> dict[str, float]:
    """Return the choice whose mean is nearest to a level; of equal ones the first."""
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    if comb(len(ordered), count) <= EXHAUSTIVE:
        choices = combinations(range(len(ordered)), count)
        found = min(choices, key=lambda c: abs(sum(ordered[i][1] for i in c) / count - level))
        return dict(ordered[i] for i in found)
    return dict(ordered[i] for i in _exchanged([v for _, v in ordered], count, level))


def _exchanged(values: list[float], count: int, level: float) -> list[int]:
    """Start from the run of neighbours nearest to the level, then exchange one for one as long as that helps."""

    def gap(chosen: list[int]) -> float:
        return abs(sum(values[i] for i in chosen) / count - level)

    runs = [list(range(start, start + count)) for start in range(len(values) - count + 1)]
    chosen = min(runs, key=gap)
    better = True
    while better:
        swaps = (
            [*chosen[:k], i, *chosen[k + 1 :]] for k in range(count) for i in set(range(len(values))) - set(chosen)
        )
        best = min(swaps, key=gap, default=chosen)
        better = gap(best) < gap(chosen) - 1e-12
        chosen = sorted(best) if better else chosen
    return chosen
