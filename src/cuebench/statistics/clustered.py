"""Closed-form intervals for numbers that are functions of sums over images, where images share sources.

A ratio, a quotient of accuracies or a mean IoU is a function f of sums S over images. Linearised, image u moves it by
ψ_u = ∇f(S)·x_u, with x_u what the image adds to the sums. For sources that are drawn anew the variance of f is that of
the sums of ψ over each source,

    V_kind = G/(G − 1) · Σ_sources (Σ_u ψ_u)²,

and for shapes *and* textures V = V_shapes + V_textures − V_images, never below the larger of the first two: the noise
of single images is in both and would count twice. Intervals use Student's t with one degree of freedom less than
there are sources of the rarer kind. Simulated, they hold the truth as often as they say (tests/statistics).

References
----------
Cameron, Gelbach & Miller 2011, Robust inference with multiway clustering, J. Bus. Econ. Stat. 29(2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.statistics.intervals import Clusters, too_few, undefined
from cuebench.statistics.ratios import Terms, total
from cuebench.statistics.resampled import quotient
from cuebench.types import Interval, IntervalKind

STEP = 1e-5
"""Relative step of the numerical gradient."""
_CHUNK = 4_000_000  # float64 numbers made at once (32 MB)


@dataclass(frozen=True)
class Sums:
    """A number as a function of sums over answers.

    Parameters
    ----------
    images : array of str
        The image of each row: what two observers are paired by. Several rows may have the same one.
    values : float array rows × k
        What each row adds to the k sums.
    statistic : callable
        Turns sums, m × k, into m numbers. The sums of twice the same rows give the same number.
    sources : mapping of kind to array
        What rows share besides the image: ``shape_sources``, ``texture_sources``, ``classes``.
    strata : int
        Number of parts of the set that are averaged each for itself (shape cues and texture cues: 2).
    """

    images: Array
    values: Floats
    statistic: Callable[[Floats], Any]
    sources: Mapping[IntervalKind, Array] = field(default_factory=dict)
    strata: int = 1

    @classmethod
    def of_ratio(cls, terms: Terms, images: Array, sources: Mapping[IntervalKind, Array] | None = None) -> Sums:
        """Return the sums of a ratio."""
        values = np.column_stack([np.asarray(t, np.float64) for t in terms])
        return cls(images, values, lambda sums: quotient(sums[:, 0], sums[:, 1]), sources or {})

    @property
    def value(self) -> float:
        """The number itself."""
        return float(np.asarray(self.statistic(self.values.sum(axis=0)[None]))[0])

    def only(self, images: Array) -> Sums:
        """Return the sums over some of the images."""
        keep = np.isin(self.images, images)
        if keep.all():
            return self
        sources = {kind: values[keep] for kind, values in self.sources.items()}
        return Sums(self.images[keep], self.values[keep], self.statistic, sources, self.strata)

    def influence(self) -> Floats:
        """Return by how much each row moves the number; together they add up to 0."""
        sums = self.values.sum(axis=0)
        used = np.flatnonzero((self.values != 0).any(axis=0))
        gradient = np.zeros(len(sums))
        size = max(1, _CHUNK // max(1, len(sums)))
        for start in range(0, len(used), size):
            part = used[start : start + size]
            step = np.where(sums[part] != 0, STEP * np.abs(sums[part]), STEP)
            moved = np.repeat(sums[None], 2 * len(part), axis=0)
            moved[np.arange(len(part)), part] += step
            moved[len(part) + np.arange(len(part)), part] -= step
            found = np.asarray(self.statistic(moved), np.float64)
            gradient[part] = (found[: len(part)] - found[len(part) :]) / (2 * step)
        psi: Floats = self.values @ gradient
        return psi - psi.mean() if len(psi) else psi


# ------------------------------------------------------------------------------------------------------ variances


class Variances(NamedTuple):
    """Variance by kind of interval, number of clusters of each, and the degrees of freedom."""

    by_kind: dict[IntervalKind, float]
    clusters: dict[IntervalKind, int]
    df: int

    @property
    def main(self) -> IntervalKind:
        """The kind to quote: over both kinds of source where there are two, else the widest."""
        if "two_way" in self.by_kind:
            return "two_way"
        return max(self.by_kind, key=lambda kind: self.by_kind[kind], default="images")


def variances(psi: Floats, sources: Mapping[IntervalKind, Array], strata: int = 1) -> Variances:
    """Return the variance of a number from the influence of each image, for images and for each kind of source.

    Parameters
    ----------
    psi : float array
        Influence of each image.
    sources : mapping of kind to array
        The source of each image. Shape and texture sources together give ``two_way`` too. A kind with no more sources
        than strata is left out.
    strata : int
        As in `Sums`.
    """
    every = {"images": np.arange(len(psi)), **sources}
    by_kind: dict[IntervalKind, float] = {}
    clusters: dict[IntervalKind, int] = {}
    for kind, names in every.items():
        sums = _cluster_sums(psi, names)
        if len(sums) > strata:
            by_kind[kind] = float(len(sums) / (len(sums) - strata) * (sums**2).sum())
            clusters[kind] = len(sums)
    if {"shape_sources", "texture_sources"} <= set(by_kind):
        ways = by_kind["shape_sources"], by_kind["texture_sources"]
        by_kind["two_way"] = max(sum(ways) - by_kind["images"], *ways)
    return Variances(by_kind, clusters, min(clusters.values(), default=strata) - strata)


def _cluster_sums(psi: Floats, names: Array) -> Floats:
    _, code = np.unique(names, return_inverse=True)
    return np.asarray(np.bincount(code.ravel(), psi), np.float64)


def two_way_clustered(terms: Terms, clusters: Clusters, *, level: float = 0.95) -> Interval:
    """Return the interval of a ratio between 0 and 1 that holds for other shapes and other textures, in closed form.

    Parameters
    ----------
    terms : Terms
        What each trial adds to numerator and denominator.
    clusters : Clusters
        Of the same trials.
    level : float
        Of the interval.

    Returns
    -------
    Interval
        Symmetric on the logit scale, so inside [0, 1]. Where the ratio is 0 or 1 the variance says nothing: the
        open end is then that of Clopper and Pearson for as many trials as there are sources of the rarer kind.
    """
    from scipy.special import expit, logit

    reason = too_few(clusters, "two_way")
    ratio = total(terms)
    if reason or not ratio.denominator:
        return undefined("two_way", reason or "no trial in the denominator", level)
    sources: dict[IntervalKind, Array] = {k: clusters.of(k) for k in ("shape_sources", "texture_sources")}
    found = variances(Sums.of_ratio(terms, clusters.images).influence(), sources)
    value = ratio.value
    if value in (0.0, 1.0):
        end = ((1 - level) / 2) ** (1 / (found.df + 1))
        low, high = (0.0, 1 - end) if value == 0 else (end, 1.0)
        return Interval(low, high, "two_way", level, f"every decision alike: exact for {found.df + 1} sources")
    reach = t_quantile(found.df, level) * math.sqrt(found.by_kind["two_way"]) / (value * (1 - value))
    centre = float(logit(value))
    return Interval(float(expit(centre - reach)), float(expit(centre + reach)), "two_way", level)


def t_quantile(df: float, level: float) -> float:
    """Return how many standard errors an interval reaches to either side."""
    from scipy.special import stdtrit

    return float(stdtrit(max(df, 1), (1 + level) / 2))
