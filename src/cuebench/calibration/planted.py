"""Observers with a planted bias, and shapes and textures that differ in how much they draw an answer.

On every picture the observer pays attention with the probability of its competence, and then answers by shape with the
probability of its shape weight, else by texture. Without attention, or where the cue that it answers by was taken away,
it guesses. Shapes and textures may have random effects on the log odds of both; the intercept is chosen such that the
mean over new shapes and textures stays what was planted, so that every expected value below is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cuebench.arrays import Array, Bools, Floats
from cuebench.statistics.logistic import central_log_odds


@dataclass(frozen=True)
class Planted:
    """What is planted in one simulated study.

    Parameters
    ----------
    weight : float
        Shape weight: how often an attentive observer answers by shape. In protocols without two cues, what stands in
        its place is said by the design.
    competence : float
        How often it is attentive.
    spread : float
        Standard deviation of the effect of each source on the log odds; 0: all sources are alike.
    images : float
        Share of the published number of images.
    classes : int
        Size of the label space that it guesses in; 0: that of the protocol.
    """

    weight: float = 0.5
    competence: float = 0.8
    spread: float = 0.0
    images: float = 1.0
    classes: int = 0

    @property
    def by_shape(self) -> float:
        """How often it answers by shape and pays attention."""
        return self.competence * self.weight

    @property
    def by_texture(self) -> float:
        """How often it answers by texture and pays attention."""
        return self.competence * (1 - self.weight)


BY_SHAPE = "share of attentive answers by shape"
"""What the planted weight is in protocols with two cues."""
WEIGHTS = (0.0, 0.2, 0.5, 0.8, 1.0)
COMPETENCES = (0.1, 0.5, 1.0)
STRONG, WEAK = (0.8, 1.0), (0.8, 0.1)
"""Shape weight and competence of an observer with 80 % shape and 20 % texture answers, and of one with 8 % and 2 %."""
GRID = "grid"
SETTINGS: Mapping[str, Planted] = {
    "sources alike": Planted(),
    "sources vary": Planted(spread=1.0),
    "sources vary, extreme": Planted(weight=0.95, competence=0.9, spread=1.0),
    "sources vary, a quarter of the images": Planted(spread=1.0, images=0.25),
}
"""Settings in which the coverage of intervals is measured → what is planted."""


def with_guesses(rate: float, classes: float) -> float:
    """Return how often an answer is right that is known with a probability and else guessed among some classes.

    >>> with_guesses(0.5, 2)
    0.75
    """
    return rate + (1 - rate) / classes


def happens(rate: float, spread: float, rng: np.random.Generator, *sources: Array) -> Bools:
    """Draw for each trial whether something of a mean rate happens, where the sources of a trial matter.

    Parameters
    ----------
    rate : float
        Mean over new sources.
    spread : float
        Standard deviation of the effect of each source on the log odds.
    rng : Generator
        Draws the effects and the trials.
    sources : int arrays
        Number of each trial's source; all kinds have effects of their own. With a column for each where a trial shows
        several sources of a kind, as triplets do: one has the same effect in all columns.
    """
    return rng.random(len(sources[0])) < rates(rate, spread, rng, *sources)


def rates(rate: float, spread: float, rng: np.random.Generator, *sources: Array) -> Floats:
    """Return the rate of each trial; see `happens`."""
    if not spread or rate in (0.0, 1.0):
        return np.full(len(sources[0]), rate)
    lean = np.full(len(sources[0]), intercept(rate, spread * len(sources) ** 0.5))
    for source in sources:
        each = rng.standard_normal(int(source.max()) + 1)[source].reshape(len(lean), -1)
        lean += spread * each.sum(1) / each.shape[1] ** 0.5
    return np.asarray(1 / (1 + np.exp(-lean)))


def intercept(rate: float, spread: float) -> float:
    """Return the log odds without effects at which the mean over effects is the rate."""
    return central_log_odds(rate, spread, 120)
