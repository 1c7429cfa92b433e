"""Triplet shape bias: how often the same shape is more similar to the anchor than the same texture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics.base import Metric
from cuebench.metrics.triplets import Similarity, Tally, balanced_draws, count, decide, enumerate_triplets, gram
from cuebench.statistics.ratios import Terms
from cuebench.types import IntervalKind


def tally(
    features: Sequence[Sequence[float]] | Array,
    shape_sources: Sequence[str] | Array,
    texture_sources: Sequence[str] | Array,
    *,
    similarity: Similarity = "cosine",
    k: int = 0,
    replications: int = 3,
    seed: int = 0,
) -> Tally:
    """Decide the triplets of a set of images; the metric is the share that is decided by shape.

    Parameters
    ----------
    features : array images × numbers
        One embedding for each image. Triplets with a row of zeros or with NaN are outside the denominator.
    shape_sources, texture_sources : one name for each image
        Instances: only images with the same source are a match.
    similarity : {"cosine", "dot", "euclid"}
        How two embeddings are compared.
    k, replications : int
        0: all triplets. Else k for each anchor, drawn anew so many times and averaged. Published: 28 and 3.
    seed : int
        Of the draws.

    Returns
    -------
    Tally
        Decisions of each anchor. The metric lies between 0 (texture) and 1 (shape); NaN where there is no triplet.

    References
    ----------
    Tartaglini, Vong & Lake 2022, https://escholarship.org/uc/item/6hj739kb

    Examples
    --------
    >>> features = [[1, 0], [1, 0.1], [0, 1], [0.1, 1]]
    >>> triplet_shape_bias(features, ["a", "a", "b", "b"], ["x", "y", "x", "y"])
    1.0
    """
    triplets = enumerate_triplets(shape_sources, texture_sources)
    draws = balanced_draws(triplets, k, replications, seed) if k else None
    return count(decide(gram(np.asarray(features), triplets), similarity), triplets, draws)


def terms(decisions: Tally) -> Terms:
    """Return what each anchor adds: its shape decisions, and its decided trials with ties."""
    return Terms(decisions.shape, decisions.trials)


def shared_terms(decisions: Tally) -> dict[IntervalKind, Terms]:
    """Return kind of interval → what all trials add in which an image has a part that counts for the kind.

    A triplet has two shapes, that of the anchor (and shape match) and that of the texture match; and two textures. So a
    shape counts with the trials of its anchors and of its texture matches, and an image with all trials that show it.
    """
    anchor, first, second = terms(decisions), decisions.as_shape_match, decisions.as_texture_match
    if first is None or second is None:
        return {}
    by_shape = Terms(anchor.numerator + second.shape, anchor.denominator + second.trials)
    by_texture = Terms(anchor.numerator + first.shape, anchor.denominator + first.trials)
    every = Terms(by_shape.numerator + first.shape, by_shape.denominator + first.trials)
    return {"images": every, "shape_sources": by_shape, "texture_sources": by_texture, "two_way": every}


METRIC = Metric(
    name="triplet_shape_bias",
    title="Triplet shape bias",
    formula="n_shape / (n_shape + n_texture + n_ties), shape = sim(anchor, shape match) > sim(anchor, texture match)",
    denominator="all triplets, or k drawn for each anchor; a tie is no shape decision but stays in the denominator",
    reference="Tartaglini, Vong & Lake 2022, A Developmentally-Inspired Examination of Shape versus Texture Bias in "
    "Machines, CogSci 44",
    trials=tally,
    terms=terms,
    caveats=(
        "No trial is discarded: texture bias is the rest. Ties (equal similarity) count against shape and are shown.",
        "An untrained network is not at 0.5 where the shapes overlap pixel by pixel: compare with random "
        "initialisations of the same architecture.",
        "Trials share images, shapes and textures: thousands of triplets come from 48 textures or from 16. A source "
        "counts with all trials in which it appears, also as a match. Quote the two-way interval.",
        "Inner layers are averaged over positions before they are compared: what is measured is what they contain, not "
        "where.",
    ),
    chance="0.5 for an embedding that holds both cues equally; ties only for a constant one: 0",
    higher_is="finds the same shape more similar than the same texture",
    needs=("features",),
)
triplet_shape_bias = METRIC
