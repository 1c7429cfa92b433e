"""Closed-form intervals for numbers that are functions of sums over images, where images share sources.

A ratio, a quotient of accuracies or a mean IoU is a function f of sums S over images. Linearised, image u moves it by
ψ_u = ∇f(S)·x_u, with x_u what the image adds to the sums. For sources that are drawn anew the variance of f is that of
the sums of ψ over each source,

    V_kind = G/(G − 1) · Σ_sources (Σ_u ψ_u)²,

with G sources, and Student's t has G − 1 degrees of freedom. For shapes *and* textures

    V = V_pairs + max(0, V_shapes − V_pairs) + max(0, V_textures − V_pairs),

with V_pairs over the pairs of a shape and a texture that occur: what single images differ by is in all three and counts
once. Its degrees of freedom are Satterthwaite's, V² / Σ V_k²/(G_k − 1) over the kinds that add to it, and not below
those of the rarer kind of source. For people as well, V is the sum over the three kinds minus that over their pairs
plus that over single answers. Ratios have their intervals on the logit scale. How often each holds the truth was
simulated: ``cuebench explain two_way``, docs/intervals.md.

References
----------
Cameron, Gelbach & Miller 2011, Robust inference with multiway clustering, J. Bus. Econ. Stat. 29(2); Satterthwaite
1946, Biometrics Bull. 2(6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.interval_methods import EXACT, JEFFREYS, LINEARISED
from cuebench.statistics.intervals import Clusters, too_few, undefined, ways_of
from cuebench.statistics.ratios import Ratio, Terms, quotient, total
from cuebench.types import Interval, IntervalKind

STEP = 1e-5
"""Relative step of the numerical gradient."""
NOTHING = 1e-20
"""A variance below this is that of numbers that do not vary, but for rounding."""
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
    shared : mapping of kind to float array rows × k
        For trials of several images, such as triplets: what all trials add in which a row has a part that counts for
        this kind; see `Clustering.variances`.
    is_ratio : bool
        The statistic is the quotient of the two sums.
    bounds : pair of float
        Smallest and largest possible number.
    """

    images: Array
    values: Floats
    statistic: Callable[[Floats], Any]
    sources: Mapping[IntervalKind, Array] = field(default_factory=dict)
    strata: int = 1
    shared: Mapping[IntervalKind, Floats] = field(default_factory=dict)
    is_ratio: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @classmethod
    def of_ratio(
        cls,
        terms: Terms,
        images: Array,
        sources: Mapping[IntervalKind, Array] | None = None,
        shared: Mapping[IntervalKind, Terms] | None = None,
    ) -> Sums:
        """Return the sums of a ratio."""

        def columns(of: Terms) -> Floats:
            return np.column_stack([np.asarray(t, np.float64) for t in of])

        others = {kind: columns(of) for kind, of in (shared or {}).items()}

        def statistic(sums: Floats) -> Any:
            return quotient(sums[:, 0], sums[:, 1])

        return cls(images, columns(terms), statistic, sources or {}, shared=others, is_ratio=True, bounds=(0.0, 1.0))

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
        shared = {kind: values[keep] for kind, values in self.shared.items()}
        return replace(self, images=self.images[keep], values=self.values[keep], sources=sources, shared=shared)

    def sources_of(self, images: Array) -> dict[IntervalKind, Array]:
        """Return the sources of some images; people are none."""
        order = np.argsort(self.images, kind="stable")
        place = order[np.searchsorted(self.images[order], images)]
        return {kind: names[place] for kind, names in self.sources.items() if kind != "subjects"}

    @property
    def decisions(self) -> Floats | None:
        """How many decisions each row has, where the number is a share of decisions; None for any other number."""
        if not self.is_ratio:
            return None
        hits, all_of_them = self.values.T
        counts = (self.values == np.rint(self.values)).all() and (hits >= 0).all() and (hits <= all_of_them).all()
        return np.asarray(all_of_them) if counts else None

    def influence(self) -> Floats:
        """Return by how much each row moves the number; together they add up to 0."""
        psi: Floats = self.values @ self._gradient
        return psi - psi.mean() if len(psi) else psi

    def shared_influence(self) -> dict[IntervalKind, Floats]:
        """Return kind → by how much all trials move the number in which a row has a part that counts for the kind."""
        return {kind: values @ self._gradient for kind, values in self.shared.items()}

    @cached_property
    def _gradient(self) -> Floats:
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
            moved_values = np.asarray(self.statistic(moved), np.float64)
            gradient[part] = (moved_values[: len(part)] - moved_values[len(part) :]) / (2 * step)
        return gradient


# ------------------------------------------------------------------------------------------------------ variances


class Variances(NamedTuple):
    """Variance by kind of interval, number of clusters of each, and degrees of freedom of each.

    ``pairs``: the variance over pairs of a shape and a texture, and how many pairs there are; None without both kinds.
    """

    by_kind: dict[IntervalKind, float]
    clusters: dict[IntervalKind, int]
    df: dict[IntervalKind, float]
    pairs: tuple[float, int] | None = None

    @property
    def main(self) -> IntervalKind:
        """The kind to quote: over all kinds of source together where there are several, else the widest."""
        for together in ("three_way", "two_way"):
            if together in self.by_kind:
                return together
        return max(self.by_kind, key=lambda kind: self.by_kind[kind], default="images")


def variance_of(sums: Array, strata: int = 1) -> float:
    """Return the variance of a number from the sums of its influence over each cluster; NaN where there is one only."""
    g = len(sums)
    return float(g / (g - strata) * (sums @ sums)) if g > strata else math.nan


class _Groups(NamedTuple):
    """The cluster of each row as a number, and how many there are."""

    code: Array
    number: int

    @classmethod
    def of(cls, names: Array) -> _Groups:
        known, code = np.unique(names, return_inverse=True)
        return cls(code.ravel(), len(known))

    def crossed(self, other: _Groups) -> _Groups:
        return _Groups.of(self.code * other.number + other.code)

    def variance(self, psi: Floats, strata: int = 1, *, twice: bool = False) -> float:
        """Return the variance; ``twice``: every row is in two clusters of a kind, one of which it is given with."""
        sums, g = np.bincount(self.code, psi, self.number), self.number
        if twice and g > 2:
            return float(g * (g - 1) / (g - 2) ** 2 * (sums @ sums))
        return variance_of(sums, strata)


class Clustering:
    """What rows share, numbered once for the variances of many numbers.

    Parameters
    ----------
    rows : int
        Number of rows.
    sources : mapping of kind to array
        The source of each row. Shape and texture sources together give ``two_way`` too, with people (``subjects``)
        ``three_way``. A kind with no more sources than strata is left out.
    strata : int
        As in `Sums`.
    images : array, optional
        The image of each row; default: every row is one.
    """

    def __init__(
        self, rows: int, sources: Mapping[IntervalKind, Array], strata: int = 1, images: Array | None = None
    ) -> None:
        every: dict[IntervalKind, Array] = {"images": np.arange(rows) if images is None else images, **sources}
        all_groups = {kind: _Groups.of(names) for kind, names in every.items()}
        self.strata = strata
        self.groups = {kind: groups for kind, groups in all_groups.items() if groups.number > strata}
        self._crossed: dict[tuple[IntervalKind, ...], _Groups] = {}

    def variances(self, psi: Floats, shared: Mapping[IntervalKind, Floats] | None = None) -> Variances:
        """Return the variance of a number from the influence of each row.

        Parameters
        ----------
        psi : float array
            Influence of each row.
        shared : mapping of kind to float array, optional
            For trials of several images, such as triplets: the influence of all trials in which a row has a part that
            counts for this kind. ``two_way`` is for pairs of sources.
        """
        influence = dict.fromkeys((*self.groups, "two_way"), psi) | dict(shared or {})
        by_kind = {
            kind: groups.variance(influence[kind], self.strata, twice=kind in (shared or ()) and kind != "images")
            for kind, groups in self.groups.items()
        }
        clusters = {kind: groups.number for kind, groups in self.groups.items()}
        df = {kind: float(number - self.strata) for kind, number in clusters.items()}
        two, three = _WAYS[:2], _WAYS
        pairs = None
        for together, ways in (("two_way", two), ("three_way", three)):
            if set(ways) <= set(by_kind):
                by_kind[together], df[together] = self._together(influence, ways, by_kind, df)  # type: ignore[index]
                crossed = self._cross(two)
                pairs = crossed.variance(influence["two_way"], self.strata), crossed.number
        return Variances(by_kind, clusters, df, pairs)

    def _together(
        self,
        influence: Mapping[IntervalKind, Floats],
        ways: tuple[IntervalKind, ...],
        one_way: Mapping[IntervalKind, float],
        df: Mapping[IntervalKind, float],
    ) -> tuple[float, float]:
        """Return variance and degrees of freedom for sources of several kinds that are all drawn anew."""
        pairs = self._cross(ways[:2])
        base = pairs.variance(influence["two_way"], self.strata)
        value = base + sum(max(0.0, one_way[way] - base) for way in ways[:2])
        least = dict.fromkeys(ways[:2], base)
        if len(ways) == 3:
            single = self._cross(ways).variance(influence["two_way"], self.strata)
            crossed = sum(self._cross((way, ways[2])).variance(influence[way], self.strata) for way in ways[:2])
            both = sum(one_way[way] for way in ways) - base - crossed + single
            value = max(value, one_way[ways[2]], both)
            least[ways[2]] = single
        doubt = base**2 / (pairs.number - self.strata)
        doubt += sum(one_way[way] ** 2 / df[way] for way in ways if one_way[way] > least[way])
        return value, max(min(df[way] for way in ways), value**2 / doubt if doubt else 0.0)

    def _cross(self, ways: tuple[IntervalKind, ...]) -> _Groups:
        if ways not in self._crossed:
            crossed = self.groups[ways[0]]
            for way in ways[1:]:
                crossed = crossed.crossed(self.groups[way])
            self._crossed[ways] = crossed
        return self._crossed[ways]


_WAYS: tuple[IntervalKind, ...] = ("shape_sources", "texture_sources", "subjects")


def variances(
    psi: Floats,
    sources: Mapping[IntervalKind, Array],
    strata: int = 1,
    shared: Mapping[IntervalKind, Floats] | None = None,
) -> Variances:
    """Return the variance of a number from the influence of each image, for images and for each kind of source.

    Parameters
    ----------
    psi : float array
        Influence of each image.
    sources, strata
        As in `Clustering`.
    shared
        As in `Clustering.variances`.
    """
    return Clustering(len(psi), sources, strata).variances(psi, shared)


# ------------------------------------------------------------------------------------------------------ intervals


def ratio_intervals(
    terms: Sequence[Terms],
    clusters: Clusters,
    kinds: Sequence[IntervalKind],
    *,
    shared: Sequence[Mapping[IntervalKind, Terms]] = (),
    level: float = 0.95,
) -> list[tuple[Interval, ...]]:
    """Return the intervals of ratios of sums Σ numerator / Σ denominator, one for each kind.

    Parameters
    ----------
    terms : sequence of Terms
        What each trial adds to numerator and denominator; one ``Terms`` for each ratio.
    clusters : Clusters
        Of the same trials.
    kinds : sequence of str
        What would be drawn anew; `statistics.intervals` says what each means.
    shared : sequence of mappings of kind to Terms, optional
        One for each ratio whose trials show several images: what all trials add in which an image has a part that
        counts for the kind; see `Clustering.variances`.
    level : float
        Of the intervals.

    Returns
    -------
    list of tuples of Interval
        Symmetric on the logit scale, so inside [0, 1]. Where the ratio is 0 or 1 the variance says nothing: the open
        end is then that of Clopper and Pearson for as many trials as there are clusters, of the rarest kind, with a
        trial in the denominator. NaN with a reason where nothing was measured or there is one cluster only.
    """
    reasons = {kind: too_few(clusters, kind) for kind in kinds}
    wanted = dict.fromkeys(way for kind in kinds if not reasons[kind] for way in ways_of(kind))
    sources: dict[IntervalKind, Array] = {way: clusters.of(way) for way in wanted if way != "images"}
    clustering = Clustering(len(clusters.images), sources, images=clusters.images)
    by_ratio = []
    for i, term in enumerate(terms):
        bottom = np.asarray(term.denominator, np.float64)
        ratio = total(term)
        if not ratio.denominator:
            by_ratio.append(tuple(undefined(k, reasons[k] or "no trial in the denominator", level) for k in kinds))
            continue
        others = {kind: influence_of(more, ratio) for kind, more in shared[i].items()} if shared else None
        spread = clustering.variances(influence_of(term, ratio), others)
        intervals = []
        for kind in kinds:
            if reasons[kind]:
                intervals.append(undefined(kind, reasons[kind], level))
            elif ratio.value in (0.0, 1.0):
                counts = {way: clustering.groups[way] for way in ways_of(kind)}
                used = {way: int((np.bincount(g.code, bottom, g.number) > 0).sum()) for way, g in counts.items()}
                way = min(used, key=lambda way: used[way])
                intervals.append(all_alike(ratio.value, used[way], way, kind, level))
            else:
                variance, df = spread.by_kind[kind], spread.df[kind]
                interval = share_interval(ratio.value, variance, df, ratio.denominator, kind, level)
                intervals.append(replace(interval, method=interval.method or LINEARISED))
        by_ratio.append(tuple(intervals))
    return by_ratio


def influence_of(terms: Terms, ratio: Ratio) -> Floats:
    """Return by how much each row moves a ratio."""
    top, bottom = (np.asarray(t, np.float64) for t in terms)
    return np.asarray((top - ratio.value * bottom) / ratio.denominator)


def share_interval(
    value: float, variance: float, df: float, trials: float, kind: IntervalKind, level: float = 0.95
) -> Interval:
    """Return the interval of a share of some trials, symmetric on the logit scale.

    Where nothing varies, say because every person decided in two of three trials, the variance says nothing of others:
    the interval is then that of a share of so many independent trials, `beta_ends`.
    """
    if 0 < value < 1 and variance < NOTHING:
        low, high = beta_ends(value, variance, df, trials, trials, 1 - level)
        note = f"{_plural(kind)} do not vary: as of {trials:,.0f} independent trials"
        return Interval(low, high, kind, level, note, JEFFREYS)
    return bounded_interval(value, variance, df, kind, (0.0, 1.0), level)


def _plural(kind: IntervalKind) -> str:
    return {"two_way": "shapes and textures", "three_way": "shapes, textures and people", "subjects": "people"}.get(
        kind, kind.replace("_", " ")
    )


def beta_ends(
    value: float, variance: float, df: float, trials: float, sources: float, alpha: float
) -> tuple[float, float]:
    """Return the interval of a share: Jeffreys' interval of as many independent trials as its variance is worth.

    Of 0 < p < 1 these are p(1 − p)/max(V, p(1 − p)/trials) · (z/t)², with the quantiles z of the normal distribution
    and t of Student's: never more than there are. Of 0 and 1, where the variance is 0 whatever the number of trials,
    they are the trials or the sources with a trial, whichever are fewer, and the interval ends at 0 or 1.

    Parameters
    ----------
    value, variance, df : float
        The share, its variance, and the degrees of freedom of the variance.
    trials, sources : float
        How many trials it is a share of, and the number of sources of the rarer kind that have one.
    alpha : float
        1 − level.
    """
    from scipy.special import betainccinv, betaincinv, ndtri, stdtrit

    if value in (0.0, 1.0):
        worth = min(trials, sources)
    else:
        binomial = value * (1 - value)
        ratio = float(ndtri(alpha / 2) / stdtrit(max(df, 1), alpha / 2))
        worth = binomial / max(variance, binomial / trials) * ratio**2
    a, b = worth * value + 0.5, worth * (1 - value) + 0.5
    low = 0.0 if value == 0 else min(value, float(betaincinv(a, b, alpha / 2)))
    high = 1.0 if value == 1 else max(value, float(betainccinv(a, b, alpha / 2)))
    return low, high


def bounded_interval(
    value: float, variance: float, df: float, kind: IntervalKind, bounds: tuple[float, float], level: float = 0.95
) -> Interval:
    """Return Student's interval: on the logit scale between two bounds, on that of the logarithm above one.

    Symmetric as it is where there is no bound, or the number lies on one.
    """
    low, high = bounds
    reach = t_quantile(df, level) * math.sqrt(variance)
    if not low < value < high or math.isinf(low):
        return Interval(value - reach, value + reach, kind, level)
    if math.isinf(high):
        times = math.exp(min(reach / (value - low), 600.0))
        return Interval(low + (value - low) / times, low + (value - low) * times, kind, level)
    from scipy.special import expit, logit

    span = high - low
    share = (value - low) / span
    centre, reach = float(logit(share)), reach / span / (share * (1 - share))
    return Interval(low + span * float(expit(centre - reach)), low + span * float(expit(centre + reach)), kind, level)


def all_alike(value: float, number: int, way: IntervalKind, kind: IntervalKind, level: float) -> Interval:
    """Return the exact interval of a ratio of 0 or 1 over independent clusters."""
    end = ((1 - level) / 2) ** (1 / number)
    low, high = (0.0, 1 - end) if value == 0 else (end, 1.0)
    note = f"every decision alike: exact for {number:,} {way.replace('_', ' ')}"
    return Interval(low, high, kind, level, note, EXACT)


def t_quantile(df: float, level: float) -> float:
    """Return how many standard errors an interval reaches to either side."""
    from scipy.special import stdtrit

    return float(stdtrit(max(df, 1), (1 + level) / 2))
