"""Confusion by class: which class is answered to each shape class or texture class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cuebench.arrays import Counts, Floats
from cuebench.errors import UserError
from cuebench.labels.decisions import NONE, Codes, named
from cuebench.metrics.base import Metric


def count(response: Codes, shape: Codes, texture: Codes, classes: int) -> Counts:
    """Return the counts shape × texture × response of trials.

    Parameters
    ----------
    response, shape, texture : int arrays, one value for each trial
        Positions of classes; −1 is a response outside all of them.
    classes : int
        Number of classes. The response of this position is 'none'.
    """
    if not len(response) == len(shape) == len(texture):
        raise UserError(f"{len(response)} responses, {len(shape)} shape classes, {len(texture)} texture classes")
    for name, codes, lowest in (("response", response, NONE), ("shape", shape, 0), ("texture", texture, 0)):
        if len(codes) and not lowest <= codes.min() <= codes.max() < classes:
            raise UserError(f"{name} class out of range: {codes.min()} … {codes.max()} with {classes} classes")
    counts = np.zeros((classes, classes, classes + 1), np.int64)
    np.add.at(counts, (shape, texture, np.where(response == NONE, classes, response)), 1)
    return counts


def confusion(
    decisions: Sequence[str],
    shape: Sequence[str],
    texture: Sequence[str],
    classes: Sequence[str],
    by: Literal["shape", "texture"] = "shape",
) -> Floats:
    """Return how often each class was answered to each class.

    Parameters
    ----------
    decisions, shape, texture : sequences of str, one value for each trial
        The answer and the two classes.
    classes : sequence of str
        Order of rows and columns; one more column holds the answers outside all classes.
    by : ``shape`` or ``texture``
        Which truth the rows stand for.

    Returns
    -------
    float array classes × (classes + 1)
        Rows add up to 1; a class without trials is a row of NaN.

    Examples
    --------
    >>> confusion(["cat", "dog", "na", "cat"], ["cat"] * 4, ["dog"] * 4, ["cat", "dog"])[0].tolist()
    [0.5, 0.25, 0.25]
    """
    response, shapes, textures = (named(values, classes) for values in (decisions, shape, texture))
    counts = count(response, shapes, textures, len(classes))
    table = counts.sum(axis=1 if by == "shape" else 0).astype(np.float64)
    trials = table.sum(axis=1, keepdims=True)
    return np.divide(table, trials, out=np.full(table.shape, np.nan), where=trials > 0)


METRIC = Metric(
    name="confusion",
    title="Confusion by class",
    formula="C[c, r] = share of the trials with shape (texture) class c that were answered r",
    denominator="answered trials with that class, aligned ones included; the last column: no class answered",
    reference="Geirhos et al. 2019, arXiv:1811.12231",
    compute=confusion,
    caveats=("A table, not a score: the run folder holds it as counts by shape, texture and response.",),
    bounds=(0.0, 1.0),
    chance="1 / number of classes",
    higher_is="is answered more often",
    needs=("decisions",),
)
