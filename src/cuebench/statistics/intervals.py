"""Confidence intervals for stimuli that share sources, by seeded and vectorised bootstrap.

Each kind answers another question, by resampling what would be drawn anew:

===================  ====================================================================================
``images``           the same sources, other images of this kind; the naive interval
``shape_sources``    other shapes (objects), the same textures
``texture_sources``  other textures, the same shapes
``two_way``          other shapes *and* other textures: product weights of both draws, known to be conservative
``subjects``         other people, the same images
===================  ====================================================================================

For one way, a draw gives cluster c the multinomial weight w_c, and a statistic that is a function of sums of trials is
computed from Σ_c w_c·S_c, with S_c the sums of the cluster. For two ways a trial of shape source i and texture source j
has weight u_i·v_j (the pigeonhole bootstrap of Owen 2007), so that a sum is uᵀ·N·v with N the table of sums: two
matrix products instead of a loop. For images, only the numbers of the few distinct outcomes are drawn, which is the
same distribution. Intervals are percentiles of the draws.

References
----------
Owen 2007, The pigeonhole bootstrap, Ann. Appl. Stat. 1(2); Efron & Tibshirani 1993, An Introduction to the Bootstrap.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.statistics.ratios import Terms
from cuebench.types import Interval, IntervalKind

KINDS: tuple[IntervalKind, ...] = ("images", "shape_sources", "texture_sources", "two_way")
"""The four kinds that every cue-conflict score has."""

_FEW = 128  # up to this many distinct outcomes, drawing their numbers is faster than drawing every image
_IN_CACHE = 1 << 16  # draws made at once: they and their counts stay in the processor's cache
_CHUNK = (
    4_000_000  # float64 numbers in memory at once (32 MB): bounds the memory, and few big matrix products are fastest
)


KEPT = 256 * 2**20
"""Bytes of weights that are kept for the next observer; those that are larger than half of it are drawn again."""


@dataclass(frozen=True)
class Clusters:
    """What each trial shares with others: one value (name or number) for each trial."""

    images: Array
    shape_sources: Array
    texture_sources: Array
    subjects: Array | None = None

    def only(self, rows: Array) -> Clusters:
        """Return the clusters of some of the trials."""
        subjects = None if self.subjects is None else self.subjects[rows]
        return Clusters(self.images[rows], self.shape_sources[rows], self.texture_sources[rows], subjects)

    def of(self, kind: IntervalKind) -> Array:
        """Return the cluster of each trial for a one-way kind."""
        values = getattr(self, kind, None)
        if values is None:
            raise UserError(f"no {kind} to resample", "the responses have no such column")
        return np.asarray(values)


def child_generator(seed: int, stream: str) -> np.random.Generator:
    """Return the generator of one stream: it depends on the seed and the stream's name, never on the order of calls."""
    digest = hashlib.sha256(f"{seed}|{stream}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def ratio_intervals(
    terms: Sequence[Terms],
    clusters: Clusters,
    kind: IntervalKind,
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> list[Interval]:
    """Return one interval for each ratio of sums Σ numerator / Σ denominator, all from the same resamples.

    Parameters
    ----------
    terms : sequence of Terms
        What each trial adds to numerator and denominator; one ``Terms`` for each metric.
    clusters : Clusters
        Of the same trials.
    kind : str
        What is drawn anew; see the module's table.
    seed, resamples, level : int, int, float
        The same three give the same bytes.

    Returns
    -------
    list of Interval
        NaN with a reason where nothing was measured or there is only one cluster to draw from. Resamples in which the
        denominator is 0 are left out, and the note says how many.
    """

    def ratios(sums: Floats) -> list[Floats]:
        return [_divide(sums[:, 2 * i], sums[:, 2 * i + 1]) for i in range(len(terms))]

    columns = np.column_stack([c for t in terms for c in (t.numerator, t.denominator)])
    draws = _drawn(ratios, columns, clusters, kind, seed, resamples)
    return [percentile(d, kind, level) for d in draws] if isinstance(draws, list) else [draws] * len(terms)


def percentile(draws: Floats, kind: IntervalKind, level: float = 0.95) -> Interval:
    """Return the central ``level`` of the draws; undefined draws (NaN) are left out and counted in the note."""
    defined = draws[~np.isnan(draws)]
    if not len(defined):
        return undefined(kind, "undefined in every resample", level)
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    dropped = len(draws) - len(defined)
    note = f"undefined in {dropped:,} of {len(draws):,} resamples" if dropped else ""
    return Interval(float(low), float(high), kind, level, note)


class Limits(NamedTuple):
    """Ends of many intervals, and how many draws of each were defined."""

    low: Floats
    high: Floats
    defined: Array


def percentile_limits(draws: Array, level: float = 0.95) -> Limits:
    """Return the central ``level`` of the draws along the last axis, for many numbers at once; NaN are left out.

    The same as `percentile`, number by number; sorting them all is faster than ``numpy.quantile``.
    """
    rows = draws.reshape(-1, draws.shape[-1])
    # Many numbers have no draws at all; sorting those would take longest.
    some = np.flatnonzero(~np.isnan(rows[:, 0]) | ~np.isnan(rows).all(axis=1))
    ordered = np.sort(rows[some], axis=-1)  # NaN come last
    number = rows.shape[1] - np.isnan(ordered).sum(axis=-1)
    low, high, defined = np.full(len(rows), np.nan), np.full(len(rows), np.nan), np.zeros(len(rows), np.intp)
    defined[some] = number
    tail = (1 - level) / 2
    for ends, share in ((low, tail), (high, 1 - tail)):
        at = (number - 1) * share
        below = np.floor(at).astype(np.intp)
        above = np.minimum(below + 1, number - 1)
        first, second = (ordered[np.arange(len(some)), k].astype(np.float64) for k in (below, above))
        ends[some] = first + (at - below) * (second - first)
    shape = draws.shape[:-1]
    return Limits(low.reshape(shape), high.reshape(shape), defined.reshape(shape))


def undefined(kind: IntervalKind, reason: str, level: float = 0.95) -> Interval:
    """Return the NaN interval with its reason."""
    return Interval(float("nan"), float("nan"), kind, level, reason)


def too_few(clusters: Clusters, kind: IntervalKind) -> str:
    """Say why a kind cannot be resampled; empty where it can."""
    ways: Sequence[IntervalKind] = ("shape_sources", "texture_sources") if kind == "two_way" else (kind,)
    for way in ways:
        number = len(np.unique(clusters.of(way)))
        if number < 2:
            return f"{number} {way.replace('_', ' ').removesuffix('s' * (number == 1))}: nothing to resample"
    return ""


def resampled_sums(columns: Array, clusters: Clusters, kind: IntervalKind, *, seed: int, resamples: int) -> Floats:
    """Return the sums of each column in each resample.

    Parameters
    ----------
    columns : array trials × k
        What each trial adds.
    clusters, kind, seed, resamples
        As in ``ratio_intervals``.

    Returns
    -------
    float array resamples × k
    """
    # Metrics share columns (each accuracy has the same denominator): equal ones are summed once.
    values = np.asarray(columns, np.float64)
    first: dict[bytes, int] = {}
    back = [first.setdefault(c.tobytes(), len(first)) for c in values.T]
    distinct = values[:, [back.index(i) for i in range(len(first))]]
    if kind == "two_way":
        sums = _two_way(distinct, clusters, seed, resamples)
    else:
        totals = _cluster_totals(distinct, clusters.of(kind))
        few = _few_outcomes(totals, seed, resamples) if kind == "images" else None
        sums = _weighted(totals, kind, seed, resamples) if few is None else few
    return sums[:, back]


def _drawn(
    statistics: Callable[[Floats], list[Floats]],
    columns: Array,
    clusters: Clusters,
    kind: IntervalKind,
    seed: int,
    resamples: int,
) -> list[Floats] | Interval:
    """Return the draws of the statistics, or the one answer for all where there is nothing to draw from."""
    reason = too_few(clusters, kind)
    if reason:
        return undefined(kind, reason)
    return statistics(resampled_sums(columns, clusters, kind, seed=seed, resamples=resamples))


def _two_way(columns: Floats, clusters: Clusters, seed: int, resamples: int) -> Floats:
    shapes, i = np.unique(clusters.shape_sources, return_inverse=True)
    textures, j = np.unique(clusters.texture_sources, return_inverse=True)
    size = (len(shapes), len(textures))
    cell = i.ravel() * size[1] + j.ravel()
    # The tables of all columns side by side: one matrix product serves them all.
    tables = np.concatenate([np.bincount(cell, c, size[0] * size[1]).reshape(size) for c in columns.T], axis=1)
    rows = max(1, _CHUNK // max(tables.shape))
    shape_weights = weight_parts("shape_sources", size[0], seed, resamples, rows)
    texture_weights = weight_parts("texture_sources", size[1], seed, resamples, rows)
    parts = []
    for u, v in zip(shape_weights, texture_weights):
        by_texture = (u.astype(np.float64) @ tables).reshape(-1, columns.shape[1], size[1])
        parts.append(np.einsum("bkj,bj->bk", by_texture, v.astype(np.float64)))
    return np.concatenate(parts)


def _cluster_totals(columns: Floats, cluster: Array) -> Floats:
    names, code = np.unique(cluster, return_inverse=True)
    return np.column_stack([np.bincount(code.ravel(), c, len(names)) for c in columns.T])


def _few_outcomes(totals: Floats, seed: int, resamples: int) -> Floats | None:
    """Draw how often each distinct outcome occurs; None where there are too many for that to pay."""
    outcomes, numbers = np.unique(totals, axis=0, return_counts=True)
    if len(outcomes) > _FEW:
        return None
    size = len(totals)
    drawn = child_generator(seed, "images").multinomial(size, numbers / size, size=resamples)
    return np.asarray(drawn @ outcomes, np.float64)


def _weighted(totals: Floats, kind: IntervalKind, seed: int, resamples: int) -> Floats:
    return weighted_sums(kind, totals, seed, resamples, max(1, _CHUNK // len(totals)))


def weighted_sums(stream: str, totals: Floats, seed: int, resamples: int, rows: int) -> Floats:
    """Return the sums of each column in each resample of the rows of ``totals``, ``rows`` resamples at a time."""
    parts = weight_parts(stream, len(totals), seed, resamples, rows)
    return np.concatenate([part.astype(np.float64) @ totals for part in parts])


Weights = np.ndarray[Any, np.dtype[np.uint8]]
_kept: OrderedDict[tuple[str, int, int, int], Weights] = OrderedDict()
"""The weights that were used last, ``KEPT`` bytes at most."""


def weights(stream: str, clusters: int, seed: int, resamples: int) -> Weights:
    """Return multinomial weights, resamples × clusters: how often each cluster is drawn.

    They depend on nothing but the arguments, so every observer of a run is resampled in the same way. A weight is at
    most a few tens (it is close to Poisson with mean 1), so one byte holds it.
    """
    key = (stream, clusters, seed, resamples)
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    out = np.empty((resamples, clusters), np.uint8)
    _draw(child_generator(seed, stream), out)
    out.flags.writeable = False
    if out.nbytes <= KEPT // 2:
        _kept[key] = out
        while sum(kept.nbytes for kept in _kept.values()) > KEPT:
            _kept.popitem(last=False)
    return out


def weight_parts(
    stream: str, clusters: int, seed: int, resamples: int, rows: int, *, keep: bool = True
) -> Iterator[Weights]:
    """Yield the same weights, ``rows`` resamples at a time: those of 100,000 images would take a gigabyte.

    ``keep=False``: they are used once, and are not kept for the next observer. A part is overwritten by the next one.
    """
    rows = min(rows, resamples)
    if keep and resamples * clusters <= KEPT // 2:
        whole = weights(stream, clusters, seed, resamples)
        yield from (whole[start : start + rows] for start in range(0, resamples, rows))
        return
    rng, room = child_generator(seed, stream), np.empty((rows, clusters), np.uint8)
    for start in range(0, resamples, rows):
        part = room[: min(rows, resamples - start)]
        _draw(rng, part)
        yield part


def _draw(rng: np.random.Generator, out: Weights) -> None:
    """Draw the next rows of weights; the stream of random numbers does not depend on how many rows there are."""
    rows, clusters = out.shape
    step = max(1, _IN_CACHE // clusters)
    for start in range(0, rows, step):
        part = out[start : start + step]
        draws = rng.integers(clusters, size=part.shape, dtype=np.uint32)
        draws += np.arange(0, part.size, clusters, dtype=np.uint32)[:, None]
        part[:] = np.bincount(draws.ravel(), minlength=part.size).reshape(part.shape)


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    out = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out
