"""Texture association layer by layer: in which layer do textures begin to stand for classes?

The paper looks at outputs alone and names this as what is left to do. A layer has no classes of its own, so they are
read from it: the class of a picture is the one whose clean photographs (those that the network answers with that class)
have the nearest mean feature, by the cosine. Counts, TAV and intervals then are those of the outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cuebench.arrays import Array, Counts
from cuebench.labels.decisions import first_highest
from cuebench.metrics.texture_association import TAV, association_intervals, count, resampled, texture_association
from cuebench.metrics.texture_confidence import top1
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.texture_association.measure import CLEAN, TEXTURE, Measured
from cuebench.protocols.texture_association.scores import MOST_RESAMPLES
from cuebench.statistics.estimates import missing
from cuebench.tables.engine import Result
from cuebench.types import Estimate

if TYPE_CHECKING:
    import pyarrow as pa

LAYERS = "features"
METRIC = "texture_association"
OUTPUT = "output"
_ROWS = 2048


def add_layers(result: Result, measured: Measured, options: ScoreOptions) -> None:
    """Add, for each layer and for the outputs, the mean over textures of the strongest association of each.

    The table ``layers`` has the strongest class of each texture in each layer.
    """
    columns = [c for c in measured.responses.columns if c == LAYERS or c.startswith(f"{LAYERS}:")]
    if CLEAN not in measured.photographs:
        reason = "classes are read from layers by clean photographs, and there are none: put them in imagenet_val"
        for column in columns:
            result.add(measured.responses, f"layer={_layer(column)}", METRIC, missing(reason, "images"))
        return
    matrices = {_layer(column): _counts(measured, column) for column in columns}
    matrices[OUTPUT] = measured.answers.counts
    for layer, counts in matrices.items():
        result.add(measured.responses, f"layer={layer}", METRIC, _strongest(counts, options))
    result.tables["layers"] = _table(measured, matrices)


def _layer(column: str) -> str:
    return column.partition(":")[2] or "penultimate"


def _counts(measured: Measured, column: str) -> Counts:
    """Return pictures of each texture by the class that is read from a layer."""
    responses, classes = measured.responses, len(measured.labels)
    features, part = responses.columns[column], responses.truth("condition")
    sums = np.zeros((classes, features.shape[1]))
    for rows in _pieces(part == CLEAN):
        answered, _ = top1(responses.columns["logits"][rows])
        np.add.at(sums, answered, _unit(features[rows]))
    means = _unit(sums)
    known = np.flatnonzero(np.linalg.norm(sums, axis=1) > 0)
    position = {name: i for i, name in enumerate(measured.textures)}
    code = np.array([position.get(s.texture, -1) for s in responses.stimuli], np.intp)[responses.stimulus]
    counts = np.zeros((len(measured.textures), classes), np.int64)
    for rows in _pieces(part == TEXTURE):
        nearest = known[first_highest(_unit(features[rows]) @ means[known].T)]
        counts += count(code[rows], nearest, *counts.shape)
    return counts


def _pieces(chosen: Array) -> list[Array]:
    rows = np.flatnonzero(chosen)
    return [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]


def _unit(rows: Array) -> Array:
    rows = np.asarray(rows, np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def _strongest(counts: Counts, options: ScoreOptions) -> Estimate:
    """Return the mean over textures of the largest association of each; the interval is for as many other pictures."""
    shown = counts.sum(axis=1) > 0
    if not shown.any():
        return missing("no picture of a texture was answered", "images")
    value = _mean_largest(texture_association(counts), shown)
    resamples = min(options.resamples, MOST_RESAMPLES)
    batches = resampled(counts, seed=options.seed, resamples=resamples)
    draws = np.concatenate([_mean_largest(batch, shown) for batch in batches])
    (interval,) = association_intervals(np.array([value]), draws[:, None], counts.sum(keepdims=True).ravel())
    note = f"mean over {int(shown.sum())} textures of the strongest association of each"
    return Estimate(float(value), int(counts.sum()), (interval,)).noting(note)


def _mean_largest(tav: TAV, shown: Array) -> Array:
    return np.asarray(tav.max(axis=-1)[..., shown].mean(axis=-1))


def _table(measured: Measured, matrices: dict[str, Counts]) -> pa.Table:
    import pyarrow as pa

    rows = []
    for layer, counts in matrices.items():
        tav = texture_association(counts)
        for i, texture in enumerate(measured.textures):
            if counts[i].sum():
                j = int(first_highest(tav[i]))
                label, share = measured.labels.names[j], float(counts[i, j] / counts[i].sum())
                rows.append((measured.responses.observer, layer, texture, label, share, float(tav[i, j])))
    names = ("observer", "layer", "texture", "label", "share", "tav")
    return pa.table({name: list(column) for name, column in zip(names, zip(*rows))})
