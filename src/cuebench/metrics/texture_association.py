"""Texture association value: how strongly a model associates a texture with a class, and the texture of an image.

Show a model pictures of textures, count the class that it answers for each, and weigh how exclusive the association is
in both directions. A row of the resulting matrix describes the answers to one texture, so the texture of *any* image is
the row that the model's answer to it is most similar to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Counts, Floats, Positions
from cuebench.errors import UserError
from cuebench.interval_methods import of_resamples
from cuebench.labels.decisions import ROUNDING, first_highest
from cuebench.metrics.base import Metric
from cuebench.statistics.clustered import bounded_interval
from cuebench.statistics.intervals import child_generator, undefined
from cuebench.types import Interval

TAV = Floats
"""Textures × classes, each in [0, 1]."""

NO_TEXTURE = -1
_CHUNK = 4096  # rows of probabilities in memory at once, whatever the number of images


def texture_association(counts: Array) -> TAV:
    r"""Return the association of each texture with each class.

    .. math:: TAV_{ij} = PT_{ij}\,(1 - TH_i)\; PO_{ij}\,(1 - OH_j)

    Parameters
    ----------
    counts : array k × m
        Pictures of texture i whose top-1 class is j. Counts of shards add up; leading axes are batches (resamples).

    Returns
    -------
    float array k × m
        In [0, 1]. 0 for classes never answered and textures without a picture.

    Raises
    ------
    UserError
        Where the counts are not a matrix, are negative or not finite.

    References
    ----------
    Hoak et al., Err on the Side of Texture, equation 2.

    Examples
    --------
    >>> texture_association(np.array([[10, 0], [0, 10]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    n = _validated(counts)
    rows, columns = n.sum(-1, keepdims=True), n.sum(-2, keepdims=True)
    pt, po = _divide(n, rows), _divide(n, columns)
    texture = _certainty(pt, (columns > 0).sum(-1, keepdims=True), -1)
    outcome = _certainty(po, (rows > 0).sum(-2, keepdims=True), -2)
    return np.asarray(pt * texture * po * outcome)


class Identity(NamedTuple):
    """The texture of each image (−1 where there is none) and its similarity to the answer: the texturedness."""

    texture: Positions
    similarity: Floats


def texture_identity(probabilities: Array, tav: TAV) -> Identity:
    r"""Return the texture whose row of the TAV is most similar to each answer.

    .. math:: TID(x) = \arg\max_i \cos(\mathrm{softmax}(f(x)),\; TAV_i)

    Parameters
    ----------
    probabilities : array n × m
        Softmax outputs, one row for each image (or one row alone).
    tav : array k × m
        From ``texture_association``.

    Returns
    -------
    Identity
        ``texture``: position of the texture; among equals the first; −1 where the answer shares no class with any row.
        ``similarity``: the largest cosine, in [0, 1].

    Raises
    ------
    UserError
        For logits instead of probabilities, or another number of classes than the TAV has.

    References
    ----------
    Hoak et al., Err on the Side of Texture, equation 3.

    Examples
    --------
    >>> texture_identity(np.array([[0.6, 0.8]]) / 1.4, np.array([[0.0, 0.5], [1.0, 0.0]])).texture.tolist()
    [0]
    """
    p = np.atleast_2d(np.asarray(probabilities))
    matrix = np.asarray(tav, np.float64)
    if p.ndim != 2 or matrix.ndim != 2 or p.shape[1] != matrix.shape[1]:
        raise UserError(
            f"probabilities of shape {p.shape} and a TAV of shape {matrix.shape} have different classes",
            "both must have a column for each class of the same model, in the same order",
        )
    unit = _divide(matrix, np.linalg.norm(matrix, axis=1, keepdims=True)).T
    index, similarity = np.full(len(p), NO_TEXTURE, np.intp), np.zeros(len(p))
    for start in range(0, len(p), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(p)))
        rows = np.asarray(p[part], np.float64)
        _check_probabilities(rows)
        cosines = (rows @ unit) / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        best = first_highest(cosines) if matrix.shape[0] else np.zeros(len(rows), np.intp)
        largest = cosines[np.arange(len(rows)), best] if matrix.shape[0] else np.zeros(len(rows))
        similarity[part] = np.clip(largest, 0, 1)
        index[part] = np.where(largest > 0, best, NO_TEXTURE)
    return Identity(index, similarity)


def count(textures: Array, classes: Array, k: int, m: int) -> Counts:
    """Return how many pictures of each texture were answered with each class, k × m. Counts of shards add up."""
    cell = np.asarray(textures, np.int64) * m + np.asarray(classes, np.int64)
    if len(cell) and (cell.min() < 0 or np.max(textures) >= k or np.max(classes) >= m):
        raise UserError(f"textures and classes must be positions below {k} and {m}")
    return np.bincount(cell, minlength=k * m).reshape(k, m)


class Pair(NamedTuple):
    """A texture, a class, and their association."""

    texture: int
    label: int
    value: float


def top_pairs(tav: TAV, number: int = 50) -> list[Pair]:
    """Return the strongest associations, strongest first; pairs without any association are left out."""
    flat = np.asarray(tav).ravel()
    order = np.argsort(-flat.round(12), kind="stable")[:number]  # the last digits depend on the CPU
    width = np.asarray(tav).shape[1]
    return [Pair(int(i) // width, int(i) % width, float(flat[i])) for i in order if flat[i] > 0]


def associated_texture(tav: TAV) -> Positions:
    """Return the texture that each class is most associated with, the first of equals; −1 without any association."""
    matrix = np.asarray(tav)
    if not len(matrix):
        return np.full(matrix.shape[1], NO_TEXTURE, np.intp)
    return np.where(matrix.max(0) > 0, first_highest(matrix.T), NO_TEXTURE)


def resampled(counts: Array, *, seed: int = 0, resamples: int = 1000) -> Iterator[TAV]:
    """Yield the TAV of each resample: other pictures of the same textures, as many of each.

    Only the answers of each texture are drawn anew (a multinomial for each row), which is the bootstrap over pictures
    with the textures held fixed. Yields batches of TAV, shape b × k × m.
    """
    n = np.asarray(_validated(counts), np.int64)
    rng = child_generator(seed, "texture_association")
    totals = n.sum(axis=1)
    shares = _divide(n.astype(np.float64), totals[:, None].astype(np.float64))
    step = max(1, int(4_000_000 // max(n.size, 1)))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = np.zeros((size, *n.shape))
        for i in np.flatnonzero(totals):
            drawn[:, i] = rng.multinomial(totals[i], shares[i], size=size)
        yield texture_association(drawn)


def association_intervals(values: Floats, draws: Floats, pictures: Array, level: float = 0.95) -> list[Interval]:
    """Return the interval of each association for other pictures of the same textures, *as many of each*.

    Few pictures underestimate both entropies, so an association is larger than that of endless pictures. By how much
    cannot be told from few pictures, because classes that none of them was answered with leave no trace; so no interval
    holds that value. What other pictures would give can be told: the spread of resamples, about the value, symmetric on
    the logit scale, with Student's t.

    Parameters
    ----------
    values : float array p
        Observed associations.
    draws : float array resamples × p
        The same pairs in each resample.
    pictures : int array p
        How many pictures of its texture each rests on.
    level : float
        Of confidence.
    """
    method = of_resamples("spread of * resamples", len(draws))
    spread = draws.std(axis=0, ddof=1) if len(draws) > 1 else np.zeros(len(values))
    return [
        replace(
            bounded_interval(float(value), float(error) ** 2, float(n) - 1, "images", (0.0, 1.0), level), method=method
        )
        if error > 1e-10 and n > 1
        else undefined("images", "resamples of so few pictures are all alike", level)
        for value, error, n in zip(values, spread, pictures)
    ]


def _validated(counts: Array) -> Floats:
    n = np.asarray(counts, np.float64)
    if n.ndim < 2:
        raise UserError(f"counts must be a matrix textures × classes; got shape {n.shape}")
    if not np.isfinite(n).all() or (n < 0).any():
        raise UserError("counts must be finite and not negative", "count pictures with top-1 class; do not pass logits")
    return n


def _certainty(p: Floats, ways: Array, axis: int) -> Floats:
    """Return 1 + Σ p·log p / log ways along an axis: 1 for a single way, 0 for equal ones, not what rounding leaves."""
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    raw = -(p * logs).sum(axis, keepdims=True)
    base = np.log(np.maximum(ways, 1).astype(np.float64))
    certainty = 1 - _divide(raw, np.broadcast_to(base, raw.shape))
    return np.where(certainty < ROUNDING, 0, certainty)


def _divide(top: Floats, bottom: Floats) -> Floats:
    bottom = np.broadcast_to(bottom, top.shape)
    return np.divide(top, bottom, out=np.zeros_like(top, dtype=np.float64), where=bottom > 0)


def _check_probabilities(rows: Floats) -> None:
    sums = rows.sum(axis=1)
    if not np.isfinite(sums).all():
        raise UserError("probabilities contain NaN or infinity")
    if rows.min(initial=0) < 0 or np.abs(sums - 1).max(initial=0) > 0.01:
        worst = int(np.abs(sums - 1).argmax())
        raise UserError(
            f"these are not probabilities: lowest value {rows.min():.3g}, row {worst} sums to {sums[worst]:.3g}; "
            "they look like logits",
            "apply softmax first: cuebench.labels.softmax(logits)",
        )


METRIC = Metric(
    name="texture_association",
    title="Texture association value (TAV)",
    formula=(
        "TAV_ij = PT_ij·(1 − TH_i)·PO_ij·(1 − OH_j); N_ij = pictures of texture i answered with class j, "
        "PT = N / row sums, PO = N / column sums, TH_i = −Σ_j PT·log_c PT, OH_j = −Σ_i PO·log_k PO, "
        "k textures with a picture, c classes that were answered"
    ),
    denominator="all answered pictures of the texture (PT), all pictures answered with the class (PO)",
    compute=texture_association,
    reference="Hoak, Sheatsley & McDaniel, Err on the Side of Texture: Texture Bias on Real Data, equations 1 and 2",
    caveats=(
        "Only the top-1 class counts: a texture that is never answered with certainty still has associations.",
        "Both entropies depend on how many textures and classes there are: values of two texture sets do not compare.",
        "Few pictures make associations too large (by .10 with 30 pictures of a texture in simulations). The interval "
        "is for as many other pictures of the same textures: compare values of equal numbers of pictures only.",
        "A pair is listed because it is strong: of many pairs, the strongest are strong by chance too.",
        "The authors' code adds 1e-9 inside the logarithms; here 0·log 0 is 0 exactly (differences below 1e-7).",
        "One texture or one class: its entropy is 0, because nothing is uncertain. A class never answered, and a "
        "texture without a picture, have TAV 0.",
    ),
    chance="close to 0: answers without a preference make both entropies 1",
    higher_is="a stronger and more exclusive association of the texture with the class",
    needs=("logits",),
)
