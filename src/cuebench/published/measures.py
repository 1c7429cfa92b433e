"""What the papers measured of each model, by weights: the ground of placement and of the agreement of protocols.

Models are matched by their weights, as the reviewed lists of the suites name them, never by architecture: timm's and
torchvision's ResNet-50 are two models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from cuebench.observers.adapters.suite import members
from cuebench.published.tables import column

RESIZED = "images resized to 256 and cut to 224"


@dataclass(frozen=True)
class Measure:
    """One published column.

    Parameters
    ----------
    name : str
        ``paper/what``.
    protocol : str
        The protocol of cuebench that measures the same.
    values : mapping of weights to value
        Over all tables of the paper that have it.
    labels : mapping of weights to str
        The name that the paper prints.
    shown : str
        How the paper showed the images.
    """

    name: str
    protocol: str
    values: Mapping[str, float]
    labels: Mapping[str, str]
    shown: str = RESIZED


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
_COLUMNS: tuple[tuple[str, str, str, Sequence[str], str, str], ...] = (
    ("refined_bias/shape_sens", "refined_bias", "refined_bias", _RB, "refined_bias", "shape_sens"),
    ("refined_bias/texture_sens", "refined_bias", "refined_bias", _RB, "refined_bias", "texture_sens"),
    ("refined_bias/cue_conflict_partial", "cue_conflict", "refined_bias", _RB, "cue_conflict/partial", "shape_bias"),
    ("refined_bias/cue_conflict_full", "cue_conflict", "refined_bias", _RB, "cue_conflict/full", "shape_bias"),
    ("refined_bias/accuracy", "imagenet_accuracy", "refined_bias", _RB, "imagenet", "in_domain"),
    ("cue_decomposition/cue_conflict", "cue_conflict", "cue_decomposition", _CD, "cue_conflict", "shape_bias"),
    ("cue_decomposition/Q_S", "cue_decomposition", "cue_decomposition", _CD, "accuracy", "Q_S"),
    ("cue_decomposition/Q_T", "cue_decomposition", "cue_decomposition", _CD, "accuracy/voronoi", "Q_T"),
    ("cue_decomposition/S_cd", "cue_decomposition", "cue_decomposition", _CD, "voronoi", "S_cd"),
    ("cue_decomposition/R_cd", "cue_decomposition", "cue_decomposition", _CD, "voronoi", "R_cd"),
    (
        "cue_decomposition/robustness",
        "corruption_robustness",
        "cue_decomposition",
        _CD,
        "relative_robustness",
        "mean",
    ),
    (
        "texture_association/accuracy_correlation",
        "texture_association",
        "texture_association",
        _TA,
        "label",
        "accuracy_correlation",
    ),
    (
        "texture_association/number_of_textures",
        "texture_association",
        "texture_association",
        _TA,
        "label",
        "mean_number_of_textures",
    ),
)


@cache
def measures() -> dict[str, Measure]:
    """Return all published measures by name, the preference of REFINED-BIAS among them."""
    found = {}
    for name, protocol, paper, tables, condition, metric in _COLUMNS:
        values: dict[str, float] = {}
        labels: dict[str, str] = {}
        for table in tables:
            weights = weights_of(paper, table)
            for model, entry in column(paper, table, condition, metric).items():
                # Where two tables have the same weights (the ResNet-50 of B and C) the first one counts.
                if model in weights and weights[model] not in values:
                    values[weights[model]], labels[weights[model]] = entry.value, model
        found[name] = Measure(name, protocol, values, labels)
    shape, texture = found["refined_bias/shape_sens"], found["refined_bias/texture_sens"]
    preference = {w: v / (v + texture.values[w]) for w, v in shape.values.items()}
    found["refined_bias/shape_preference"] = Measure(
        "refined_bias/shape_preference", "refined_bias", preference, shape.labels
    )
    return found


def weights_of(paper: str, table: str) -> dict[str, str]:
    """Return printed name → weights of the models of a table; those in no list (trained by the authors) are absent."""
    return {m.model: m.weights for m in members(SUITES[paper, table])}


def shared(first: Measure, second: Measure) -> list[str]:
    """Return the weights that both measures have."""
    return [w for w in first.values if w in second.values]
