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
from cuebench.registry import protocols
from cuebench.runs.answers import StoredAnswers
from cuebench.runs.results import read_table
from cuebench.statistics.clustered import Sums
from cuebench.statistics.multiple import adjust
from cuebench.statistics.paired import Difference, paired
from cuebench.statistics.ranking import letters, tie_groups

LEVEL = 0.95
FAR = 100.0
"""From this many times as many images on, a difference is called too small instead."""
_SOURCE = {"texture_sources": "texture", "shape_sources": "shape", "classes": "class"}
_PLURAL = {"texture": "textures", "shape": "shapes", "class": "classes", "image": "images"}


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
    verdict : str
        Whether they differ; where not, what it would take.
    """

    first: str
    second: str
    difference: Difference
    p_holm: float
    verdict: str

    @property
    def separable(self) -> bool:
        """Whether the two differ, all pairs of the protocol considered."""
        return self.p_holm <= 1 - LEVEL

    def row(self) -> dict[str, Any]:
        """Return all numbers as a flat record; what is undefined is None."""
        d = self.difference
        numbers = {"value_first": d.first, "value_second": d.second, "difference": d.value}
        for interval in d.intervals:
            numbers |= {f"low_{interval.kind}": interval.low, f"high_{interval.kind}": interval.high}
        widest = d.widest
        return {
            "first": self.first,
            "second": self.second,
            **{name: _or_none(v) for name, v in numbers.items()},
            "interval": widest.kind if widest else "",
            "low": widest.low if widest else None,
            "high": widest.high if widest else None,
            "p": _or_none(d.p),
            "p_holm": _or_none(self.p_holm),
            "n": d.n,
            "separable": self.separable,
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
    """

    pairs: tuple[Pair, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def compare_pairs(
    runs: Mapping[str, StoredAnswers | None],
    column: Column,
    observers: Mapping[str, tuple[str, str]],
    *,
    seed: int = 0,
) -> Paired:
    """Compare all pairs of observers in the headline of one protocol.

    Parameters
    ----------
    runs : mapping of str to StoredAnswers
        Run folder → its answers; None where they are not there.
    column : Column
        The headline: protocol, condition, and the row of every observer.
    observers : mapping of str to pair of str
        Observer as the column names it → run folder, and its name there.
    seed : int
        Of the p-values.
    """
    if len(column.rows) < 2:
        return Paired(notes=("one observer: nothing to compare",))
    protocol: Protocol | None = protocols.get(column.protocol) if column.protocol in protocols else None
    if protocol is None or protocol.contributions is None:
        why = "does not say what single answers add to its headline"
        return Paired(notes=(f"no paired comparison: {column.protocol} {why}",))
    sums: dict[str, Sums] = {}
    notes: list[str] = []
    for name in column.rows:
        found, why = _sums_of(runs, *observers[name], column, protocol)
        if found is None:
            notes.append(f"{name} is not compared: {why}")
        else:
            sums[name] = found
    return _all_pairs(_numbered(sums), column, notes, seed)


def _sums_of(
    runs: Mapping[str, StoredAnswers | None], run: str, observer: str, column: Column, protocol: Protocol
) -> tuple[Sums | None, str]:
    """Return the headline of an observer as a function of sums, or why there is none."""
    answers = runs[run]
    if answers is None:
        return None, f"{run} holds scores without answers"
    asked = Asked(
        column.condition, answers.options(column.protocol), partial(read_table, answers.folder, column.protocol)
    )
    assert protocol.contributions is not None
    try:
        for job in answers.jobs([column.protocol], [observer]):
            found = protocol.contributions(answers.whole(job, condensed=True), asked)
            if found is not None:
                return found, ""
    except UserError as error:
        return None, error.message
    return None, f"its answers do not give {column.metric} in {column.condition}"


def _numbered(sums: Mapping[str, Sums]) -> dict[str, Sums]:
    """Replace names of images and sources by numbers that are the same for all observers: much faster to compare."""
    known: dict[str, Array] = {}

    def numbers(what: str, names: Array) -> Array:
        return np.searchsorted(known[what], names)

    kinds = {kind for s in sums.values() for kind in s.sources}
    for what in ("images", *kinds):
        columns = [s.images if what == "images" else s.sources.get(what, s.images[:0]) for s in sums.values()]
        known[what] = np.unique(np.concatenate(columns)) if columns else np.zeros(0)
    return {
        name: replace(
            s, images=numbers("images", s.images), sources={kind: numbers(kind, v) for kind, v in s.sources.items()}
        )
        for name, s in sums.items()
    }


def _all_pairs(sums: Mapping[str, Sums], column: Column, notes: list[str], seed: int) -> Paired:
    names = sorted(sums, key=lambda name: -column.rows[name].value)
    differences = {(a, b): paired(sums[a], sums[b], seed=seed, level=LEVEL) for a, b in combinations(names, 2)}
    corrected = dict(zip(differences, adjust([d.p for d in differences.values()]))) if differences else {}
    pairs = [
        Pair(a, b, d, float(corrected[a, b]), verdict(d, float(corrected[a, b]), len(differences)))
        for (a, b), d in differences.items()
    ]
    fewer = sorted({p.difference.n for p in pairs if p.difference.n < max(_seen(sums[p.first]), _seen(sums[p.second]))})
    if fewer:
        shown = f"{fewer[0]:,}" if len(fewer) == 1 else f"{fewer[0]:,} to {fewer[-1]:,}"
        notes.append(
            f"some pairs were compared on the {shown} stimuli that both saw; values there differ from the table"
        )
    separable = np.zeros((len(names), len(names)), bool)
    for p in pairs:
        i, j = names.index(p.first), names.index(p.second)
        separable[i, j] = separable[j, i] = p.separable
    values = [column.rows[name].value for name in names]
    groups = dict(zip(names, letters(tie_groups(values, separable), len(names))))
    return Paired(tuple(pairs), groups, tuple(notes))


def _seen(sums: Sums) -> int:
    return len(np.unique(sums.images))


def verdict(difference: Difference, p: float, comparisons: int) -> str:
    """Say whether two observers differ; where not, about how many more images would be needed to see it.

    Parameters
    ----------
    difference : Difference
        Of the two.
    p : float
        Corrected for all comparisons.
    comparisons : int
        Their number.
    """
    if difference.note:
        return f"not compared: {difference.note}" if math.isnan(p) else f"not separable: {difference.note}"
    if p <= 1 - LEVEL:
        return "different"
    more = difference.needed(comparisons, LEVEL)
    if more.times > FAR:
        return "not separable; the difference is too small for sets like this"
    if more.images <= difference.n * (more.times - 1) * 4:
        return f"not separable; about {_round(more.images):,} more images would be needed"
    return f"not separable; {_more_sources(difference, more.times)}"


def _more_sources(difference: Difference, times: float) -> str:
    """Say how many sources it would take, where images of the same sources would not help (enough)."""
    sources = {k: v for k, v in difference.variances.clusters.items() if k in _SOURCE}
    if not sources:
        return f"about {_round(difference.n * (times - 1)):,} more images would be needed"
    kind = max(sources, key=lambda k: difference.variances.by_kind[k])
    noun = _PLURAL[_SOURCE[kind]]
    number = sources[kind]
    return (
        f"more images of these {number:,} {noun} would hardly help; "
        f"about {_round(number * (times - 1)):,} more {noun} with their images would"
    )


def _round(number: float) -> int:
    """Round up to two digits: nothing here is known better."""
    if number < 10:
        return max(1, math.ceil(number))
    unit = 10 ** (math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def answers_of(runs: Iterable[str]) -> dict[str, StoredAnswers | None]:
    """Return run folder → its answers; None for a folder of scores without a record."""
    return {run: StoredAnswers(run) if (Path(run) / "run.json").is_file() else None for run in runs}
