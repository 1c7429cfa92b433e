"""Texture dominance: whether a model does better on images that show the usual texture of their class.

Images are grouped by class and by their texture (``texture_identity``). By label, a group has an
accuracy (Table I, figures 8 and 9 of the paper); by prediction, a mean confidence (Table II, figures 10 and 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats, Positions
from cuebench.errors import UserError
from cuebench.interval_methods import of_resamples
from cuebench.metrics.base import Metric
from cuebench.statistics.intervals import child_generator, percentile, undefined
from cuebench.types import Estimate, Interval

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
    """Images by class and texture: how many, and the sum of their values.

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

    @cached_property
    def dominant(self) -> Positions:
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
    filled = counts > 0
    share = (counts / np.maximum(size, 1)[:, None])[filled]
    value = sums[filled] / counts[filled]
    classes = np.flatnonzero(size > 0)
    top = groups.dominant[classes]
    n_top, sum_top = counts[classes, top].sum(), sums[classes, top].sum()
    with_dominant = _ratio(sum_top, n_top)
    without_dominant = _ratio(sums.sum() - sum_top, counts.sum() - n_top)
    return Dominance(
        correlation=_pearson(share, value),
        textures=float(filled.sum(1)[classes].mean()) if len(classes) else float("nan"),
        with_dominant=with_dominant,
        without_dominant=without_dominant,
        gap=with_dominant - without_dominant,
        all=_ratio(sums.sum(), counts.sum()),
    )


def dominance_estimates(
    classes: Array, textures: Array, values: Array, k: int, m: int, *, seed: int = 0, resamples: int = 1000
) -> dict[str, Estimate]:
    """Return each statistic with an interval over images, for which dominant textures are chosen anew.

    A resample repeats images, so it has fewer distinct textures in a class and larger shares than a real set of this
    size: all its statistics are displaced, but their spread is right. The interval is therefore the spread of the
    resamples about their mean, moved to the observed value and kept in bounds. It is about other sets of images of the
    same size, not about infinitely many images.

    Parameters
    ----------
    classes, textures, values : arrays n
        Class, texture (−1: none) and value of each image, as in ``group``.
    k, m : int
        Number of textures and of classes.
    seed, resamples : int
        Of the bootstrap.

    Returns
    -------
    dict of str to Estimate
        One for each name in ``STATISTICS``; n counts the images with a texture.
    """
    n, groups = len(classes), group(classes, textures, values, k, m)
    observed, grouped = texture_dominance(groups), n - groups.lost
    if n < 2:
        nothing = undefined("images", f"{n} image{'s' * (n != 1)}: nothing to resample")
        return {name: Estimate(value, grouped, (nothing,)) for name, value in zip(STATISTICS, observed)}
    rng = child_generator(seed, "texture_dominance")
    # Only classes that occur can occur in a resample: without the others the tables are small and fast.
    present, row = np.unique(classes, return_inverse=True)
    draws = np.empty((resamples, len(STATISTICS)))
    for b in range(resamples):
        chosen = rng.integers(n, size=n)
        draws[b] = texture_dominance(group(row[chosen], textures[chosen], values[chosen], k, len(present)))
    return {
        name: Estimate(value, grouped, (_centred(draws[:, i], value, _BOUNDS[name]),))
        for i, (name, value) in enumerate(zip(STATISTICS, observed))
    }


_BOUNDS = {
    "correlation": (-1.0, 1.0),
    "textures": (1.0, float("inf")),
    "with_dominant": (0.0, 1.0),
    "without_dominant": (0.0, 1.0),
    "gap": (-1.0, 1.0),
    "all": (0.0, 1.0),
}


def _centred(draws: Floats, value: float, bounds: tuple[float, float]) -> Interval:
    """Return the central 95 % of the draws, moved so that their mean is the observed value."""
    if np.isnan(value):
        return undefined("images", "the statistic is undefined")
    interval = percentile(draws, "images")
    if np.isnan(interval.low):
        return interval
    shift = value - float(np.nanmean(draws))
    low, high = np.clip([interval.low + shift, interval.high + shift], *bounds)
    method = of_resamples("percentiles of * resamples", len(draws))
    return Interval(float(low), float(high), "images", interval.level, interval.note, method)


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
    bounds=(-1.0, float("inf")),
    chance="see `shuffled`",
    higher_is="more tied to the usual texture of a class",
    needs=("logits",),
)
