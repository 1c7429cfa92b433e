"""Where a run stands among the published models: percentiles and nearest neighbours, or why it cannot be compared.

A number is compared only with numbers made in the same way: the same protocol version, the complete published stimuli,
the paper's own way of showing them and, for S_cd, the paper's population H. Everything else is refused by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.protocols.base import PARTIAL
from cuebench.published.measures import Measure, measures
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores
from cuebench.statistics.intervals import child_generator
from cuebench.types import Score

NEIGHBOURS = 3
DRAWS = 4000
PLANE = ("refined_bias/shape_sens", "refined_bias/texture_sens")


@dataclass(frozen=True)
class Rule:
    """Which scores of a protocol may be compared with which published columns."""

    protocol: str
    version: int
    condition: str
    published: Mapping[str, str]
    stimuli: int
    refuse: str = ""
    population: tuple[str, ...] = ()


RULES = (
    Rule(
        "refined_bias", 1, "faithful",
        {"shape_sensitivity": PLANE[0], "texture_sensitivity": PLANE[1],
         "shape_preference": "refined_bias/shape_preference"}, 6000,
    ),
    Rule(
        "refined_bias", 1, "native", {"shape_sensitivity": PLANE[0], "texture_sensitivity": PLANE[1]}, 6000,
        refuse="other preprocessing: view native shows the whole image, the paper resized it to 256 and cut 224",
    ),
    Rule(
        "cue_conflict", 1, "partial", {"shape_bias": "refined_bias/cue_conflict_partial"}, 1280,
        refuse="other preprocessing: view native does not resize, the published columns are of images resized to 256 "
        "and cut to 224 (ResNet-50 V1: .2139 without, .2228 with)",
    ),
    Rule(
        "cue_conflict", 1, "full", {"shape_bias": "refined_bias/cue_conflict_full"}, 1280,
        refuse="other preprocessing: view native does not resize, the published columns are of resized images",
    ),
    Rule(
        "cue_decomposition", 1, "",
        {"Q_S": "cue_decomposition/Q_S", "Q_T": "cue_decomposition/Q_T", "R_cd": "cue_decomposition/R_cd",
         "S_cd": "cue_decomposition/S_cd"}, 1200, population=("S_cd",),
    ),
)  # fmt: skip


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
            lines.append({"observer": n.observer, "measure": f"nearest by {n.by}", "value": near, "percentile": ""})
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
    record, scores = RunRecord.read(folder), read_scores(folder)
    return placed(scores, {row["set"]: row for row in record.stimuli.values()})


def placed(scores: Sequence[Score], sets: Mapping[str, Mapping[str, Any]]) -> Placement:
    """Place scores; ``sets`` says of each stimulus set how many stimuli it has, should have, and what is missing."""
    found = Placement()
    known = {r.protocol for r in RULES}
    for name in dict.fromkeys(s.protocol for s in scores if s.protocol and s.protocol not in known):
        found.refused.append(f"{name}: no published table that it could be compared with")
    by_observer: dict[str, dict[str, Score]] = {}
    reasons: dict[str, None] = {}
    for rule in RULES:
        for score in _own(scores, rule):
            reason = _reason(score, rule, sets.get(rule.protocol, {}))
            if reason:
                reasons[f"{rule.protocol} {score.condition}: {reason}"] = None
            else:
                by_observer.setdefault(score.observer, {})[rule.published[score.metric]] = score
    found.refused += list(reasons)
    for observer, own in by_observer.items():
        found.positions += [_position(score, measures()[name]) for name, score in own.items()]
        found.neighbours += list(_neighbours(observer, own))
    if not found.positions and not found.refused:
        raise UserError("the run has no scores to compare", "cuebench run -p refined_bias …")
    return found


def _own(scores: Sequence[Score], rule: Rule) -> list[Score]:
    """Return one score of each observer and metric that a rule is about: the one with the widest interval."""
    chosen: dict[tuple[str, str], Score] = {}
    for s in scores:
        if s.protocol == rule.protocol and s.metric in rule.published and rule.condition in ("", s.condition):
            key = (s.observer, s.metric)
            if key not in chosen or _width(s) > _width(chosen[key]):
                chosen[key] = s
    return list(chosen.values())


def _width(score: Score) -> float:
    width = score.ci_high - score.ci_low
    return width if math.isfinite(width) else -1.0


def _reason(score: Score, rule: Rule, stimuli: Mapping[str, Any]) -> str:
    """Say why a score is not comparable; empty where it is."""
    if score.protocol_version != rule.version:
        return f"version {score.protocol_version} of the protocol; the comparison is for version {rule.version}"
    if rule.refuse:
        return rule.refuse
    partial = stimuli.get("partial") or re.findall(rf"{PARTIAL}([^;]*)", score.note)
    if partial:
        return f"partial data: {'; '.join(partial)}"
    if stimuli.get("count") != rule.stimuli:
        return f"other stimuli: {stimuli.get('count')} of the published {rule.stimuli:,}"
    if score.metric in rule.population and not re.search(r"table viii|published population", score.note, re.IGNORECASE):
        return "S_cd of another population H: s and t must be those of the 43 models of Table VIII"
    return "" if math.isfinite(score.value) else f"no value: {score.note}"


def _position(score: Score, measure: Measure) -> Position:
    published = np.array(list(measure.values.values()))

    def percentile(value: float) -> float:
        return float(100 * ((published < value).mean() + (published == value).mean() / 2))

    low, high = (v if math.isfinite(v) else score.value for v in (score.ci_low, score.ci_high))
    value, at_low, at_high = (percentile(v) for v in (score.value, low, high))
    return Position(score.observer, measure.name, score.value, low, high, value, at_low, at_high, len(published))


def _neighbours(observer: str, own: Mapping[str, Score]) -> Iterator[Neighbour]:
    """Return the nearest models on the plane (as it is) and by profile (each measure in units of its spread)."""
    if all(name in own for name in PLANE):
        yield from _nearest(observer, "plane", {name: own[name] for name in PLANE}, scaled=False)
    if len(own) > len(PLANE):
        yield from _nearest(observer, "profile", own, scaled=True)


def _nearest(observer: str, by: str, own: Mapping[str, Score], *, scaled: bool) -> Iterator[Neighbour]:
    columns = [measures()[name] for name in own]
    weights = [w for w in columns[0].values if all(w in c.values for c in columns)]
    table = np.array([[c.values[w] for c in columns] for w in weights])
    scale = table.std(axis=0) if scaled else np.ones(len(columns))
    value = np.array([s.value for s in own.values()])
    distance = np.sqrt((((table - value) / scale) ** 2).mean(axis=1))
    spread = np.array([max(_width(s), 0.0) / (2 * 1.959964) for s in own.values()])
    rng = child_generator(0, f"place|{observer}|{by}")
    drawn = value + rng.normal(size=(DRAWS, len(value))) * spread
    nearest = (((drawn[:, None, :] - table) / scale) ** 2).mean(axis=2).argmin(axis=1)
    share = np.bincount(nearest, minlength=len(weights)) / DRAWS
    for i in np.argsort(distance, kind="stable")[:NEIGHBOURS]:
        yield Neighbour(observer, by, columns[0].labels[weights[i]], weights[i], float(distance[i]), float(share[i]))
