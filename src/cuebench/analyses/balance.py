"""Choose classes so that shape cues and texture cues are equally recognisable."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from cuebench.errors import UserError

EXHAUSTIVE = 200_000
"""Up to this many choices are all compared; beyond it, a local search is used."""


class Balance(NamedTuple):
    """The chosen classes of each cue with their recognisability."""

    shape: dict[str, float]
    texture: dict[str, float]

    @property
    def means(self) -> tuple[float, float]:
        """Mean recognisability of the chosen shape and texture classes."""
        return float(np.mean(list(self.shape.values()))), float(np.mean(list(self.texture.values())))

    @property
    def gap(self) -> float:
        """Mean of the shape classes minus mean of the texture classes."""
        return self.means[0] - self.means[1]


def balance(shape: Mapping[str, float], texture: Mapping[str, float], classes: int) -> Balance:
    """Choose ``classes`` shape classes and as many texture classes whose mean recognisability is as equal as possible.

    A class of which both cues exist goes to the cue in which it is better recognised. The cue whose best classes are
    harder sets the level; of the other cue, the classes are chosen whose mean is nearest to it.

    Parameters
    ----------
    shape, texture : mapping of class to recognisability
        Mean over a panel of observers, e.g. of the class-wise sensitivity.
    classes : int
        Number of classes of each cue.

    Examples
    --------
    >>> choice = balance({"a": 0.9, "b": 0.5, "c": 0.3}, {"x": 0.5, "y": 0.4, "z": 0.1}, 2)
    >>> sorted(choice.shape), sorted(choice.texture), round(abs(choice.gap), 2)
    (['b', 'c'], ['x', 'y'], 0.05)
    """
    if not shape and not texture:
        raise UserError(
            "no class has a value for all observers of the panel",
            "run refined_bias with models, or choose another --measure (sensitivity, top1, top5) or --condition "
            "(faithful, native); ideal observers have no native view",
        )
    shapes = {c: v for c, v in sorted(shape.items()) if v >= texture.get(c, -1.0)}
    textures = {c: v for c, v in sorted(texture.items()) if c not in shapes}
    if classes < 1 or len(shapes) < classes or len(textures) < classes:
        raise UserError(
            f"cannot choose {classes} classes of each cue from {len(shapes)} shape and {len(textures)} texture classes",
            "ask for fewer with --classes, or make cues of more classes",
        )
    best_shapes, best_textures = _best(shapes, classes), _best(textures, classes)
    shape_level, texture_level = (float(np.mean(list(best.values()))) for best in (best_shapes, best_textures))
    if shape_level <= texture_level:
        return Balance(best_shapes, _nearest(textures, classes, shape_level))
    return Balance(_nearest(shapes, classes, texture_level), best_textures)


def _best(values: Mapping[str, float], count: int) -> dict[str, float]:
    return dict(sorted(values.items(), key=lambda item: (-item[1], item[0]))[:count])


def _nearest(values: Mapping[str, float], count: int, level: float) -> dict[str, float]:
    """Return the choice whose mean is nearest to a level; the first of equal ones."""
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    if comb(len(ordered), count) <= EXHAUSTIVE:
        choices = combinations(range(len(ordered)), count)
        nearest = min(choices, key=lambda c: abs(sum(ordered[i][1] for i in c) / count - level))
        return dict(ordered[i] for i in nearest)
    return dict(ordered[i] for i in _exchanged([v for _, v in ordered], count, level))


def _exchanged(values: list[float], count: int, level: float) -> list[int]:
    """Start from the neighbouring values nearest to the level, then exchange one value at a time while that helps."""

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
