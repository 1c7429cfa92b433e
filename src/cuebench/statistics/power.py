"""How many images, shapes and textures tell two observers apart: from what the variance of their difference is made of.

Of n images of G_k sources of each kind k the variance is, in the closed form of `clustered`,

    V = a/n + Σ_k b_k/G_k,    a = n·V_pairs,    b_k = G_k·max(0, V_k − V_pairs):

more images of the same sources shrink the first term only. A new source comes with its images, as many as the others
have. Planned variances have planned degrees of freedom; simulated studies find what is planned as often as planned
(``python -m benchmarks power``).
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
    """

    image: float
    sources: Mapping[IntervalKind, float]
    numbers: Mapping[IntervalKind, int]

    @classmethod
    def of(cls, variance: Variances, images: int) -> Components:
        """Take the variance of a number apart: over both kinds of source, or over the kind that varies most."""
        base = variance.by_kind.get("images", 0.0)
        kinds: tuple[IntervalKind, ...] = ways_of(variance.main) if variance.main != "images" else ()
        sources = {kind: variance.clusters[kind] * max(0.0, variance.by_kind[kind] - base) for kind in kinds}
        return cls(images * base, sources, {"images": images, **{kind: variance.clusters[kind] for kind in sources}})

    def parts(self, numbers: Mapping[IntervalKind, float] | None = None) -> dict[IntervalKind, float]:
        """Return the part of the variance that images and each kind of source have, for other numbers of them."""
        of = numbers or self.numbers
        return {"images": self.image / of["images"], **{k: b / of[k] for k, b in self.sources.items()}}

    def grown(self, kinds: Iterable[IntervalKind], factor: float) -> dict[IntervalKind, float]:
        """Return the numbers with so many times the sources of some kinds; images grow with either."""
        grow = {"images", *kinds}
        return {kind: n * (factor if kind in grow else 1) for kind, n in self.numbers.items()}

    def chance(
        self, difference: float, numbers: Mapping[IntervalKind, float] | None = None, alpha: float = 0.05
    ) -> float:
        """Return the chance to find a true difference at level alpha."""
        from scipy.special import ndtr

        error = math.sqrt(sum(self.parts(numbers).values()))
        if not error:
            return 1.0 if difference else alpha
        reach, standardised = t_quantile(self._df(numbers), 1 - alpha), abs(difference) / error
        return float(ndtr(standardised - reach) + ndtr(-standardised - reach))

    def smallest(self, numbers: Mapping[IntervalKind, float] | None = None, alpha: float = 0.05) -> float:
        """Return the smallest true difference that is found in four of five studies."""
        from scipy.special import ndtri

        error = math.sqrt(sum(self.parts(numbers).values()))
        return error * (t_quantile(self._df(numbers), 1 - alpha) + float(ndtri(POWER)))

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
        """Return Satterthwaite's degrees of freedom, as `clustered` has them."""
        of, parts = numbers or self.numbers, self.parts(numbers)
        base, total = parts["images"], sum(parts.values())
        doubt = base**2 / max(of["images"] - 1, 1)
        doubt += sum((parts[k] + base) ** 2 / max(of[k] - 1, 1) for k in self.sources if parts[k])
        least = min((of[k] for k in self.sources), default=of["images"]) - 1
        return max(1.0, least, total**2 / doubt if doubt else 1.0)
