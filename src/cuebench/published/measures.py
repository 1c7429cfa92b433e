"""Published columns by the weights of the models, for placing runs and for the agreement of protocols.

Models are matched by their weights, as the reviewed lists of the suites name them, never by architecture: timm's and
torchvision's ResNet-50 are two models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cuebench.observers.adapters.suite import members
from cuebench.published.tables import column

PREFERENCE = "refined_bias/shape_preference"


@dataclass(frozen=True)
class Measure:
    """One number of several models.

    Parameters
    ----------
    name : str
        ``paper/quantity``, or ``protocol/condition/metric`` of the user's own runs.
    protocol : str
        The protocol of cuebench that measures the same.
    values : mapping of weights to value
        Over all tables of the paper that have it.
    labels : mapping of weights to str
        The name that the paper prints.
    paper : str
        Where it was published; empty: the user's own.
    """

    name: str
    protocol: str
    values: Mapping[str, float]
    labels: Mapping[str, str]
    paper: str = ""


class PublishedColumn(NamedTuple):
    """A column of one or several tables, and the protocol of cuebench that measures the same."""

    name: str
    protocol: str
    tables: tuple[str, ...]
    condition: str
    metric: str


SUITES = {
    ("refined_bias", "B"): "refined_bias/architectures",
    ("refined_bias", "C"): "refined_bias/strategies",
    ("cue_decomposition", "VIII"): "cue_decomposition/classification",
    ("texture_association", "I"): "texture_association",
    ("texture_association", "II"): "texture_association",
    ("texture_association", "III"): "texture_association",
}
"""Which reviewed list names the weights of a table's models."""

_RB, _CD, _TA = ("B", "C"), ("VIII",), ("I",)
_ROBUSTNESS, _ASSOCIATION = "corruption_robustness", "texture_association"
COLUMNS = (
    PublishedColumn("refined_bias/shape_sens", "refined_bias", _RB, "refined_bias", "shape_sens"),
    PublishedColumn("refined_bias/texture_sens", "refined_bias", _RB, "refined_bias", "texture_sens"),
    PublishedColumn("refined_bias/cue_conflict_16-way", "cue_conflict", _RB, "cue_conflict/partial", "shape_bias"),
    PublishedColumn("refined_bias/cue_conflict_1000-way", "cue_conflict", _RB, "cue_conflict/full", "shape_bias"),
    PublishedColumn("refined_bias/accuracy", "imagenet_accuracy", _RB, "imagenet", "in_domain"),
    PublishedColumn("cue_decomposition/cue_conflict", "cue_conflict", _CD, "cue_conflict", "shape_bias"),
    PublishedColumn("cue_decomposition/Q_S", "cue_decomposition", _CD, "accuracy", "Q_S"),
    PublishedColumn("cue_decomposition/Q_T", "cue_decomposition", _CD, "accuracy/voronoi", "Q_T"),
    PublishedColumn("cue_decomposition/S_cd", "cue_decomposition", _CD, "voronoi", "S_cd"),
    PublishedColumn("cue_decomposition/R_cd", "cue_decomposition", _CD, "voronoi", "R_cd"),
    PublishedColumn("cue_decomposition/robustness", _ROBUSTNESS, _CD, "relative_robustness", "mean"),
    PublishedColumn(f"{_ASSOCIATION}/accuracy_correlation", _ASSOCIATION, _TA, "label", "accuracy_correlation"),
    PublishedColumn(f"{_ASSOCIATION}/number_of_textures", _ASSOCIATION, _TA, "label", "mean_number_of_textures"),
)


@cache
def measures() -> dict[str, Measure]:
    """Return all published measures by name, the preference of REFINED-BIAS among them."""
    by_name = {}
    for name, protocol, tables, condition, metric in COLUMNS:
        paper = name.partition("/")[0]
        values: dict[str, float] = {}
        labels: dict[str, str] = {}
        for table in tables:
            weights = weights_of(paper, table)
            for model, entry in column(paper, table, condition, metric).items():
                # Where two tables have the same weights (the ResNet-50 of B and C) the first one counts.
                if model in weights and weights[model] not in values:
                    values[weights[model]], labels[weights[model]] = entry.value, model
        by_name[name] = Measure(name, protocol, values, labels, paper)
    shape, texture = by_name["refined_bias/shape_sens"], by_name["refined_bias/texture_sens"]
    preference = {w: v / (v + texture.values[w]) for w, v in shape.values.items()}
    by_name[PREFERENCE] = Measure(PREFERENCE, "refined_bias", preference, shape.labels, "refined_bias")
    return by_name


def weights_of(paper: str, table: str) -> dict[str, str]:
    """Return printed name → weights of the models of a table; those in no list (trained by the authors) are absent."""
    return {m.model: m.weights for m in members(SUITES[paper, table])}


def shared(first: Measure, second: Measure) -> list[str]:
    """Return the weights that both measures have."""
    return [w for w in first.values if w in second.values]
