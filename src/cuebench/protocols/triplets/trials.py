"""From the answers of one observer to the decisions of its triplets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Positions
from cuebench.errors import UserError
from cuebench.metrics.triplets import (
    Gram,
    Similarity,
    Tally,
    Triplets,
    balanced_draws,
    count,
    decide,
    enumerate_triplets,
    gram,
)
from cuebench.protocols.triplets.stimuli import EXPERIMENTS, shown
from cuebench.responses.table import Responses
from cuebench.statistics.intervals import Clusters
from cuebench.types import Stimulus

COLUMN = "features"
DEFAULT: Similarity = "cosine"
DRAWN = ("experiment3", "novel")
"""How conditions with drawn objects begin: every shape in every texture, size or colour."""


class Draw(NamedTuple):
    """Which triplets are scored: ``k`` for each anchor (0: all), drawn so many times, by this seed."""

    k: int
    replications: int
    seed: int


ALL = Draw(0, 1, 0)


@dataclass(frozen=True)
class Images:
    """The images of one condition that were answered, and their triplets."""

    rows: Positions
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
        return Clusters(*(np.array(names) for names in (self.ids, self.shape_sources, self.texture_sources)))

    def draws(self, draw: Draw) -> tuple[Positions, ...] | None:
        """Return the positions of the drawn triplets; None: all of them."""
        return _draws(self.shape_sources, self.texture_sources, draw) if draw.k else None


def images_of(stimuli: Sequence[Stimulus]) -> Images:
    """Return stimuli as the images of a condition, in this order."""
    return Images(
        np.arange(len(stimuli)),
        tuple(s.id.partition("/")[0] for s in stimuli),
        tuple(s.shape_source for s in stimuli),
        tuple(s.texture_source for s in stimuli),
    )


# Observers of a run and conditions of an experiment show the same images: their triplets are listed and drawn once.


@lru_cache(maxsize=16)
def _triplets(shapes: tuple[str, ...], textures: tuple[str, ...]) -> Triplets:
    return enumerate_triplets(shapes, textures)


@lru_cache(maxsize=16)
def _draws(shapes: tuple[str, ...], textures: tuple[str, ...], draw: Draw) -> tuple[Positions, ...]:
    return balanced_draws(_triplets(shapes, textures), draw.k, draw.replications, draw.seed)


class Measured(NamedTuple):
    """The decisions of one condition, by anchor.

    ``zero`` and ``unusable`` count the images whose features are all zero, and those with NaN or infinite ones.
    """

    images: Images
    draw: Draw
    tally: Tally
    zero: int
    unusable: int

    @property
    def undecidable(self) -> int:
        """Number of chosen triplets that could not be decided because an image has no usable features."""
        per_anchor = self.images.triplets.per_anchor
        chosen = int((np.minimum(per_anchor, self.draw.k) if self.draw.k else per_anchor).sum())
        return max(0, chosen - round(float(self.tally.trials.sum())))

    def notes(self) -> list[str]:
        """Say which triplets were scored and what is unusual about them."""
        draw, per_anchor = self.draw, self.images.triplets.per_anchor
        fewer, lonely = int(((per_anchor > 0) & (per_anchor < draw.k)).sum()), int((per_anchor == 0).sum())
        ties = float(self.tally.ties.sum())
        chosen = f"{draw.k} triplets of each anchor, mean of {draw.replications} draws" if draw.k else "all triplets"
        notes = [chosen]
        notes += [f"{fewer:,} anchors have fewer triplets, and all of them are used"] if fewer else []
        notes += [f"{lonely:,} of {len(per_anchor):,} anchors have no match and are left out"] if lonely else []
        notes += [f"{self.zero:,} images with a zero vector"] if self.zero else []
        notes += [f"{self.unusable:,} images with NaN or infinite features"] if self.unusable else []
        return [*notes, f"{ties:,.0f} ties count against shape" if ties else "no ties"]


@dataclass(frozen=True)
class Trials:
    """All conditions of one observer."""

    responses: Responses
    draw: Draw

    @cached_property
    def conditions(self) -> dict[str, Images]:
        """Condition → its images, in the order of the experiments; those that were not shown are left out."""
        stimuli = self.responses.stimuli.stimuli
        rows_of: dict[str, list[int]] = {}
        for row, position in enumerate(self.responses.stimulus):
            rows_of.setdefault(stimuli[position].condition, []).append(row)
        images = {condition: self._images(rows) for condition, rows in rows_of.items()}
        published = [condition for conditions in EXPERIMENTS.values() for condition in conditions]
        others = [condition for condition in rows_of if condition not in published]
        return {c: images[shown(c)] for c in (*published, *others) if shown(c) in images}

    def _images(self, rows: Sequence[int]) -> Images:
        stimuli = [self.responses.stimuli.stimuli[self.responses.stimulus[row]] for row in rows]
        return replace(images_of(stimuli), rows=np.array(rows, np.intp))

    @property
    def columns(self) -> list[str]:
        """The embeddings that were stored: the penultimate one first, then the named layers."""
        columns = [c for c in self.responses.columns if c == COLUMN or c.startswith(f"{COLUMN}:")]
        if not columns:
            raise UserError(
                f"{self.responses.observer} answered without features", "name a layer: -o 'OBSERVER?features=LAYER'"
            )
        return columns

    def measured(self, column: str, similarities: Sequence[Similarity]) -> Iterator[tuple[str, Similarity, Measured]]:
        """Yield condition, similarity and decisions; pictures that two conditions share are compared once."""
        if (column, *similarities) == (COLUMN, DEFAULT):
            yield from ((condition, DEFAULT, measured) for condition, measured in self.default.items())
        else:
            yield from self._measured(column, similarities)

    def _measured(self, column: str, similarities: Sequence[Similarity]) -> Iterator[tuple[str, Similarity, Measured]]:
        products: dict[int, Gram] = {}
        for condition, images in self.conditions.items():
            if id(images) not in products:
                products[id(images)] = gram(self.responses.columns[column][images.rows], images.triplets)
            product = products[id(images)]
            compared = np.zeros(len(images.ids), bool)
            compared[images.triplets.anchor] = True
            unusable = int((compared & ~product.usable & ~product.zero).sum())
            # Drawn objects have as many triplets for every anchor: all of them are scored, once.
            draw = ALL if condition.startswith(DRAWN) else self.draw
            for similarity in similarities:
                tally = count(decide(product, similarity), images.triplets, images.draws(draw))
                yield condition, similarity, Measured(images, draw, tally, int(product.zero.sum()), unusable)

    @cached_property
    def default(self) -> dict[str, Measured]:
        """Condition → decisions of the penultimate layer by cosine similarity."""
        return {condition: measured for condition, _, measured in self._measured(COLUMN, [DEFAULT])}
