"""Texture dominance: whether a model does better on the images of a class that show the class's usual texture.

Images are grouped by class and by the texture that ``texture_identity`` finds in them. By label, a group has an
accuracy (Table I, figures 8 and 9 of the paper); by prediction, a mean confidence (Table II, figures 10 and 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.statistics.intervals import Bootstrap, child_generator, percentile, undefined
from cuebench.types import Interval

NONE = -1


STATISTICS = ("correlation", "textures", "with_dominant", "without_dominant", "gap", "all")


class Dominance(NamedTuple):
    """The class-level statistics; NaN where one is undefined."""

    correlation: float
    textures: float
    with_dominant: float
    without_dominant: float
    gap: float
    all: float


@dataclass(frozen=True)
class Groups:
    """Images by class and texture: how many, and the sum of their values. Groups of shards add up.

    Parameters
    ----------
    counts : array classes × textures
        Number of images.
    sums : array classes × textures
        Sum of the values (1 for a right answer, or the confidence).
    lost : int
        Images without any texture, which belong to no group.
    """

    counts: Floats
    sums: Floats
    lost: int = 0

    def merge(self, other: Groups) -> Groups:
        """Return the groups of both."""
        return Groups(self.counts + other.counts, self.sums + other.sums, self.lost + other.lost)

    @cached_property
    def dominant(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The most frequent texture of each class; −1 for a class without an image."""
        return np.where(self.counts.sum(1) > 0, self.counts.argmax(1), NONE)

    @property
    def classes(self) -> int:
        """Number of classes with an image."""
        return int((self.counts.sum(1) > 0).sum())

    @property
    def alone(self) -> int:
        """Number of classes with a single image, whose share says nothing."""
        return int((self.counts.sum(1) == 1).sum())


def group(classes: Array, textures: Array, values: Array, k: int, m: int) -> Groups:
    """Group images by class (of ``m``) and texture (of ``k``); texture −1 belongs to no group."""
    classes, textures, values = (np.asarray(a) for a in (classes, textures, values))
    if not len(classes) == len(textures) == len(values):
        raise UserError(f"{len(classes)} classes, {len(textures)} textures and {len(values)} values do not fit")
    keep = textures >= 0
    cell = classes[keep].astype(np.int64) * k + textures[keep]
    counts = np.bincount(cell, minlength=k * m).astype(np.float64)
    sums = np.bincount(cell, values[keep].astype(np.float64), minlength=k * m).astype(np.float64)
    return Groups(counts.reshape(m, k), sums.reshape(m, k), int((~keep).sum()))


def texture_dominance(groups: Groups) -> Dominance:
    """Return the statistics of Tables I and II and of figures 9 and 11.

    Parameters
    ----------
    groups : Groups
        From ``group``; by label with right answers as values, or by prediction with confidences.

    Returns
    -------
    Dominance
        ``correlation`` is NaN with fewer than two groups or where all shares or all values are equal;
        ``with_dominant`` and ``without_dominant`` are NaN where no image is of that kind; ``gap`` is their difference.

    References
    ----------
    Hoak et al., Err on the Side of Texture, section IV-C.

    Examples
    --------
    >>> g = group(np.array([0, 0, 0]), np.array([1, 1, 0]), np.array([1, 1, 0]), 2, 1)
    >>> texture_dominance(g).gap, texture_dominance(g).textures
    (1.0, 2.0)
    """
    counts, sums = groups.counts, groups.sums
    size = counts.sum(1)
    there = size > 0
    filled = counts > 0
    share = (counts / np.maximum(size, 1)[:, None])[filled]
    value = sums[filled] / counts[filled]
    rows = np.flatnonzero(there)
    top = groups.dominant[rows]
    n_top, s_top = counts[rows, top].sum(), sums[rows, top].sum()
    with_it, without = _ratio(s_top, n_top), _ratio(sums.sum() - s_top, counts.sum() - n_top)
    return Dominance(
        correlation=_pearson(share, value),
        textures=float(filled.sum(1)[there].mean()) if there.any() else float("nan"),
        with_dominant=with_it,
        without_dominant=without,
        gap=with_it - without,
        all=_ratio(sums.sum(), counts.sum()),
    )


def dominance_intervals(
    classes: Array, textures: Array, values: Array, k: int, m: int, *, seed: int = 0, resamples: int = 1000
) -> dict[str, Bootstrap]:
    """Return the interval of each statistic over images: images are drawn anew and dominant textures chosen anew.

    A resample repeats images, so it has fewer distinct textures in a class and larger shares than any real set of this
    size: all its statistics are displaced. What it shows rightly is how far they scatter. The interval is therefore the
    scatter of the resamples about their own mean, moved to the observed value (and kept in bounds): it is about other
    sets of images of the same size, not about endless ones.
    """
    n = len(classes)
    if n < 2:
        return {name: undefined("images", f"{n} image{'s' * (n != 1)}: nothing to resample") for name in STATISTICS}
    rng = child_generator(seed, "texture_dominance")
    # Only cells that occur can occur in a resample: the tables shrink to them, which is most of the speed.
    rows, row = np.unique(classes, return_inverse=True)
    draws = np.empty((resamples, len(STATISTICS)))
    for b in range(resamples):
        chosen = rng.integers(n, size=n)
        draws[b] = texture_dominance(group(row[chosen], textures[chosen], values[chosen], k, len(rows)))
    observed = texture_dominance(group(row, textures, values, k, len(rows)))
    return {name: _centred(draws[:, i], observed[i], _BOUNDS[name]) for i, name in enumerate(STATISTICS)}


_BOUNDS = {
    "correlation": (-1.0, 1.0),
    "textures": (1.0, float("inf")),
    "with_dominant": (0.0, 1.0),
    "without_dominant": (0.0, 1.0),
    "gap": (-1.0, 1.0),
    "all": (0.0, 1.0),
}


def _centred(draws: Floats, value: float, bounds: tuple[float, float]) -> Bootstrap:
    """Return the central 95 % of the draws, moved so that their mean is the observed value."""
    if np.isnan(value):
        return undefined("images", "the statistic is undefined")
    found = percentile(draws, "images")
    if np.isnan(found.interval.low):
        return found
    shift = value - float(np.nanmean(draws))
    low, high = np.clip([found.interval.low + shift, found.interval.high + shift], *bounds)
    return Bootstrap(Interval(float(low), float(high), "images", found.interval.level), found.note)


def _pearson(x: Floats, y: Floats) -> float:
    if len(x) < 2:
        return float("nan")
    a, b = x - x.mean(), y - y.mean()
    scale = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / scale) if scale > 1e-12 else float("nan")


def _ratio(top: float, bottom: float) -> float:
    return float(top / bottom) if bottom else float("nan")


METRIC = Metric(
    name="texture_dominance",
    title="Texture dominance",
    formula=(
        "with images of class c and texture t: share_ct = N_ct / Σ_t N_ct, value_ct = mean accuracy (by label) or "
        "confidence (by prediction); dominant(c) = arg max_t share_ct; correlation = Pearson(share, value) over all "
        "groups with an image; textures = mean over classes of #{t: N_ct > 0}; with / without = mean over the images "
        "whose texture is / is not dominant(class)"
    ),
    denominator="groups with an image (correlation), classes with an image (textures), images (with, without)",
    compute=texture_dominance,
    reference="Hoak, Sheatsley & McDaniel, Err on the Side of Texture, Tables I and II, figures 8 to 11",
    caveats=(
        "The texture of an image is read from the model's own answer, so a wrong answer also tends to change the "
        "texture: part of the gap arises for any TAV. The `shuffled` condition shows how much (a TAV whose classes are "
        "permuted); read the difference to it.",
        "A class with one image has a share of 1 by itself: with few images a class the correlation means little.",
        "Of equally frequent textures the first counts as dominant.",
    ),
    bounds=(-1.0, 1.0),
    chance="see `shuffled`",
    higher_is="more tied to the usual texture of a class",
    needs=("logits",),
)
