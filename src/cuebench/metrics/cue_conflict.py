"""Cue conflict: shape bias, shape and texture accuracy, decided fraction. Ratios of the same trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.errors import UserError
from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import Terms

_2019 = "Geirhos et al. 2019, ImageNet-trained CNNs are biased towards texture, ICLR; arXiv:1811.12231"
_CONFLICT = "all answered conflict trials (shape class ≠ texture class), decided or not"


class Outcomes(NamedTuple):
    """What happened in each trial of a cue-conflict experiment.

    ``conflict``: shape class and texture class differ. ``shape`` and ``texture``: the answer is that class (never both,
    and never in an aligned trial). A conflict trial that is neither is undecided.
    """

    conflict: Bools
    shape: Bools
    texture: Bools

    @property
    def decided(self) -> Bools:
        """Trials answered by one of the two cues."""
        return self.shape | self.texture


def outcomes(
    decisions: Sequence[Any] | Array, shape: Sequence[Any] | Array, texture: Sequence[Any] | Array
) -> Outcomes:
    """Compare answers with the two classes of each trial.

    Parameters
    ----------
    decisions, shape, texture : arrays of str or int, one value for each trial
        The answer, the shape class and the texture class: class names, or positions of classes (−1: an answer outside
        all classes). An answer that is neither class is undecided.

    Raises
    ------
    UserError
        Where the lengths differ, an array is not one-dimensional, or names are compared with positions.

    Examples
    --------
    >>> outcomes(["cat", "dog", "na"], ["cat", "cat", "cat"], ["dog", "dog", "dog"]).decided.tolist()
    [True, True, False]
    """
    answer, shapes, textures = (
        _codes(name, values) for name, values in (("decisions", decisions), ("shape", shape), ("texture", texture))
    )
    if not len(answer) == len(shapes) == len(textures):
        raise UserError(f"{len(answer)} decisions, {len(shapes)} shape classes, {len(textures)} texture classes")
    kinds = {a.dtype.kind in "US" for a in (answer, shapes, textures) if len(a)}
    if len(kinds) > 1:
        raise UserError("decisions and classes must be all names or all positions", f"got {answer.dtype}")
    conflict = shapes != textures
    return Outcomes(conflict, conflict & (answer == shapes), conflict & (answer == textures))


def _codes(name: str, values: Sequence[Any] | Array) -> Array:
    """Return a one-dimensional array of names or positions."""
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = array.astype(np.str_)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "USiu"):
        raise UserError(f"{name} must be a list of class names or positions; got {array.dtype} of shape {array.shape}")
    return array


shape_bias = Metric(
    name="shape_bias",
    title="Shape bias",
    formula="n_shape / (n_shape + n_texture)",
    denominator="conflict trials (shape class ≠ texture class) answered with the shape class or the texture class",
    reference=_2019,
    trials=outcomes,
    terms=lambda trials: Terms(trials.shape, trials.decided),
    caveats=(
        "Read it with the decided fraction: about 40 % of a network's trials are answered by neither cue and drop out.",
        "It is not an accuracy: an observer that is wrong in most trials can have a shape bias of 1.",
        "Aligned trials (80 of the 1,280 published images) never count.",
        "The images share 160 shape sources and 48 texture sources: the interval over images is about three times too "
        "narrow for a statement about new textures.",
    ),
    chance="0.5 (a guess hits either class equally often)",
    higher_is="answers more by shape",
    needs=("decisions",),
)


def _cue_accuracy(cue: str, other: str, terms: Any, caveat: str) -> Metric:
    return Metric(
        name=f"{cue}_accuracy",
        title=f"{cue.capitalize()} accuracy",
        formula=f"n_{cue} / n_conflict",
        denominator=_CONFLICT,
        reference="Geirhos et al. 2019, arXiv:1811.12231; Geirhos et al. 2021, arXiv:2106.07411",
        trials=outcomes,
        terms=terms,
        caveats=("Shape and texture accuracy add up to the decided fraction.", caveat),
        chance="1 / number of classes (0.0625 for 16)",
        higher_is=f"recognises more {cue}s in spite of a conflicting {other}",
        needs=("decisions",),
    )


shape_accuracy = _cue_accuracy(
    "shape",
    "texture",
    lambda trials: Terms(trials.shape, trials.conflict),
    "A trial that a person left unanswered counts as wrong; a stimulus that was never shown is excluded.",
)
texture_accuracy = _cue_accuracy(
    "texture",
    "shape",
    lambda trials: Terms(trials.texture, trials.conflict),
    "By class it is given by *texture* class; only 48 texture sources, three for each class, stand behind it.",
)

decided_fraction = Metric(
    name="decided_fraction",
    title="Decided fraction",
    formula="(n_shape + n_texture) / n_conflict",
    denominator="all answered conflict trials (shape class ≠ texture class)",
    reference="cuebench; the denominator of the shape bias of Geirhos et al. 2019, arXiv:1811.12231",
    trials=outcomes,
    terms=lambda trials: Terms(trials.decided, trials.conflict),
    caveats=(
        "The shape bias rests on this share of the trials only, and it differs between observers.",
        "In the observer's whole label space it is smaller: the top-1 class must be a member of either class.",
    ),
    chance="2 / number of classes (0.125 for 16)",
    higher_is="answers more often by one of the two cues",
    needs=("decisions",),
)

METRICS = (shape_bias, shape_accuracy, texture_accuracy, decided_fraction)
