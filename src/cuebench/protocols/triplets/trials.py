"""From the answers of one observer to the decisions of its triplets. Private to ``triplets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from cuebench.errors import UserError
from cuebench.metrics.triplet_shape_bias import Tally, count
from cuebench.metrics.triplets import Gram, Ints, Similarity, Triplets, balanced_draw, decide, enumerate_triplets, gram
from cuebench.protocols.triplets.stimuli import EXPERIMENTS, shown
from cuebench.responses.table import Responses
from cuebench.statistics.intervals import Clusters, child_generator

COLUMN = "features"


class Choice(NamedTuple):
    """How triplets are chosen: ``k`` for each anchor (0: all), so many times, by this seed."""

    k: int
    replications: int
    seed: int


@dataclass(frozen=True)
class Images:
    """The images of one condition that were answered, and their triplets."""

    rows: Ints
    ids: tuple[str, ...]
    shape_sources: tuple[str, ...]
    texture_sources: tuple[str, ...]

    @cached_property
    def triplets(self) -> Triplets:
        """Every triplet."""
        return _triplets(self.shape_sources, self.texture_sources)

    @cached_property
    def clusters(self) -> Clusters:
        """What the anchors share with each other."""
        return Clusters(*(np.array(c) for c in (self.ids, self.shape_sources, self.texture_sources)))

    def draws(self, choice: Choice) -> tuple[Ints, ...] | None:
        """Return the rows of the draws; None: all triplets."""
        return _draws(self.shape_sources, self.texture_sources, choice) if choice.k else None


@lru_cache(maxsize=16)
def _triplets(shapes: tuple[str, ...], textures: tuple[str, ...]) -> Triplets:
    return enumerate_triplets(shapes, textures)


@lru_cache(maxsize=16)
def _draws(shapes: tuple[str, ...], textures: tuple[str, ...], choice: Choice) -> tuple[Ints, ...]:
    found = _triplets(shapes, textures)
    streams = (child_generator(choice.seed, f"triplets/{r}") for r in range(choice.replications))
    return tuple(balanced_draw(found, choice.k, rng) for rng in streams)


class Measured(NamedTuple):
    """The decisions of one condition, by anchor."""

    images: Images
    tally: Tally
    zero: int
    unusable: int

    @property
    def alone(self) -> int:
        """Images that are the anchor of no triplet."""
        return int((self.images.triplets.per_anchor == 0).sum())


@dataclass(frozen=True)
class Trials:
    """All conditions of one observer."""

    responses: Responses
    choice: Choice

    @cached_property
    def conditions(self) -> dict[str, Images]:
        """Condition → its images, in the order of the experiments; those that were not shown are left out."""
        stimuli = self.responses.stimuli.stimuli
        found: dict[str, list[int]] = {}
        for row, position in enumerate(self.responses.stimulus):
            found.setdefault(stimuli[position].condition, []).append(row)
        images = {name: self._images(rows) for name, rows in found.items()}
        ordered = [c for own in EXPERIMENTS.values() for c in own]
        own = [c for c in found if c not in ordered]
        return {c: images[shown(c)] for c in (*ordered, *own) if shown(c) in images}

    def _images(self, rows: Sequence[int]) -> Images:
        stimuli = [self.responses.stimuli.stimuli[self.responses.stimulus[r]] for r in rows]
        names = tuple(s.id.partition("/")[0] for s in stimuli)
        return Images(
            np.array(rows, np.intp),
            names,
            tuple(s.shape_source for s in stimuli),
            tuple(s.texture_source for s in stimuli),
        )

    @property
    def columns(self) -> list[str]:
        """The embeddings that were stored: the penultimate one first, then the named layers."""
        found = [c for c in self.responses.columns if c == COLUMN or c.startswith(f"{COLUMN}:")]
        if not found:
            raise UserError(f"{self.responses.observer} answered without features")
        return found

    def choice_of(self, condition: str) -> Choice:
        """Experiment 3 has as many triplets for every anchor: all of them are scored, once."""
        return Choice(0, 1, 0) if condition.startswith("experiment3") else self.choice

    def measured(self, column: str, kinds: Sequence[Similarity]) -> Iterator[tuple[str, Similarity, Measured]]:
        """Yield condition, similarity and decisions; pictures that two conditions share are compared once."""
        products: dict[int, Gram] = {}
        for condition, images in self.conditions.items():
            if id(images) not in products:
                products[id(images)] = gram(self.responses.columns[column][images.rows], images.triplets)
            found = products[id(images)]
            for kind in kinds:
                decisions = decide(found, images.triplets, kind)
                tally = count(decisions, images.triplets, images.draws(self.choice_of(condition)))
                compared = np.zeros(len(images.ids), bool)
                compared[images.triplets.anchor] = True
                bad = int((compared & ~found.usable & ~found.zero).sum())
                yield condition, kind, Measured(images, tally, int(found.zero.sum()), bad)
