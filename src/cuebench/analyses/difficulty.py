"""Relative task difficulty: how much better shape is recognised than texture in a benchmark (Kim et al. 2026, A.4).

A preference is easy to read where both tasks are equally hard. The gap is accuracy on shape minus accuracy on texture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cuebench.analyses.class_wise import FEW, Panel
from cuebench.errors import UserError
from cuebench.statistics.estimates import difference_from_intervals, mean
from cuebench.types import Interval, Score

BENCHMARKS: Mapping[str, tuple[str, str]] = {
    "cue_conflict": ("shape_accuracy", "texture_accuracy"),
    "refined_bias": ("shape_top1", "texture_top1"),
}
"""Protocol → its accuracies on shape and on texture."""
GROUPS = {"people": "mean of people", "models": "mean of models"}


class Gap(NamedTuple):
    """Accuracies on both cues and their difference, with its interval and what that is over."""

    benchmark: str
    observer: str
    shape: float
    texture: float
    gap: float
    low: float
    high: float
    over: str
    n: int


def difficulty_gaps(panel: Panel) -> list[Gap]:
    """Return the gap of every observer, of people together and of models together, in every benchmark.

    The interval of a group is over its members, each with the own difference of both accuracies. That of a single
    observer is over images (cue conflict: both accuracies come from the same answers), or the widest that both
    accuracies have (REFINED-BIAS: they come from different images and classes).

    Parameters
    ----------
    panel : Panel
        From `class_wise.read_panel`.
    """
    gaps = []
    for benchmark in BENCHMARKS:
        pairs = _pairs(panel, benchmark)
        for group, members in (("people", panel.people), ("models", panel.models)):
            values = [(pairs[o][0].value, pairs[o][1].value) for o in members if o in pairs]
            if len(values) > 1:
                gaps.append(_of_group(benchmark, group, np.array(values)))
        gaps += [_of_observer(benchmark, o, *pair) for o, pair in pairs.items()]
    if not gaps:
        raise UserError(
            "no observer has an accuracy on shape and on texture", "run refined_bias or cue_conflict with these models"
        )
    return gaps


def _pairs(panel: Panel, benchmark: str) -> dict[str, tuple[Score, Score]]:
    """Return observer → its rows of both accuracies, where both have a value."""
    rows: dict[str, dict[str, Score]] = {}
    for s in panel.scores:
        human = panel.kinds[s.observer] in ("person", "people")
        wanted = panel.view if benchmark == "refined_bias" else panel.space
        # People decide among the classes of the stimuli; a set with other classes than 16 has another name for that.
        own_classes = human or (benchmark == "cue_conflict" and panel.space == FEW)
        fits = s.condition == wanted or (own_classes and "/" not in s.condition)
        if s.protocol == benchmark and s.metric in BENCHMARKS[benchmark] and fits and math.isfinite(s.value):
            rows.setdefault(s.observer, {}).setdefault(s.metric, s)
    shape, texture = BENCHMARKS[benchmark]
    return {o: (of[shape], of[texture]) for o, of in rows.items() if shape in of and texture in of}


def _of_group(benchmark: str, group: str, values: np.ndarray) -> Gap:
    estimate = mean(values[:, 0] - values[:, 1], "")
    (interval,) = estimate.intervals
    shape, texture = values.mean(axis=0).tolist()
    return Gap(benchmark, GROUPS[group], shape, texture, estimate.value, interval.low, interval.high, group, estimate.n)


def _of_observer(benchmark: str, observer: str, shape: Score, texture: Score) -> Gap:
    if benchmark == "cue_conflict":
        interval = _of_same_answers(shape.value, texture.value, shape.n)
    else:
        first, second = ((s.value, s.ci_low, s.ci_high) for s in (shape, texture))
        interval = Interval(*difference_from_intervals(first, second), "images")
    over = "images" if benchmark == "cue_conflict" else shape.ci_kind
    gap = shape.value - texture.value
    return Gap(benchmark, observer, shape.value, texture.value, gap, interval.low, interval.high, over, shape.n)


def _of_same_answers(shape: float, texture: float, n: int) -> Interval:
    """Return the interval of a difference of shares of the same answers: each answer is +1, −1 or 0."""
    variance = max(shape + texture - (shape - texture) ** 2, 0.0) / max(n, 1)
    half = 1.959963984540054 * math.sqrt(variance)
    return Interval(max(-1.0, shape - texture - half), min(1.0, shape - texture + half), "images")
