"""Confidence on textures: the probability of the top-1 class where only a texture is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuebench.arrays import Array, Counts, Floats, Positions
from cuebench.errors import UserError
from cuebench.labels.checks import refuse_nan
from cuebench.metrics.base import Metric

BINS = 50
SURE = 0.96
"""The paper counts pictures that are answered with more than this confidence."""


def top1(logits: Array) -> tuple[Positions, Floats]:
    """Return the class with the largest logit in each row, and its softmax, without computing the whole softmax."""
    z = np.asarray(logits, np.float64)
    refuse_nan(z)
    best = z.argmax(axis=1)
    shifted = z - z[np.arange(len(z)), best][:, None]
    return best, 1 / np.exp(shifted).sum(axis=1)


@dataclass
class ConfidenceHistogram:
    """How often each confidence occurred, in equal bins from 0 to 1; histograms of shards add up."""

    counts: Counts
    total: float = 0.0
    squares: float = 0.0
    sure: int = 0

    @classmethod
    def empty(cls, bins: int = BINS) -> ConfidenceHistogram:
        """Return a histogram without any picture."""
        return cls(np.zeros(bins, np.int64))

    def add(self, confidence: Array) -> None:
        """Count further pictures."""
        values = np.asarray(confidence, np.float64)
        if len(values) and not (values.min() >= 0 and values.max() <= 1 + 1e-9):
            raise UserError(f"confidence must lie in 0 … 1; got {values.min():.3g} … {values.max():.3g}")
        bins = np.minimum((values * len(self.counts)).astype(np.intp), len(self.counts) - 1)
        self.counts += np.bincount(bins, minlength=len(self.counts))
        self.total += float(values.sum())
        self.squares += float((values**2).sum())
        self.sure += int((values > SURE).sum())

    def merge(self, other: ConfidenceHistogram) -> ConfidenceHistogram:
        """Return the histogram of both."""
        sums = (self.total + other.total, self.squares + other.squares, self.sure + other.sure)
        return ConfidenceHistogram(self.counts + other.counts, *sums)

    @property
    def n(self) -> int:
        """Number of pictures."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean confidence; NaN where there is no picture."""
        return self.total / self.n if self.n else float("nan")

    @property
    def variance_of_mean(self) -> float:
        """Squared standard error of the mean; 0 where there are fewer than two pictures."""
        return max(self.squares / self.n - self.mean**2, 0) / (self.n - 1) if self.n > 1 else 0.0


def texture_confidence(confidence: Array) -> float:
    """Return the mean confidence; NaN where there is no picture.

    Parameters
    ----------
    confidence : float array n
        Probability of the top-1 class of each picture (``top1``).

    Examples
    --------
    >>> texture_confidence(np.array([0.25, 0.75]))
    0.5
    """
    histogram = ConfidenceHistogram.empty()
    histogram.add(confidence)
    return histogram.mean


METRIC = Metric(
    name="texture_confidence",
    title="Confidence on textures",
    formula="(1/n) Σ max_j softmax(f(x))_j; `sure`: (1/n) Σ [max_j softmax(f(x))_j > 0.96]",
    denominator="all answered pictures of textures",
    compute=texture_confidence,
    reference="Hoak, Sheatsley & McDaniel, Err on the Side of Texture, section IV-B and figure 6",
    caveats=("Confidence is not calibrated: compare models by it with care.",),
    chance="1 / number of classes",
    higher_is="more certain of an object where there is none",
    needs=("logits",),
)
