"""Two observers on the same images: the difference, its intervals, its p-value, and what it would take to see it.

The difference of two numbers that are functions of sums over images (`clustered.Sums`) is linearised by ψ_A − ψ_B, in
which what makes an image easy for both cancels. Its intervals are the closed form of `clustered`; its p comes from
exchanging the two observers within whole sources. A triplet has two shapes and two textures, so that no exchange keeps
its trials apart: there p is that of Student's t, with the variance of the interval.

References
----------
MacKinnon, Nielsen & Webb 2021, Wild bootstrap and asymptotic inference with multiway clustering, J. Bus. Econ. Stat.
39(2) (signs by the kind of source with the fewest, two-way standard errors); Phipson & Smyth 2010 (p is never 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.statistics.clustered import Sums, Variances, t_quantile, variances
from cuebench.statistics.intervals import child_generator, ways_of
from cuebench.statistics.power import Components
from cuebench.types import Interval, IntervalKind

FLIPS = 9_999
"""Random assignments of signs behind a p-value."""
EXACT = 13
"""Up to this many sources all assignments of signs are counted."""
GROUPS = 500
"""Images without sources are put into this many groups at most, whose signs are exchanged together."""
WAYS = ways_of("two_way")
_CHUNK = 4_000_000  # float64 numbers made at once (32 MB)


class More(NamedTuple):
    """What it would take to tell two observers apart.

    ``images``: further images of the same sources; infinite where the sources alone vary too much. ``times``: how many
    times as many images, each kind of source included. ``alone``: how many times as many sources of one kind, with
    their images.
    """

    images: float
    times: float
    alone: Mapping[IntervalKind, float]


@dataclass(frozen=True)
class Difference:
    """The paired difference of two observers, first minus second, on the images that both saw.

    Parameters
    ----------
    first, second, value : float
        The number of each on these images, and the difference.
    n : int
        Images that both saw.
    intervals : tuple of Interval
        By images, by each kind of source, and ``two_way``.
    p : float
        Two-sided; see `sign_flip_p`. Of triplets: by Student's t, where the interval of the same level just holds 0.
    by : str
        Whose signs were exchanged: the kind of source with the fewest. Of triplets: the kind of the interval.
    variances : Variances
        Of the difference.
    note : str
        Why there is no interval or no p.
    """

    first: float
    second: float
    value: float
    n: int
    intervals: tuple[Interval, ...]
    p: float
    by: IntervalKind
    variances: Variances
    note: str = ""

    @property
    def interval(self) -> Interval | None:
        """The interval to quote: over both kinds of source where there are two, else the widest."""
        return next((i for i in self.intervals if i.kind == self.variances.main), None)

    @property
    def components(self) -> Components:
        """What the variance of the difference is made of."""
        return Components.of(self.variances, self.n)

    def needed(self, comparisons: int = 1, level: float = 0.95) -> More:
        """Return what it would take to find this difference in four of five studies, if it is the true one.

        Parameters
        ----------
        comparisons : int
            How many pairs are compared: each is held to level/comparisons.
        level : float
            Of all comparisons together.
        """
        if not self.variances.by_kind or not self.value:
            return More(math.inf, math.inf, {})
        of, alpha = self.components, (1 - level) / comparisons
        images = self.n * (of.factor(self.value, (), alpha) - 1)
        alone = {kind: of.factor(self.value, (kind,), alpha) for kind in of.sources}
        return More(images, of.factor(self.value, tuple(of.sources), alpha), alone)


def difference_intervals(value: float, variance: Variances, *, level: float = 0.95) -> tuple[Interval, ...]:
    """Return the intervals of a paired difference: the one place that decides how they are made.

    None where every image shows the same difference: what does not vary says nothing about other images.
    """
    if not variance.by_kind or variance.by_kind[variance.main] < 1e-20:
        return ()
    reach = {kind: t_quantile(variance.df[kind], level) * math.sqrt(v) for kind, v in variance.by_kind.items()}
    return tuple(Interval(value - r, value + r, kind, level) for kind, r in reach.items())


def paired(first: Sums, second: Sums, *, seed: int = 0, flips: int = FLIPS, level: float = 0.95) -> Difference:
    """Compare two observers on the images that both saw.

    Parameters
    ----------
    first, second : Sums
        Of the two observers.
    seed, flips : int
        Of the p-value.
    level : float
        Of the intervals.

    Returns
    -------
    Difference
        NaN with a note where fewer than two images were seen by both.
    """
    common = np.intersect1d(first.images, second.images)
    nothing = Variances({}, {}, {})
    if len(common) < 2:
        nan = math.nan
        return Difference(nan, nan, nan, len(common), (), nan, "images", nothing, f"{len(common)} images in common")
    a, b = first.only(common), second.only(common)
    difference = by_image(a, common) - by_image(b, common)
    mine, theirs = a.shared_influence(), b.shared_influence()
    shared = {k: by_image(a, common, psi) - by_image(b, common, theirs[k]) for k, psi in mine.items() if k in theirs}
    place = np.searchsorted(a.images[order := np.argsort(a.images, kind="stable")], common)
    sources = {kind: names[order][place] for kind, names in a.sources.items() if kind in b.sources}
    value = a.value - b.value
    if not math.isfinite(value):
        return Difference(a.value, b.value, value, len(common), (), math.nan, "images", nothing, "undefined")
    variance = variances(difference, sources, a.strata, shared)
    by: IntervalKind = (
        variance.main if shared else min(variance.clusters, key=lambda kind: variance.clusters[kind], default="images")
    )
    if not difference.any() and not value:
        return Difference(a.value, b.value, 0.0, len(common), (), 1.0, by, variance, "the same answers")
    if shared:
        p = student_p(value, variance)
    else:
        p = sign_flip_p(difference, value, sources, by, strata=a.strata, seed=seed, flips=flips)
    return Difference(
        a.value, b.value, value, len(common), difference_intervals(value, variance, level=level), p, by, variance
    )


def by_image(sums: Sums, images: Array, influence: Floats | None = None) -> Floats:
    """Return by how much each of some images, sorted, moves a number; ``influence``: of each row, if not its own."""
    place = np.searchsorted(images, sums.images)
    weights = sums.influence() if influence is None else influence
    return np.asarray(np.bincount(place, weights, len(images)), np.float64)


def student_p(value: float, variance: Variances) -> float:
    """Return the two-sided p of a difference by Student's t, with the variance of the interval to quote."""
    from scipy.special import stdtr

    main_variance = variance.by_kind.get(variance.main, 0.0)
    if not main_variance:
        return math.nan
    df = max(variance.df[variance.main], 1)
    return float(2 * stdtr(df, -abs(value) / math.sqrt(main_variance)))


def sign_flip_p(
    difference: Floats,
    value: float,
    sources: Mapping[IntervalKind, Array],
    by: IntervalKind,
    *,
    strata: int = 1,
    seed: int = 0,
    flips: int = FLIPS,
) -> float:
    """Return p of a paired difference by exchanging the two observers within whole sources.

    If the observers do not differ, either could have given the answers to all images of one source: the sign of the
    source's part in the difference could have been the other. The statistic is the difference over its own standard
    error (of both kinds of source where there are two), so p holds for observers that decide differently often, and for
    textures as for shapes.

    Parameters
    ----------
    difference : float array
        Influence of each image on the difference; adds up to 0.
    value : float
        The difference.
    sources : mapping of kind to array
        As in `variances`.
    by : str
        The sources whose signs are exchanged: ``images`` or a kind of ``sources``.
    strata, seed, flips : int
        As in `paired`. With 13 sources or fewer all assignments of signs are counted instead.
    """
    n = len(difference)
    if by == "images":
        # Many images are taken in random groups: as valid, and thousands of times cheaper.
        shuffled = child_generator(seed, "sign_flip/groups").permutation(n) % GROUPS
        code = shuffled if n > GROUPS else np.arange(n)
    else:
        code = np.unique(sources[by], return_inverse=True)[1].ravel()
    groups = int(code.max()) + 1
    signs = _signs(groups, seed, flips)
    weight = np.full(n, 1 / n)
    part = difference + value * weight  # adds up to the difference
    drawn = signs @ np.bincount(code, part, groups)
    everyone: dict[IntervalKind, Array] = {"images": np.arange(n), **sources}
    spread: dict[str, Floats] = {}
    for kind, names in everyone.items():
        of_kind = _flipped_variance(part, weight, names, code, signs, drawn, strata)
        if of_kind is not None:
            spread[kind] = of_kind
    observed = variances(difference, sources, strata)
    if observed.main == "two_way":
        pairs = np.unique(np.stack([np.unique(sources[k], return_inverse=True)[1].ravel() for k in WAYS]), axis=1,
                          return_inverse=True)[1].ravel()  # fmt: skip
        base = _flipped_variance(part, weight, pairs, code, signs, drawn, strata)
        assert base is not None
        flipped = base + sum(np.maximum(0, spread[kind] - base) for kind in WAYS)
    else:
        flipped = np.maximum.reduce(list(spread.values()))
    # drawn²/flipped ≥ value²/observed without a division: both variances can be 0.
    extreme = drawn**2 * observed.by_kind[observed.main] >= value**2 * (flipped * (1 - 1e-9) - 1e-12 * value**2)
    hits = int(extreme.sum())
    return hits / len(drawn) if groups <= EXACT else (hits + 1) / (len(drawn) + 1)


def _flipped_variance(
    part: Floats, weight: Floats, names: Array, code: Array, signs: Floats, drawn: Floats, strata: int
) -> Floats | None:
    """Return the variance of one kind in each assignment of signs: Σ_c (Σ_u s_u·part_u − drawn·weight_u)²."""
    _, cluster = np.unique(names, return_inverse=True)
    cluster = cluster.ravel()
    count = int(cluster.max()) + 1
    if count <= strata:
        return None
    weights = np.bincount(cluster, weight, count)
    scale = count / (count - strata)
    if len(np.unique(cluster * signs.shape[1] + code)) == count:
        # All images of a cluster have one sign, which does not change a square.
        cross = signs @ np.bincount(code, part * weights[cluster], signs.shape[1])
        return scale * (float((np.bincount(cluster, part, count) ** 2).sum()) - 2 * drawn * cross
                        + drawn**2 * float((weights**2).sum()))  # fmt: skip
    table = np.zeros((count, signs.shape[1]))
    np.add.at(table, (cluster, code), part)
    squares = np.empty(len(signs))
    size = max(1, _CHUNK // count)
    for start in range(0, len(signs), size):
        here = slice(start, start + size)
        squares[here] = ((signs[here] @ table.T - drawn[here, None] * weights) ** 2).sum(axis=1)
    return scale * squares


@lru_cache(maxsize=2)
def _signs(groups: int, seed: int, flips: int) -> Floats:
    """Return assignments of signs × groups: all of them where there are few groups, else random ones."""
    if groups <= EXACT:
        bits = (np.arange(1 << groups)[:, None] >> np.arange(groups)) & 1
    else:
        bits = child_generator(seed, "sign_flip").integers(0, 2, (flips, groups))
    return np.asarray(1 - 2 * bits, np.float64)
