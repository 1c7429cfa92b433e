"""Triplets of anchor, shape match and texture match, and which match an embedding finds more similar.

A trial is an anchor, a *shape match* (same shape instance, another texture) and a *texture match* (same texture
instance, another shape). Every image is embedded once. Only images that share a source are ever compared, so the
similarities are the diagonal blocks of one matrix product, one block for each source, in double precision: the
embeddings of an untrained network differ in the sixth digit. All trials are then decided by looking two numbers up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np

from cuebench.arrays import Array, Bools, Floats, Positions
from cuebench.errors import UserError, did_you_mean
from cuebench.statistics.intervals import child_generator

Similarity = Literal["cosine", "dot", "euclid"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
TIE = 1e-13
"""Similarities closer than this part of the largest one are equal: what is left is rounding of the product."""
_CENTRED = 1e-15  # (rounding of the mean)² is this small a part of the squared length, and less


# ------------------------------------------------------------------------------------------------- which trials


@dataclass(frozen=True)
class Triplets:
    """All trials of a set of images, sorted by anchor.

    Parameters
    ----------
    anchor, shape, texture : int arrays, one value for each trial
        Positions of the three images.
    images : int
        How many images there are, including those that are the anchor of no trial.
    groups : tuple of int arrays
        Images that share a source: the only ones that are compared.
    """

    anchor: Positions
    shape: Positions
    texture: Positions
    images: int
    groups: tuple[Positions, ...] = ()

    def __len__(self) -> int:
        return len(self.anchor)

    @cached_property
    def per_anchor(self) -> Positions:
        """Number of trials of each image as the anchor; 0: it has no match of one kind."""
        return np.bincount(self.anchor, minlength=self.images).astype(np.intp)


def enumerate_triplets(shape_sources: Sequence[str] | Array, texture_sources: Sequence[str] | Array) -> Triplets:
    """Return every triplet of a set of images.

    The trials of anchor a are S(a) × T(a), with S(a) the images of the same shape source and another texture source,
    T(a) those of the same texture source and another shape source.

    Parameters
    ----------
    shape_sources, texture_sources : one name or number for each image
        Which instance its shape and its texture come from.

    Examples
    --------
    >>> triplets = enumerate_triplets(["a", "a", "b", "b"], ["x", "y", "x", "y"])
    >>> len(triplets), triplets.anchor.tolist(), triplets.shape.tolist(), triplets.texture.tolist()
    (4, [0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1])
    """
    shapes, textures = (
        np.unique(np.asarray(sources), return_inverse=True)[1].ravel() for sources in (shape_sources, texture_sources)
    )
    if len(shapes) != len(textures):
        raise UserError(f"{len(shapes)} shape sources and {len(textures)} texture sources")
    by_shape, by_texture = _members(shapes), _members(textures)
    nothing = np.zeros(0, np.intp)
    anchors, shape_matches, texture_matches = [nothing], [nothing], [nothing]
    for image in range(len(shapes)):
        same_shape, same_texture = by_shape[shapes[image]], by_texture[textures[image]]
        first = same_shape[textures[same_shape] != textures[image]]
        second = same_texture[shapes[same_texture] != shapes[image]]
        anchors.append(np.full(len(first) * len(second), image, np.intp))
        shape_matches.append(np.repeat(first, len(second)))
        texture_matches.append(np.tile(second, len(first)))
    groups = tuple(group for group in (*by_shape, *by_texture) if len(group) > 1)
    anchor, shape, texture = (np.concatenate(parts) for parts in (anchors, shape_matches, texture_matches))
    return Triplets(anchor, shape, texture, len(shapes), groups)


def _members(codes: Positions) -> list[Positions]:
    """Return the positions of each code."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(codes) else []


def balanced_draws(triplets: Triplets, k: int, replications: int, seed: int) -> tuple[Positions, ...]:
    """Draw ``k`` trials of each anchor without replacement, several times; an anchor with fewer gives all it has.

    Frequent shapes and textures make more triplets; drawing the same number for each anchor gives all the same weight.

    Parameters
    ----------
    triplets : Triplets
        What is drawn from.
    k, replications, seed : int
        Trials of each anchor, number of draws, and what they depend on.

    Returns
    -------
    tuple of int arrays
        Positions of the drawn trials, one array for each replication.
    """
    if k < 1:
        raise UserError(f"cannot draw {k} triplets for each anchor", "draw 1 or more; published: 28")
    first = np.cumsum(triplets.per_anchor) - triplets.per_anchor
    rank = np.arange(len(triplets)) - first[triplets.anchor]
    draws = []
    for replication in range(replications):
        keys = child_generator(seed, f"triplets/{replication}").random(len(triplets))
        order = np.lexsort((keys, triplets.anchor))
        draws.append(np.sort(order[rank < k]))
    return tuple(draws)


# ------------------------------------------------------------------------------------------------- decisions


@dataclass(frozen=True)
class Gram:
    """Inner products of the embeddings that share a source (0 elsewhere), computed when they are asked for.

    A row with NaN or infinite numbers is not usable; a row of zeros has no direction and is not usable either.
    """

    features: Array
    triplets: Triplets

    @cached_property
    def products(self) -> Floats:
        """x·y, for cosine and dot product."""
        return self._blocks(None)

    @cached_property
    def centred(self) -> Floats:
        """(x − m)·(y − m) with m the mean: distances are the same, and near-parallel embeddings keep their digits."""
        return self._blocks(self.features[self.usable].mean(axis=0, dtype=np.float64) if self.usable.any() else None)

    def _blocks(self, mean: Floats | None) -> Floats:
        products = np.zeros((self.triplets.images, self.triplets.images))
        with np.errstate(invalid="ignore", over="ignore"):  # unusable rows are found by their squares
            for group in self.triplets.groups:
                rows = self.features[group].astype(np.float64)
                rows = rows if mean is None else rows - mean
                products[group[:, None], group[None, :]] = rows @ rows.T
        return products

    @cached_property
    def usable(self) -> Bools:
        """Rows that can be compared."""
        return np.isfinite(self.squares) & (self.squares > 0)

    @cached_property
    def squares(self) -> Floats:
        """Squared length of every row; NaN or infinite where the row is."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.einsum("ij,ij->i", self.features, self.features, dtype=np.float64)

    @cached_property
    def zero(self) -> Bools:
        """Rows of zeros among those that have something to be compared with."""
        compared = np.zeros(self.triplets.images, bool)
        compared[np.concatenate([*self.triplets.groups, np.zeros(0, np.intp)])] = True
        return compared & (self.squares == 0)


def gram(features: Array, triplets: Triplets) -> Gram:
    """Return the inner products x·y of all images that share a source: all three similarities follow from them."""
    if features.ndim != 2 or len(features) != triplets.images:
        raise UserError(f"features of shape {features.shape}; expected {triplets.images} images × numbers")
    return Gram(features, triplets)


class Decisions(NamedTuple):
    """What happened in each trial; a trial that is none of the three had an unusable image."""

    shape: Bools
    texture: Bools
    tie: Bools


def decide(products: Gram, similarity: Similarity = "cosine") -> Decisions:
    """Decide every trial: shape where the shape match is strictly more similar to the anchor than the texture match.

    ``cosine``: x·y / (‖x‖·‖y‖); ``dot``: x·y; ``euclid``: −‖x − y‖ (compared as squares, which have the same order).
    """
    if similarity not in SIMILARITIES:
        raise did_you_mean("similarity", similarity, SIMILARITIES)
    gap, scale = _gap(products, similarity)
    limit, usable = TIE * scale, np.ones(len(gap), bool)
    if not products.usable.all():
        for images in (products.triplets.anchor, products.triplets.shape, products.triplets.texture):
            usable &= products.usable[images]
    return Decisions(usable & (gap > limit), usable & (gap < -limit), usable & (np.abs(gap) <= limit))


def _gap(products: Gram, similarity: Similarity) -> tuple[Floats, float]:
    """Return sim(anchor, shape match) − sim(anchor, texture match) for each trial, and the size of what is compared.

    What both have in common (the anchor's own length) is left out: it changes no sign, only the rounding.
    """
    triplets = products.triplets
    table = products.centred if similarity == "euclid" else products.products
    flat, row = table.ravel(), triplets.anchor * triplets.images
    to_shape, to_texture = flat[row + triplets.shape], flat[row + triplets.texture]
    squares = np.where(products.usable, table.diagonal() if similarity == "euclid" else products.squares, 1.0)
    largest = float(squares.max(initial=np.finfo(np.float64).tiny))
    with np.errstate(invalid="ignore"):  # trials of unusable images are masked by the caller
        if similarity == "dot":
            return to_shape - to_texture, largest
        if similarity == "euclid":
            # A network that answers everything alike is left with the rounding of its own length.
            longest = float(np.where(products.usable, products.squares, 0).max(initial=0))
            gap = 2 * (to_shape - to_texture) - (squares[triplets.shape] - squares[triplets.texture])
            return gap, max(largest, longest * _CENTRED)
        inverse = 1 / np.sqrt(squares)
        gap = to_shape * inverse[triplets.shape] - to_texture * inverse[triplets.texture]
        return gap * inverse[triplets.anchor], 1.0


# ------------------------------------------------------------------------------------------------- counts


class Role(NamedTuple):
    """Decisions for shape, and all decided trials, of each image in another role than the anchor's."""

    shape: Floats
    trials: Floats


class Tally(NamedTuple):
    """Decisions of each anchor; the numbers of several draws are averaged, so they need not be whole.

    ``as_shape_match`` and ``as_texture_match`` count the same trials by the image that is this match. None where
    matches are not known.
    """

    shape: Floats
    texture: Floats
    ties: Floats
    as_shape_match: Role | None = None
    as_texture_match: Role | None = None

    @property
    def trials(self) -> Floats:
        """Trials of each anchor that could be decided."""
        return self.shape + self.texture + self.ties


def count(decisions: Decisions, triplets: Triplets, draws: Sequence[Positions] | None = None) -> Tally:
    """Count the decisions of each anchor, over all trials or averaged over several draws of them."""

    drawn: Sequence[Positions | slice] = [slice(None)] if draws is None else draws

    def by(images: Positions, outcome: Bools) -> Floats:
        counts = [np.bincount(images[rows], outcome[rows], triplets.images) for rows in drawn]
        return np.asarray(np.mean(counts, axis=0))

    decided = decisions.shape | decisions.texture | decisions.tie
    first, second = (
        Role(by(images, decisions.shape), by(images, decided)) for images in (triplets.shape, triplets.texture)
    )
    shape, texture, ties = (by(triplets.anchor, outcome) for outcome in decisions)
    return Tally(shape, texture, ties, first, second)
