"""How often intervals of `human_alignment` hold what they claim: other images for the same people, and the reverse.

`benchmarks.coverage` adds these settings to its table. What is not drawn anew stays the same in all studies of a
setting, so that the truth is the mean over very many images of the same people, or over very many people who see the
same images. Intervals over data sets, with which everything is drawn anew, are measured by ``cuebench calibrate``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from cuebench.metrics.human_agreement import agreement
from cuebench.observers.model_vs_human import DATA_SETS
from cuebench.protocols.human_alignment.intervals import intervals
from cuebench.protocols.human_alignment.numbers import METRICS, align
from cuebench.protocols.human_alignment.trials import Contest, Measured

Array = np.ndarray
Random = np.random.Generator
SIZES = ((17, 4, 80), (3, 4, 160), (3, 10, 40), (1, 10, 160))
"""Data sets, people of each, images of each."""
CLAIMED = {
    "error_consistency": ("images", "subjects"),
    "observed_consistency": ("images", "subjects"),
    "accuracy_difference": ("images",),
}
MANY_IMAGES, MANY_PEOPLE = 100_000, 10_000


class Claim(NamedTuple):
    """The interval of one kind in one study: value, ends and the truth."""

    value: float
    low: float
    high: float
    truth: float


class World:
    """Data sets, people and images that differ; the observer is the first row of all answers."""

    def __init__(self, size: tuple[int, int, int], metric: str) -> None:
        self.sets, self.people, self.images = size
        self.row = METRICS.index(metric) - 1
        rng = np.random.default_rng(14)
        self.level = 1.2 + 0.8 * rng.normal(size=self.sets)
        self.persons = self.level[:, None] + 0.5 * rng.normal(size=(self.sets, self.people))
        self.pictures = rng.normal(size=(self.sets, self.images))
        self.own = rng.random(self.pictures.shape) < expit(self.level[:, None] - 0.3 + 1.5 * self.pictures)
        self.truths = {"images": self._over_images(rng), "subjects": self._over_people(rng)}

    def _answers(self, rng: Random, s: int, pictures: Array, persons: Array) -> Array:
        return rng.random((len(persons), len(pictures))) < expit(persons[:, None] + 1.5 * pictures)

    def _value(self, own: Array, others: Array) -> float:
        counts = (np.full(len(others), n, float) for n in (len(own), own.sum()))
        found = agreement(*counts, others.sum(axis=1).astype(float), (others & own).sum(axis=1).astype(float))
        return float(np.mean(found[self.row]))

    def _over_images(self, rng: Random) -> float:
        values = []
        for s in range(self.sets):
            pictures = rng.normal(size=MANY_IMAGES)
            own = rng.random(MANY_IMAGES) < expit(self.level[s] - 0.3 + 1.5 * pictures)
            values.append(self._value(own, self._answers(rng, s, pictures, self.persons[s])))
        return float(np.mean(values))

    def _over_people(self, rng: Random) -> float:
        values = []
        for s in range(self.sets):
            persons = self.level[s] + 0.5 * rng.normal(size=MANY_PEOPLE)
            values.append(self._value(self.own[s], self._answers(rng, s, self.pictures[s], persons)))
        return float(np.mean(values))

    def study(self, rng: Random, kind: str) -> Claim:
        """Draw what the kind of interval is about anew, and return the interval."""
        answers = []
        for s in range(self.sets):
            pictures, own, persons = self.pictures[s], self.own[s], self.persons[s]
            if kind == "images":
                pictures = rng.normal(size=self.images)
                own = rng.random(self.images) < expit(self.level[s] - 0.3 + 1.5 * pictures)
            else:
                persons = self.level[s] + 0.5 * rng.normal(size=self.people)
            answers.append(np.vstack([own, self._answers(rng, s, pictures, persons)]))
        numbers = self._numbers(np.hstack(answers))
        metric = METRICS[self.row + 1]
        (found,) = (i for i in intervals(numbers, metric, 0, pooled=False) if i.kind == kind)
        return Claim(float(numbers.values[self.row + 1, 0]), found.low, found.high, self.truths[kind])

    def _numbers(self, correct: Array):
        names = list(DATA_SETS)[: self.sets]
        places = {name: np.arange(self.images) + self.images * s for s, name in enumerate(names)}
        pairs = np.array([(0, k) for k in range(1, self.people + 1)])
        units = [str(k) for k in range(self.people + 1)]
        contest = Contest([Measured(None, None, None)], units, np.ones_like(correct), correct, places,
                          [np.array([0])], pairs, [np.arange(self.people)])  # type: ignore[list-item, arg-type]  # fmt: skip
        return align(contest, {}, np.array([], int)).mean


def worlds() -> Iterator[tuple[str, str, World]]:
    """Yield metric, words and world of each setting."""
    for metric in CLAIMED:
        for size in SIZES:
            sets, people, images = size
            yield metric, f"{sets} data sets with {people} people and {images} images each", World(size, metric)
