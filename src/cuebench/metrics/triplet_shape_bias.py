"""Triplet shape bias: how often the same shape is more similar to the anchor than the same texture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.metrics.triplets import (
    Decisions,
    Floats,
    Ints,
    Similarity,
    Triplets,
    balanced_draw,
    decide,
    enumerate_triplets,
    gram,
)
from cuebench.statistics.ratios import Ratio


class Tally(NamedTuple):
    """Decisions of each anchor; the numbers of several draws are averaged, so they need not be whole."""

    shape: Floats
    texture: Floats
    ties: Floats

    @property
    def trials(self) -> Floats:
        """Trials of each anchor that could be decided."""
        return self.shape + self.texture + self.ties


def count(decisions: Decisions, triplets: Triplets, draws: Sequence[Ints] | None = None) -> Tally:
    """Count the decisions of each anchor, over all trials or averaged over several draws of them."""
    each = [_counted(decisions, triplets, rows) for rows in (draws if draws is not None else [slice(None)])]
    return Tally(*(np.mean([one[i] for one in each], axis=0) for i in range(3)))


def compute(tally: Tally) -> Ratio:
    """Return shape decisions over all decided trials."""
    return Ratio(float(tally.shape.sum()), float(tally.trials.sum()))


def triplet_shape_bias(
    features: Any,
    shape_sources: Sequence[str],
    texture_sources: Sequence[str],
    *,
    similarity: Similarity = "cosine",
    k: int = 0,
    replications: int = 3,
    seed: int = 0,
) -> float:
    """Return the share of triplets in which the shape match is strictly more similar to the anchor.

    Parameters
    ----------
    features : array images × numbers
        One embedding for each image. Rows of zeros or with NaN leave the denominator.
    shape_sources, texture_sources : one name for each image
        Instances: only images with the same source are a match.
    similarity : {"cosine", "dot", "euclid"}
        How two embeddings are compared.
    k, replications : int
        0: all triplets. Else k for each anchor, drawn anew so many times; the shares are averaged. Published: 28 and 3.
    seed : int
        Of the draws.

    Returns
    -------
    float
        Between 0 (texture) and 1 (shape); NaN where there is no triplet.

    References
    ----------
    Tartaglini, Vong & Lake 2022, https://escholarship.org/uc/item/6hj739kb

    Examples
    --------
    >>> triplet_shape_bias([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], ["a", "a", "b", "b"], ["x", "y", "x", "y"])
    1.0
    """
    triplets = enumerate_triplets(shape_sources, texture_sources)
    rng = np.random.default_rng(seed)
    draws = [balanced_draw(triplets, k, rng) for _ in range(replications)] if k else None
    found = decide(gram(np.asarray(features), triplets), triplets, similarity)
    return compute(count(found, triplets, draws)).value


def _counted(decisions: Decisions, triplets: Triplets, rows: Any) -> list[Floats]:
    anchor = triplets.anchor[rows]
    return [np.bincount(anchor, d[rows], triplets.images).astype(np.float64) for d in decisions]


METRIC = Metric(
    name="triplet_shape_bias",
    title="Triplet shape bias",
    formula="n_shape / (n_shape + n_texture + n_ties), shape = sim(anchor, shape match) > sim(anchor, texture match)",
    denominator="all triplets, or k drawn for each anchor; a tie is no shape decision but stays in the denominator",
    compute=triplet_shape_bias,
    reference="Tartaglini, Vong & Lake 2022, A Developmentally-Inspired Examination of Shape versus Texture Bias in "
    "Machines, CogSci 44",
    caveats=(
        "No trial is discarded: texture bias is the rest. Ties (equal similarity) count against shape and are shown.",
        "An untrained network is not at 0.5 where the shapes overlap pixel by pixel: compare with random "
        "initialisations of the same architecture.",
        "Trials share images, shapes and textures: thousands of triplets come from 48 textures or from 16. Simulated, "
        "the interval over anchors (images) holds the truth in 3 of 4 cases, the two-way one in 19 of 20: quote it.",
        "Inner layers are averaged over positions before they are compared: what is measured is what they contain, not "
        "where.",
    ),
    chance="0.5 for an embedding that holds both cues equally; ties only for a constant one: 0",
    higher_is="finds the same shape more similar than the same texture",
    needs=("features",),
)
