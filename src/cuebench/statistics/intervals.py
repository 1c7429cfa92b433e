"""What intervals are about, and the seeded bootstrap for the few that have no closed form.

Each kind answers another question, by what would be drawn anew:

===================  ====================================================================================
``images``           the same sources, other images of this kind; the naive interval
``shape_sources``    other shapes (objects), the same textures
``texture_sources``  other textures, the same shapes
``two_way``          other shapes *and* other textures
``subjects``         other people, the same images
``three_way``        other shapes, other textures and other people
===================  ====================================================================================

Ratios have closed forms (`statistics.clustered`), functions of them the jackknife (`statistics.estimates`). A bootstrap
that drew shapes and textures together (product weights, Owen 2007) held the truth in 98 to 100 % of simulated studies
and is not used any more. What is left here are weights for statistics that need whole resamples: a draw gives cluster
c the multinomial weight w_c.

References
----------
Owen 2007, The pigeonhole bootstrap, Ann. Appl. Stat. 1(2); Efron & Tibshirani 1993, An Introduction to the Bootstrap.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.types import Interval, IntervalKind

KINDS: tuple[IntervalKind, ...] = ("images", "shape_sources", "texture_sources", "two_way")
"""The four kinds that every cue-conflict score has."""

_IN_CACHE = 1 << 16  # draws made at once: they and their counts stay in the processor's cache

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


def percentile(draws: Floats, kind: IntervalKind, level: float = 0.95) -> Interval:
    """Return the central ``level`` of the draws; undefined draws (NaN) are left out and counted in the note."""
    defined = draws[~np.isnan(draws)]
    if not len(defined):
        return undefined(kind, "undefined in every resample", level)
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    if low == high:
        return undefined(kind, "the same in every resample", level)
    dropped = len(draws) - len(defined)
    note = f"undefined in {dropped:,} of {len(draws):,} resamples" if dropped else ""
    return Interval(float(low), float(high), kind, level, note)


def undefined(kind: IntervalKind, reason: str, level: float = 0.95) -> Interval:
    """Return the NaN interval with its reason."""
    return Interval(float("nan"), float("nan"), kind, level, reason)


def ways_of(kind: IntervalKind) -> tuple[IntervalKind, ...]:
    """Return what is drawn anew together in a kind of interval."""
    together: dict[IntervalKind, tuple[IntervalKind, ...]] = {
        "two_way": ("shape_sources", "texture_sources"),
        "three_way": ("shape_sources", "texture_sources", "subjects"),
    }
    return together.get(kind, (kind,))


def too_few(clusters: Clusters, kind: IntervalKind) -> str:
    """Say why a kind cannot be resampled; empty where it can."""
    for way in ways_of(kind):
        number = len(np.unique(clusters.of(way)))
        if number < 2:
            return f"{number} {way.replace('_', ' ').removesuffix('s' * (number == 1))}: nothing to resample"
    return ""


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


def _draw(rng: np.random.Generator, out: Weights) -> None:
    """Draw the next rows of weights; the stream of random numbers does not depend on how many rows there are."""
    rows, clusters = out.shape
    step = max(1, _IN_CACHE // clusters)
    for start in range(0, rows, step):
        part = out[start : start + step]
        draws = rng.integers(clusters, size=part.shape, dtype=np.uint32)
        draws += np.arange(0, part.size, clusters, dtype=np.uint32)[:, None]
        part[:] = np.bincount(draws.ravel(), minlength=part.size).reshape(part.shape)
