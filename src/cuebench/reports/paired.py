"""Observers against each other on the same stimuli: the headline of one protocol, every pair, tie groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.protocols.base import Protocol
from cuebench.protocols.headline import Column
from cuebench.protocols.trials import Asked
from cuebench.registry import metrics, protocols
from cuebench.runs.answers import StoredAnswers
from cuebench.runs.results import read_table
from cuebench.statistics.clustered import Sums
from cuebench.statistics.multiple import adjust
from cuebench.statistics.paired import TOO_FEW, Difference, More, Number, paired
from cuebench.statistics.ranking import letters, tie_groups
from cuebench.types import IntervalKind

LEVEL = 0.95
FAR = 30.0
"""From this many times as many images and sources on, a difference is called too small instead."""
MANY = 1e6
"""The same, for images that share no sources."""
HARDLY = 4.0
"""Images of the same sources hardly help where it takes so many times as many of them as of new sources."""
SOURCES: Mapping[IntervalKind, str] = {
    "shape_sources": "shapes",
    "texture_sources": "textures",
    "classes": "classes",
    "subjects": "people",
}


@dataclass(frozen=True)
class Pair:
    """Two observers on the stimuli that both saw.

    Parameters
    ----------
    first, second : str
        Observers; the one with the higher value first.
    difference : Difference
        First minus second.
    p_holm : float
        p corrected for all pairs of the protocol.
    comparisons : int
        Number of these pairs.
    """

    first: str
    second: str
    difference: Difference
    p_holm: float
    comparisons: int

    @property
    def needed(self) -> More:
        """What it would take to tell the two apart, all pairs of the protocol considered."""
        return self.difference.needed(self.comparisons, LEVEL)

    @property
    def separable(self) -> bool:
        """Whether the two differ, all pairs of the protocol considered."""
        return self.p_holm <= 1 - LEVEL

    @property
    def verdict(self) -> str:
        """Say whether the two differ; where not, about how many more images would be needed to see it."""
        d = self.difference
        if d.note:
            return d.note if math.isnan(self.p_holm) else f"not separable: {d.note}"
        if self.separable:
            return "different"
        images, times = self.advice
        if images:
            return f"not separable; about {images:,} more images would be needed"
        if not times:
            return "not separable: too small a difference for any such set"
        d = self.difference
        sources = [f"{d.variances.clusters[k]:,} {noun}" for k, noun in SOURCES.items() if k in d.variances.clusters]
        alone = {kind: f for kind, f in self.needed.alone.items() if f <= FAR and len(self.needed.alone) > 1}
        best = min(alone, key=lambda kind: alone[kind], default=None)
        fewer = f", or {_round(10 * alone[best]) / 10:g} times the {SOURCES[best]}" if best else ""
        return (
            f"not separable; more images of these {' and '.join(sources)} would hardly help: "
            f"about {times:g} times as many of all are needed{fewer}"
        )

    @property
    def advice(self) -> tuple[int, float]:
        """Further images of the same sources that would do; else how many times as many sources and images; 0: none."""
        more = self.needed
        if not set(SOURCES) & set(self.difference.variances.clusters):
            return (_round(more.images) if more.images < MANY else 0), 0.0
        if more.times > FAR:
            return 0, 0.0
        # Images of the same sources, unless that takes many times as many as images of new sources.
        if more.images <= HARDLY * self.difference.n * (more.times - 1):
            return _round(more.images), 0.0
        return 0, _round(10 * more.times) / 10

    def row(self) -> dict[str, Any]:
        """Return all numbers as a flat record; what is undefined is None."""
        d = self.difference
        numbers = {"value_first": d.first, "value_second": d.second, "difference": d.value}
        for interval in d.intervals:
            numbers |= {f"low_{interval.kind}": interval.low, f"high_{interval.kind}": interval.high}
        quoted = d.interval
        return {
            "first": self.first,
            "second": self.second,
            **{name: _or_none(v) for name, v in numbers.items()},
            "interval": quoted.kind if quoted else "",
            "low": quoted.low if quoted else None,
            "high": quoted.high if quoted else None,
            "p": _or_none(d.p),
            "p_holm": _or_none(self.p_holm),
            "n": d.n,
            "separable": self.separable,
            "needed_images": None if self.separable else _finite(self.needed.images),
            "needed_times": None if self.separable else _finite(self.needed.times),
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Paired:
    """All pairs of observers in the headline of one protocol.

    Parameters
    ----------
    pairs : tuple of Pair
        In the order of the values.
    groups : mapping of str to str
        Observer → letters; observers with a letter in common are not separable.
    notes : tuple of str
        What a reader must know: who could not be compared and why.
    too_few : mapping of str to str
        Observer that decided too rarely to be compared, and has no letter → how rarely.
    """

    pairs: tuple[Pair, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    too_few: Mapping[str, str] = field(default_factory=dict)


def compare_pairs(
    runs: Mapping[str, StoredAnswers | str],
    column: Column,
    observers: Mapping[str, tuple[str, str]],
) -> Paired:
    """Compare all pairs of observers in the headline of one protocol.

    Parameters
    ----------
    runs : mapping of str to StoredAnswers or str
        Run folder → its answers, or why there are none (`answers_of`).
    column : Column
        The headline: protocol, condition, and the row of every observer.
    observers : mapping of str to pair of str
        Observer as the column names it → run folder, and its name there.
    """
    protocol: Protocol | None = protocols.get(column.protocol) if column.protocol in protocols else None
    if protocol is None or protocol.contributions is None:
        why = "does not say what single answers add to its headline"
        return Paired(notes=(f"no paired comparison: {column.protocol} {why}",))
    sums: dict[str, Sums] = {}
    notes = ["one observer: nothing to compare"] if len(column.rows) < 2 else []
    for name in column.rows:
        observer_sums, why = sums_of(runs, *observers[name], column, protocol)
        if observer_sums is None:
            notes.append(f"{name} is not compared: {why}")
        else:
            sums[name] = observer_sums
    return _all_pairs(_numbered(sums), column, notes)


def sums_of(
    runs: Mapping[str, StoredAnswers | str], run: str, observer: str, column: Column, protocol: Protocol
) -> tuple[Sums | None, str]:
    """Return the headline of an observer as a function of sums, or why there is none."""
    answers = runs[run]
    if isinstance(answers, str):
        return None, answers
    table = partial(read_table, answers.folder, column.protocol)
    asked = Asked(column.condition, answers.options(column.protocol), table)
    assert protocol.contributions is not None
    try:
        for job in answers.jobs([column.protocol], [observer]):
            sums = protocol.contributions(answers.whole(job, condensed=True), asked)
            if sums is not None:
                return sums if sums.is_ratio else replace(sums, bounds=metrics.get(column.metric).bounds), ""
    except UserError as error:
        return None, error.message
    return None, f"its answers do not give {column.metric} in {column.condition}"


def _numbered(sums: Mapping[str, Sums]) -> dict[str, Sums]:
    """Replace names of images and sources by numbers that are the same for all observers: much faster to compare."""
    known: dict[str, Array] = {}
    kinds = {kind for s in sums.values() for kind in s.sources}
    for what in ("images", *kinds):
        columns = [s.images if what == "images" else s.sources.get(what, s.images[:0]) for s in sums.values()]
        known[what] = np.unique(np.concatenate(columns)) if columns else np.zeros(0)
    return {
        name: replace(
            s,
            images=np.searchsorted(known["images"], s.images),
            sources={kind: np.searchsorted(known[kind], names) for kind, names in s.sources.items()},
        )
        for name, s in sums.items()
    }


def _all_pairs(sums: Mapping[str, Sums], column: Column, notes: list[str]) -> Paired:
    too_few = {name: few for name, s in sums.items() if (few := Number.of(s).too_few)}
    notes += [f"{name} is not compared: {TOO_FEW} ({few})" for name, few in too_few.items()]
    names = sorted(sums.keys() - too_few.keys(), key=lambda name: (-column.rows[name].value, name))
    differences = {(a, b): paired(sums[a], sums[b], level=LEVEL) for a, b in combinations(names, 2)}
    corrected = dict(zip(differences, adjust([d.p for d in differences.values()]))) if differences else {}
    pairs = [Pair(a, b, d, float(corrected[a, b]), len(differences)) for (a, b), d in differences.items()]
    seen = {name: len(np.unique(s.images)) for name, s in sums.items()}
    fewer = sorted({p.difference.n for p in pairs if p.difference.n < max(seen[p.first], seen[p.second])})
    if fewer:
        number = f"{fewer[0]:,}" if len(fewer) == 1 else f"{fewer[0]:,} to {fewer[-1]:,}"
        notes.append(f"some pairs are compared on the {number} images that both saw, where values are not the table's")
    separable = np.zeros((len(names), len(names)), bool)
    for p in pairs:
        i, j = names.index(p.first), names.index(p.second)
        separable[i, j] = separable[j, i] = p.separable
    values = [column.rows[name].value for name in names]
    groups = dict(zip(names, letters(tie_groups(values, separable), len(names))))
    return Paired(tuple(pairs), groups, tuple(notes), too_few)


def answers_of(runs: Iterable[str]) -> dict[str, StoredAnswers | str]:
    """Return run folder → its answers; or why they cannot be had: scores alone, a protocol that is not installed."""
    answers: dict[str, StoredAnswers | str] = {}
    for run in runs:
        if not (Path(run) / "run.json").is_file():
            answers[run] = f"{run} holds scores without answers"
            continue
        try:
            answers[run] = StoredAnswers(run)
        except UserError as error:
            answers[run] = error.message
    return answers


def _round(number: float) -> int:
    """Round up to two digits: nothing here is known better."""
    if number < 10:
        return max(1, math.ceil(number))
    unit = 10 ** (math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def difference_text(pair: Pair, digits: int = 3) -> str:
    """Return a difference as text, with the ends of its interval in so many digits; a dash where it is undefined."""
    difference, interval = pair.difference, pair.difference.interval
    if not math.isfinite(difference.value):
        return "–"
    ends = f" [{interval.low:+.{digits}f}, {interval.high:+.{digits}f}]" if interval else ""
    return f"{difference.value:+.3f}{ends}"


def p_text(p: float) -> str:
    """Return a p value as text: four digits below .1, else two; never 0."""
    if math.isnan(p):
        return "–"
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def p_is(p: float) -> str:
    """Return a p value as a part of a sentence: ``p = 0.0120`` or ``p < 0.0001``."""
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
