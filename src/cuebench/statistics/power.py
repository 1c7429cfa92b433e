"""How many images, shapes and textures tell two observers apart: from what the variance of their difference is made of.

Of n images of n_pairs pairs of a shape and a texture, of G_k sources of each kind k, the variance is, in the closed
form of `clustered`,

    V = a/n + c/n_pairs + Σ_k b_k/G_k,    a = n·V_images,    c = n_pairs·max(0, V_pairs − V_images),
    b_k = G_k·max(0, V_k − V_pairs).

More images of the same pairs shrink the first term only. More images of the same sources are of new pairs, as many of
each, as long as there are any; a new source comes with its images and pairs, as many as the others have. People who are
drawn anew add what `three_way` has beyond `two_way`. A difference over its standard error has a noncentral t
distribution, with the degrees of freedom of both observers' own variances; simulated studies find what is planned as
often as planned (``python -m benchmarks power``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cuebench.statistics.clustered import Variances, t_quantile
from cuebench.statistics.intervals import ways_of
from cuebench.types import IntervalKind

POWER = 0.8
"""Chance to find a true difference that planned sizes are for."""
WAYS = ways_of("two_way")
MOST = 10_000.0
"""Factors above this are called infinite."""


@dataclass(frozen=True)
class Components:
    """What the variance of a number is made of.

    Parameters
    ----------
    image : float
        What single images differ by: its variance times their number.
    sources : mapping of kind to float
        What sources differ by beyond their images: the variance times their number.
    numbers : mapping of kind to int
        Images (``images``) and sources that were measured.
    pair : float
        What pairs of a shape and a texture differ by beyond their images and sources: the variance times their number.
    pairs : int
        Number of these pairs; 0: there are not two kinds of source.
    freedom : float
        Degrees of freedom of the variances of the two observers, the mean; 0: those of the variance of the difference.
    """

    image: float
    sources: Mapping[IntervalKind, float]
    numbers: Mapping[IntervalKind, int]
    pair: float = 0.0
    pairs: int = 0
    freedom: float = 0.0

    @classmethod
    def of(cls, variance: Variances, images: int, freedom: float = 0.0) -> Components:
        """Take the variance of a number apart: over all kinds of source, or over the kind that varies most."""
        single = variance.by_kind.get("images", 0.0)
        base, pairs = variance.pairs or (single, 0)
        kinds: tuple[IntervalKind, ...] = ways_of(variance.main) if variance.main != "images" else ()
        beyond = {kind: variance.by_kind[kind] - base for kind in kinds}
        if variance.main == "three_way":
            beyond["subjects"] = variance.by_kind["three_way"] - variance.by_kind["two_way"]
        sources = {kind: variance.clusters[kind] * max(0.0, more) for kind, more in beyond.items()}
        numbers = {"images": images, **{kind: variance.clusters[kind] for kind in sources}}
        return cls(images * single, sources, numbers, pairs * max(0.0, base - single), pairs, freedom)

    def parts(self, numbers: Mapping[IntervalKind, float] | None = None) -> dict[IntervalKind, float]:
        """Return the part of the variance that images and each kind of source have, for other numbers of them.

        What pairs differ by counts with the images.
        """
        of = numbers or self.numbers
        images = self.image / of["images"] + (self.pair / self._pairs(of) if self.pairs else 0.0)
        return {"images": images, **{k: b / of[k] for k, b in self.sources.items()}}

    def grown(self, kinds: Iterable[IntervalKind], factor: float) -> dict[IntervalKind, float]:
        """Return the numbers with so many times the sources of some kinds; images grow with shapes and textures."""
        grow = {"images", *kinds} if set(kinds) != {"subjects"} else set(kinds)
        return {kind: n * (factor if kind in grow else 1) for kind, n in self.numbers.items()}

    def _pairs(self, numbers: Mapping[IntervalKind, float]) -> float:
        """Return how many pairs so many images are of: as many images of each as now, while there are pairs left."""
        possible = math.prod(numbers[kind] for kind in WAYS)
        return min(self.pairs * numbers["images"] / self.numbers["images"], possible)

    def chance(
        self, difference: float, numbers: Mapping[IntervalKind, float] | None = None, alpha: float = 0.05
    ) -> float:
        """Return the chance to find a true difference at level alpha."""
        from scipy.special import nctdtr

        error, df = math.sqrt(sum(self.parts(numbers).values())), self._df(numbers)
        if not error:
            return 1.0 if difference else alpha
        reach, standardised = t_quantile(df, 1 - alpha), abs(difference) / error
        return float(1 - nctdtr(df, standardised, reach) + nctdtr(df, standardised, -reach))

    def smallest(self, numbers: Mapping[IntervalKind, float] | None = None, alpha: float = 0.05) -> float:
        """Return the smallest true difference that is found in four of five studies."""
        from scipy.special import nctdtrinc

        error, df = math.sqrt(sum(self.parts(numbers).values())), self._df(numbers)
        return error * float(nctdtrinc(df, 1 - POWER, t_quantile(df, 1 - alpha)))

    def factor(self, difference: float, kinds: Iterable[IntervalKind], alpha: float = 0.05) -> float:
        """Return how many times as many sources of some kinds, with their images, find a difference in four of five.

        No kinds: images of the same sources. 1 where it is found as it is; infinite where nothing of this kind helps.
        """
        grow = tuple(kinds)
        if not difference or self.smallest(self.grown(grow, MOST), alpha) > abs(difference):
            return math.inf
        low, high = 1.0, MOST
        if self.smallest(None, alpha) <= abs(difference):
            return 1.0
        while high / low > 1.001:
            middle = math.sqrt(low * high)
            enough = self.smallest(self.grown(grow, middle), alpha) <= abs(difference)
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _df(self, numbers: Mapping[IntervalKind, float] | None) -> float:
        """Return the degrees of freedom; with other numbers they grow as those of the variance of the difference do."""
        if self.freedom and numbers:
            return max(1.0, self.freedom * self._satterthwaite(numbers) / self._satterthwaite(None))
        return self.freedom or self._satterthwaite(numbers)

    def _satterthwaite(self, numbers: Mapping[IntervalKind, float] | None) -> float:
        """Return Satterthwaite's degrees of freedom, as `clustered` has them."""
        of, parts = numbers or self.numbers, self.parts(numbers)
        base, total = parts["images"], sum(parts.values())
        doubt = base**2 / max((self._pairs(of) if self.pairs else of["images"]) - 1, 1)
        doubt += sum((parts[k] + base) ** 2 / max(of[k] - 1, 1) for k in self.sources if parts[k])
        least = min((of[k] for k in self.sources), default=of["images"]) - 1
        return max(1.0, least, total**2 / doubt if doubt else 1.0)
