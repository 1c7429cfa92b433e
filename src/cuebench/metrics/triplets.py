"""Triplets of anchor, shape match and texture match, and which match an embedding finds more similar. A helper.

A trial is an anchor, a *shape match* (same shape instance, another texture) and a *texture match* (same texture
instance, another shape). Every image is embedded once. Only images that share a source are ever compared, so the
similarities are the diagonal blocks of one matrix product, one block for each source, in double precision: the
embeddings of an untrained network differ in the sixth digit. All trials are then decided by looking two numbers up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from cuebench.arrays import Array, Bools, Floats, Positions
from cuebench.errors import UserError, did_you_mean

Ints = Positions

Similarity = Literal["cosine", "dot", "euclid"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
TIE = 1e-13
"""Similarities closer than this part of the largest one are equal: what is left is rounding of the product."""
_CENTRED = 1e-15  # (rounding of the mean)² is this small a part of the squared length, and less


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

    anchor: Ints
    shape: Ints
    texture: Ints
    images: int
    groups: tuple[Ints, ...] = ()

    def __len__(self) -> int:
        return len(self.anchor)

    @cached_property
    def per_anchor(self) -> Ints:
        """Number of trials of each image as the anchor; 0: it has no match of one kind."""
        return np.bincount(self.anchor, minlength=self.images).astype(np.intp)

    def only(self, rows: Array) -> Triplets:
        """Return some of the trials."""
        return Triplets(self.anchor[rows], self.shape[rows], self.texture[rows], self.images, self.groups)


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
    >>> found = enumerate_triplets(["a", "a", "b", "b"], ["x", "y", "x", "y"])
    >>> len(found), found.anchor.tolist(), found.shape.tolist(), found.texture.tolist()
    (4, [0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1])
    """
    shapes, textures = _codes(shape_sources), _codes(texture_sources)
    if len(shapes) != len(textures):
        raise UserError(f"{len(shapes)} shape sources and {len(textures)} texture sources")
    by_shape, by_texture = _members(shapes), _members(textures)
    parts: list[tuple[Ints, Ints, Ints]] = []
    for a in range(len(shapes)):
        same_shape, same_texture = by_shape[shapes[a]], by_texture[textures[a]]
        first = same_shape[textures[same_shape] != textures[a]]
        second = same_texture[shapes[same_texture] != shapes[a]]
        trials = len(first) * len(second)
        parts.append((np.full(trials, a, np.intp), np.repeat(first, len(second)), np.tile(second, len(first))))
    none = np.zeros(0, np.intp)
    anchor, shape, texture = (np.concatenate([none, *(p[i] for p in parts)]) for i in range(3))
    groups = tuple(g for g in (*by_shape, *by_texture) if len(g) > 1)
    return Triplets(anchor, shape, texture, len(shapes), groups)


def balanced_draw(triplets: Triplets, k: int, rng: np.random.Generator) -> Ints:
    """Return the rows of ``k`` trials of each anchor, drawn without replacement; an anchor with fewer gives all it has.

    Frequent shapes and textures make more triplets; drawing the same number for each anchor gives all the same weight.
    """
    if k < 1:
        raise UserError(f"cannot draw {k} triplets for each anchor", "draw 1 or more; published: 28")
    order = np.lexsort((rng.random(len(triplets)), triplets.anchor))
    first = np.cumsum(triplets.per_anchor) - triplets.per_anchor
    rank = np.arange(len(triplets)) - first[triplets.anchor]
    return np.sort(order[rank < k])


@dataclass(frozen=True)
class Gram:
    """Inner products of the embeddings that share a source (0 elsewhere), made when they are asked for.

    A row with NaN or infinite numbers is not usable; a row of zeros has no direction and is not usable either.
    """

    features: Array
    triplets: Triplets

    @cached_property
    def products(self) -> Floats:
        """x·y, for cosine and dot product."""
        return _blocks(self.features, self.triplets)

    @cached_property
    def centred(self) -> Floats:
        """(x − m)·(y − m) with m the mean: distances are the same, and near-parallel embeddings keep their digits."""
        mean = self.features[self.usable].mean(axis=0, dtype=np.float64) if self.usable.any() else 0.0
        return _blocks(self.features, self.triplets, mean)

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


def _blocks(features: Array, triplets: Triplets, mean: Floats | float | None = None) -> Floats:
    products = np.zeros((triplets.images, triplets.images))
    with np.errstate(invalid="ignore", over="ignore"):  # unusable rows are found by their squares
        for group in triplets.groups:
            rows = features[group].astype(np.float64)
            rows = rows if mean is None else rows - mean
            products[group[:, None], group[None, :]] = rows @ rows.T
    return products


class Decisions(NamedTuple):
    """What happened in each trial; a trial that is none of the three had an unusable image."""

    shape: Bools
    texture: Bools
    tie: Bools


def decide(of: Gram, triplets: Triplets, kind: Similarity = "cosine") -> Decisions:
    """Decide every trial: shape where the shape match is strictly more similar to the anchor than the texture match.

    ``cosine``: x·y / (‖x‖·‖y‖); ``dot``: x·y; ``euclid``: −‖x − y‖ (compared as squares, which have the same order).
    """
    if kind not in SIMILARITIES:
        raise did_you_mean("similarity", kind, SIMILARITIES)
    a, s, t = triplets.anchor, triplets.shape, triplets.texture
    gap, scale = _gap(of, triplets, kind)
    limit = TIE * scale
    usable = np.ones(len(a), bool) if of.usable.all() else of.usable[a] & of.usable[s] & of.usable[t]
    return Decisions(usable & (gap > limit), usable & (gap < -limit), usable & (np.abs(gap) <= limit))


def _gap(of: Gram, triplets: Triplets, kind: Similarity) -> tuple[Floats, float]:
    """Return sim(anchor, shape match) − sim(anchor, texture match) for each trial, and the size of what is compared.

    What both have in common (the anchor's own length) is left out: it changes no sign, only the rounding.
    """
    table = of.centred if kind == "euclid" else of.products
    flat, row = table.ravel(), triplets.anchor * triplets.images
    first, second = flat[row + triplets.shape], flat[row + triplets.texture]
    squares = np.where(of.usable, table.diagonal() if kind == "euclid" else of.squares, 1.0)
    largest = float(squares.max(initial=np.finfo(np.float64).tiny))
    with np.errstate(invalid="ignore"):  # trials of unusable images are masked by the caller
        if kind == "dot":
            return first - second, largest
        if kind == "euclid":
            # A network that answers everything alike is left with the rounding of its own length.
            largest = max(largest, float(np.where(of.usable, of.squares, 0).max(initial=0)) * _CENTRED)
            return 2 * (first - second) - (squares[triplets.shape] - squares[triplets.texture]), largest
        lengths = 1 / np.sqrt(squares)
        gap = first * lengths[triplets.shape] - second * lengths[triplets.texture]
        return gap * lengths[triplets.anchor], 1.0


def _codes(sources: Sequence[Any] | Array) -> Ints:
    return np.unique(np.asarray(sources), return_inverse=True)[1].ravel().astype(np.intp)


def _members(codes: Ints) -> list[Ints]:
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(codes) else []
