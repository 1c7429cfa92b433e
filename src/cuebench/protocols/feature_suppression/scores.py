"""Relative accuracies by level, suppression and kind, and the shape reliance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics.relative_accuracy import METRIC, relative_accuracy
from cuebench.metrics.shape_reliance import shape_reliance
from cuebench.protocols import correctness
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.correctness import Qualities
from cuebench.protocols.feature_suppression.suppressions import LEVELS, ORIGINAL, kinds_of
from cuebench.protocols.trials import Asked
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import derived, missing, part_of
from cuebench.statistics.sums import mean_estimate
from cuebench.tables.engine import Result
from cuebench.types import Estimate


def add_scores(result: Result, responses: Responses, options: ScoreOptions) -> None:
    """Add reliance, kinds and suppressions of one observer; then every level and pair, then the accuracies.

    Parameters
    ----------
    result : Result
        To be added to.
    responses : Responses
        Of one observer.
    options : ScoreOptions
        Seed and resamples.
    """
    observer = _accuracies(responses, options)
    accuracies = observer.by_condition
    suppressed = [c for c in accuracies if c != ORIGINAL] if ORIGINAL in accuracies else []
    levels = _levels(suppressed)
    by_name = {name: _relative(accuracies, conditions) for name, conditions in levels.items()}
    members = {kind: [name for name in names if name in by_name] for kind, names in LEVELS.items()}
    by_kind = {
        kind: mean_estimate([by_name[n] for n in names], METRIC.bounds) for kind, names in members.items() if names
    }
    pictures = {kind: [c for name in names for c in levels[name]] for kind, names in members.items()}

    if {"shape", "texture"} <= set(by_kind):
        # Losses near 0 have a sign by chance: the share of one in both is no smooth function of them.
        losses = by_kind["shape"], by_kind["texture"]
        reliance = part_of(shape_reliance, lambda s, t: 1 - s, lambda s, t: 2 - s - t, *losses)
        observer.add(result, "all", "shape_reliance", reliance, pictures["shape"] + pictures["texture"])
    else:
        absent = missing("needs the unchanged photographs and suppressions of shape and of texture", "images")
        result.add(responses, "all", "shape_reliance", absent.noting(observer.measure))
    for kind, estimate in by_kind.items():
        observer.add(result, f"suppress={kind}", "relative_accuracy", estimate, pictures[kind])
    for name, estimate in by_name.items():
        if name not in accuracies:  # a suppression without levels has one row only
            observer.add(result, name, "relative_accuracy", estimate, levels[name])
    for condition in suppressed:
        observer.add(result, condition, "relative_accuracy", _relative(accuracies, [condition]), [condition])
    for condition, estimate in accuracies.items():
        observer.add(result, condition, "accuracy", estimate, [condition])


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the shape reliance as a function of sums over photographs."""
    correct = _correct(responses)
    levels = _levels([c for c in correct.conditions if c != ORIGINAL])
    by_kind = {kind: [levels[name] for name in LEVELS[kind] if name in levels] for kind in ("shape", "texture")}
    if asked.condition != "all" or ORIGINAL not in correct.conditions or not all(by_kind.values()):
        return None
    conditions = [ORIGINAL, *(c for names in by_kind.values() for members in names for c in members)]

    def reliance(qualities: Sequence[Array]) -> Array:
        of = dict(zip(conditions, qualities))
        without = (
            np.mean([relative_accuracy([of[c] for c in members], [of[ORIGINAL]]) for members in names], axis=0)
            for names in by_kind.values()
        )
        return shape_reliance(*without)

    return correctness.quality_sums(correct, conditions, reliance)


def _levels(suppressed: Sequence[str]) -> dict[str, list[str]]:
    """Return suppression → its conditions; pairs of suppressions are left out."""
    levels: dict[str, list[str]] = {}
    for condition in suppressed:
        name = condition.partition("/")[0]
        if len(kinds_of(name)) == 1:
            levels.setdefault(name, []).append(condition)
    return levels


def _correct(responses: Responses) -> correctness.Table:
    conditions = list(dict.fromkeys(s.condition for s in responses.stimuli))
    return correctness.table(responses, correctness.correct_answers(responses), conditions)


def _accuracies(responses: Responses, options: ScoreOptions) -> Qualities:
    """Return condition → accuracy, on the photographs of which any picture was answered."""
    correct = _correct(responses)
    answered = np.flatnonzero(correct.shown.any(axis=1))
    images = [correct.images[i] for i in answered]
    correct = correct._replace(images=images, shown=correct.shown[answered], values=correct.values[answered])
    number = f"{len(images):,} photograph{'s' * (len(images) != 1)}"
    return Qualities(responses, correctness.accuracies(correct), number)


def _relative(accuracies: Mapping[str, Estimate], conditions: Sequence[str]) -> Estimate:
    """Return the relative accuracy, averaged over some levels."""
    levels = [accuracies[c] for c in conditions]
    return derived(
        lambda original, *suppressed: relative_accuracy(suppressed, [original]),
        accuracies[ORIGINAL],
        *levels,
        n=sum(level.n for level in levels),
        bounds=METRIC.bounds,
    )
