"""Where a run stands among the published models: percentiles and nearest neighbours, or why it cannot be compared.

A number is compared only with numbers made in the same way: the same protocol version, the complete published stimuli,
the paper's own way of showing them and, for S_cd, the paper's population H. Everything else is refused by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.protocols.base import PARTIAL
from cuebench.protocols.cue_conflict import RESIZED_NOTE
from cuebench.protocols.headline import measured, one_row_each
from cuebench.published.measures import PREFERENCE, Measure, measures
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores, read_stimuli
from cuebench.statistics.intervals import child_generator
from cuebench.types import Score, StimulusSet

NEIGHBOURS = 3
DRAWS = 4000
PLANE = ("refined_bias/shape_sens", "refined_bias/texture_sens")
Z_95 = 1.959964

Sets = Mapping[tuple[str, str], StimulusSet]
"""Protocol and observer → the stimuli that were shown."""


@dataclass(frozen=True)
class Rule:
    """Which number of a protocol may be compared with which published column.

    Parameters
    ----------
    protocol, version : str, int
        As declared by the protocol.
    metric, condition : str
        As in its scores; in a condition ``*`` stands for any text. Of several rules the first that fits counts.
    measure : str
        Name of the published measure.
    images : int
        Number of images in the published set.
    counted : str
        Condition of the stimuli that are counted as images; empty: all.
    refuse : str
        Why the number cannot be compared, whatever the stimuli; empty: it can.
    shown : str
        Note of the stimuli with which it can all the same: they were shown as in the paper.
    """

    protocol: str
    version: int
    metric: str
    condition: str
    measure: str
    images: int
    counted: str = ""
    refuse: str = ""
    shown: str = ""


_WHOLE = "other preprocessing: view native shows the whole image, the paper resized it to 256 and cut 224"
_UNSIZED = (
    "other preprocessing: view native does not resize, the published columns are of images resized to 256 and cut to "
    "224 (ResNet-50 V1: .2139 without, .2228 with); run it with --set cue_conflict.view=resized"
)
_POPULATION = "another population H: s and t must be those of the 43 models of Table VIII"
_RB, _CC, _CD = ("refined_bias", 3), ("cue_conflict", 3), ("cue_decomposition", 3)  # since 1 the values are the same
RULES = (
    Rule(*_RB, "shape_sensitivity", "faithful", PLANE[0], 6000),
    Rule(*_RB, "texture_sensitivity", "faithful", PLANE[1], 6000),
    Rule(*_RB, "shape_preference", "faithful", PREFERENCE, 6000),
    Rule(*_RB, "shape_sensitivity", "native", PLANE[0], 6000, refuse=_WHOLE),
    Rule(*_RB, "texture_sensitivity", "native", PLANE[1], 6000, refuse=_WHOLE),
    Rule(*_RB, "shape_preference", "native", PREFERENCE, 6000, refuse=_WHOLE),
    Rule(*_CC, "shape_bias", "16-way", "refined_bias/cue_conflict_16-way", 1280, "", _UNSIZED, RESIZED_NOTE),
    Rule(*_CC, "shape_bias", "1000-way", "refined_bias/cue_conflict_1000-way", 1280, "", _UNSIZED, RESIZED_NOTE),
    Rule(*_CD, "quality_shape", "eed", "cue_decomposition/Q_S", 1200, "original"),
    Rule(*_CD, "quality_texture", "voronoi", "cue_decomposition/Q_T", 1200, "original"),
    Rule(*_CD, "robustness_cd", "eed+voronoi", "cue_decomposition/R_cd", 1200, "original"),
    Rule(*_CD, "shape_bias_cd", "eed+voronoi H=heinert2025", "cue_decomposition/S_cd", 1200, "original"),
    Rule(*_CD, "shape_bias_cd", "eed+voronoi H=*", "cue_decomposition/S_cd", 1200, "original", _POPULATION),
)


@dataclass(frozen=True)
class Position:
    """One score among the published ones. ``percentile``: share of the published models below it, ties half."""

    observer: str
    measure: str
    value: float
    low: float
    high: float
    percentile: float
    percentile_low: float
    percentile_high: float
    models: int


@dataclass(frozen=True)
class Neighbour:
    """A published model near an observer; ``probability``: how often it is the nearest when the scores are redrawn."""

    observer: str
    by: str
    paper: str
    model: str
    weights: str
    distance: float
    probability: float


@dataclass
class Placement:
    """All that could be compared, and every reason why something could not."""

    positions: list[Position] = field(default_factory=list)
    neighbours: list[Neighbour] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)

    def rows(self) -> list[dict[str, str]]:
        """Return it as lines of one table."""
        lines = []
        for p in self.positions:
            percentile = f"{p.percentile:.0f} [{p.percentile_low:.0f}, {p.percentile_high:.0f}] of {p.models} models"
            value = f"{p.value:.4f} [{p.low:.4f}, {p.high:.4f}]"
            lines.append({"observer": p.observer, "measure": p.measure, "value": value, "percentile": percentile})
        for n in self.neighbours:
            near = f"{n.model} at {n.distance:.4f}; nearest in {n.probability:.0%} of the redrawn scores"
            measure = f"nearest by {n.by} ({n.paper})"
            lines.append({"observer": n.observer, "measure": measure, "value": near, "percentile": ""})
        return lines


def place(run: str | Path) -> Placement:
    """Place every observer of a run among the published models.

    Parameters
    ----------
    run : path
        A run folder with scores.

    Returns
    -------
    Placement
        Percentiles with the range that the score's widest interval gives; the nearest models on the plane of shape and
        texture sensitivity and by the profile over all comparable measures, with how often each is the nearest; and
        the reasons for everything that was not compared.
    """
    folder = Path(run).expanduser()
    record = RunRecord.read(folder)
    manifests = {name: read_stimuli(folder, name) for name in {job.stimuli for job in record.jobs}}
    return placed(read_scores(folder), {(j.protocol, j.observer): manifests[j.stimuli] for j in record.jobs})


def placed(scores: Sequence[Score], sets: Sets) -> Placement:
    """Place scores, given the stimuli that each observer was shown; see `place`."""
    placement = Placement()
    comparable: dict[str, dict[str, Score]] = {}
    reasons: dict[str, None] = {}
    rows = one_row_each(measured(scores))
    for score in rows:
        rule = rule_of(score)
        if rule is None:
            continue
        reason = _reason(score, rule, sets.get((score.protocol, score.observer)))
        if reason:
            reasons[f"{score.protocol} {score.condition}: {reason}"] = None
        else:
            comparable.setdefault(score.observer, {})[rule.measure] = score
    for protocol in dict.fromkeys(s.protocol for s in rows if s.protocol):
        if all(rule_of(s) is None for s in rows if s.protocol == protocol):
            reasons[f"{protocol}: no published table that it could be compared with"] = None
    placement.refused = list(reasons)
    for observer, by_measure in comparable.items():
        placement.positions += [_position(score, measures()[name]) for name, score in by_measure.items()]
        if all(name in by_measure for name in PLANE):
            plane = {name: by_measure[name] for name in PLANE}
            placement.neighbours += _nearest(observer, "plane", plane, scaled=False)
        for paper in dict.fromkeys(measures()[name].paper for name in by_measure):  # papers share hardly any weights
            profile = {name: score for name, score in by_measure.items() if measures()[name].paper == paper}
            if len(profile) > len(PLANE):
                placement.neighbours += _nearest(observer, "profile", profile, scaled=True)
    if not placement.positions and not placement.refused:
        raise UserError("the run has no scores to compare", "cuebench run -p refined_bias …")
    return placement


def rule_of(score: Score) -> Rule | None:
    """Return the rule for a score; None where no published column measures the same."""
    rules = (r for r in RULES if (r.protocol, r.metric) == (score.protocol, score.metric))
    return next((r for r in rules if fnmatchcase(score.condition, r.condition)), None)


def _reason(score: Score, rule: Rule, stimuli: StimulusSet | None) -> str:
    """Say why a score is not comparable; empty where it is."""
    if not 1 <= score.protocol_version <= rule.version:
        return f"version {score.protocol_version} of the protocol; the comparison is for version {rule.version}"
    notes = stimuli.notes if stimuli is not None else ()
    if rule.refuse and rule.shown not in notes:
        return rule.refuse
    partial = (stimuli.partial if stimuli else ()) or re.findall(rf"{PARTIAL}([^;]*)", score.note)
    if partial:
        return f"partial data: {'; '.join(partial)}"
    images = sum(s.condition == rule.counted or not rule.counted for s in stimuli or ())
    if images != rule.images:
        return f"other stimuli: {images:,} images, published {rule.images:,}"
    if other := [note for note in notes if note != rule.shown]:
        return f"other stimuli: {'; '.join(other)}"
    return "" if math.isfinite(score.value) else f"no value: {score.note}"


def _position(score: Score, measure: Measure) -> Position:
    published = np.array(list(measure.values.values()))

    def percentile(value: float) -> float:
        return float(100 * ((published < value).mean() + (published == value).mean() / 2))

    low, high = (v if math.isfinite(v) else score.value for v in (score.ci_low, score.ci_high))
    value, at_low, at_high = (percentile(v) for v in (score.value, low, high))
    return Position(score.observer, measure.name, score.value, low, high, value, at_low, at_high, len(published))


def _nearest(observer: str, by: str, scores: Mapping[str, Score], *, scaled: bool) -> Iterator[Neighbour]:
    """Yield the nearest published models: distances as they are, or each measure in units of its spread."""
    columns = [measures()[name] for name in scores]
    weights = [w for w in columns[0].values if all(w in c.values for c in columns)]
    table = np.array([[c.values[w] for c in columns] for w in weights])
    scale = table.std(axis=0) if scaled else np.ones(len(columns))
    value = np.array([s.value for s in scores.values()])
    distance = np.sqrt((((table - value) / scale) ** 2).mean(axis=1))
    widths = (s.ci_high - s.ci_low for s in scores.values())
    deviation = np.array([width / (2 * Z_95) if math.isfinite(width) else 0.0 for width in widths])
    rng = child_generator(0, f"place|{observer}|{by}")
    drawn = value + rng.normal(size=(DRAWS, len(value))) * deviation
    nearest = (((drawn[:, None, :] - table) / scale) ** 2).mean(axis=2).argmin(axis=1)
    share = np.bincount(nearest, minlength=len(weights)) / DRAWS
    for i in np.argsort(distance, kind="stable")[:NEIGHBOURS]:
        model = columns[0].labels[weights[i]]
        yield Neighbour(observer, by, columns[0].paper, model, weights[i], float(distance[i]), float(share[i]))
