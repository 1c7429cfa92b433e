"""How many images and sources tell observers apart: the smallest difference that a design finds, and what would help.

From the pairs of observers of a run: what the difference of two of them varies with, the median over pairs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option, parse
from cuebench.registry import metrics
from cuebench.reports.comparison import compare_runs
from cuebench.reports.paired import SOURCES, Pair, Paired
from cuebench.statistics.clustered import NOTHING
from cuebench.statistics.power import POWER, WAYS, Components
from cuebench.types import IntervalKind

FACTORS = (2, 4)
FEWEST = 10
"""Decided trials of either observer below which nothing is planned."""
NUMBERS = {"comparisons": Option(1, "pairs that are compared at once", low=1, high=1_000_000)}
HARDLY = 0.9
"""A smallest difference that four times as many leave above this share of what it was is called hardly helped."""


@dataclass(frozen=True)
class Design:
    """A number of images and sources, and the smallest true difference that it finds in four of five studies."""

    name: str
    numbers: dict[IntervalKind, int]
    smallest: float

    def row(self) -> dict[str, Any]:
        """Return it as a flat record."""
        return {
            "design": self.name,
            **{str(kind): n for kind, n in self.numbers.items()},
            "smallest_difference": self.smallest,
        }


@dataclass(frozen=True)
class Plan:
    """What the differences in one headline vary with, and what other designs would find.

    Parameters
    ----------
    protocol, metric, condition : str
        The headline.
    pairs, comparisons : int
        Pairs of observers that it was taken from; how many are compared at once: each is held to .05/comparisons.
    components : Components
        Of the difference of two observers, the median over pairs.
    designs : tuple of Design
        The present one first.
    difference : float
        That should be found; NaN: none was asked for.
    needed : mapping of str to dict
        For that difference: what alone would do → numbers of images and sources, empty where nothing of it would.
    notes : tuple of str
        Pairs that nothing can be planned from, and why.
    """

    protocol: str
    metric: str
    condition: str
    pairs: int
    comparisons: int
    components: Components
    designs: tuple[Design, ...]
    difference: float
    needed: dict[str, dict[IntervalKind, int]]
    notes: tuple[str, ...] = ()

    @property
    def shares(self) -> dict[IntervalKind, float]:
        """Share of the variance that images and each kind of source have."""
        parts = self.components.parts()
        whole = sum(parts.values())
        return {kind: part / whole if whole else math.nan for kind, part in parts.items()}

    @property
    def advice(self) -> str:
        """Say what would help most."""
        now, *others = self.designs
        most = {d.name: d.smallest for d in others if d.name.startswith(f"{FACTORS[-1]}×")}
        images = next(value for name, value in most.items() if "same" in name or len(most) == 1)
        sources = {kind: noun for kind, noun in SOURCES.items() if kind in self.components.sources}
        if not sources:
            return f"{FACTORS[-1]} times the images find differences of {images:.3f} instead of {now.smallest:.3f}"
        alone = {noun: most[f"{FACTORS[-1]}× {noun}"] for noun in sources.values()}
        best = min(alone, key=lambda noun: alone[noun])
        having = " and ".join(f"{self.components.numbers[kind]:,} {noun}" for kind, noun in sources.items())
        help_ = (
            "hardly help" if images > HARDLY * now.smallest else "help less" if images > alone[best] else "help as much"
        )
        limit = self.components.smallest(self.components.grown((), 1e6), 0.05 / self.comparisons)
        return (
            f"more images of these {having} {help_}: however many, no difference below {limit:.3f} is found; "
            f"{FACTORS[-1]} times the {best}, with their images, find {alone[best]:.3f}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a record."""
        return {
            "protocol": self.protocol,
            "metric": self.metric,
            "condition": self.condition,
            "pairs": self.pairs,
            "comparisons": self.comparisons,
            "power": POWER,
            "share_of_variance": self.shares,
            "designs": [design.row() for design in self.designs],
            "difference": None if math.isnan(self.difference) else self.difference,
            "needed": self.needed,
            "notes": list(self.notes),
            "advice": self.advice,
        }


def plan_runs(
    runs: Sequence[str | Path],
    protocols: Sequence[str] | None = None,
    observers: Sequence[str] = (),
    *,
    difference: float | None = None,
    comparisons: int = 1,
) -> list[Plan]:
    """Plan studies from the pairs of observers in runs.

    Parameters
    ----------
    runs : sequence of path
        Run folders with stored answers of at least two observers.
    protocols, observers
        As in `compare_runs`.
    difference : float, optional
        A true difference that should be found in four of five studies: above 0, and no more than the headlines can
        differ by.
    comparisons : int
        Pairs that will be compared at once, a million at most; each is held to .05/comparisons.
    """
    comparisons = parse(NUMBERS, {"comparisons": comparisons}, "a plan")["comparisons"]
    _check_difference(difference)
    compared = compare_runs(runs, None, protocols, observers)
    plans, reasons = [], []
    for column in compared.columns:
        paired = compared.paired.get(column.protocol) or Paired()
        reason = {(pair.first, pair.second): _no_plan(pair) for pair in paired.pairs}
        pairs = [pair.difference for pair in paired.pairs if not reason[pair.first, pair.second]]
        left_out = (f"left out: {first} − {second}: {why}" for (first, second), why in reason.items() if why)
        notes = (*paired.notes, *left_out)
        if not pairs:
            reasons += [f"{column.protocol}: {note}" for note in notes]
            continue
        _check_difference(difference, column.metric)
        components = _median([d.components for d in pairs])
        alpha = 0.05 / comparisons
        designs = tuple(
            Design(name, numbers, components.smallest(numbers, alpha)) for name, numbers in _designs(components)
        )
        needed = {} if difference is None else _needed(components, difference, alpha)
        plans.append(
            Plan(
                protocol=column.protocol,
                metric=column.metric,
                condition=column.condition,
                pairs=len(pairs),
                comparisons=comparisons,
                components=components,
                designs=designs,
                difference=math.nan if difference is None else difference,
                needed=needed,
                notes=notes,
            )
        )
    if not plans:
        hint = "; ".join(reasons[:5]) or "two observers are needed whose answers are stored"
        raise UserError("no pair of observers to plan from", hint)
    return plans


def _no_plan(pair: Pair) -> str:
    """Say why nothing can be planned from a pair; empty where something can."""
    d = pair.difference
    if d.decisions is not None and d.decisions < FEWEST:
        return f"one of them decided {d.decisions} trials, and a plan needs {FEWEST}"
    if not d.variances.by_kind or d.variances.by_kind[d.variances.main] < NOTHING:
        return "their difference does not vary with the images"
    return "" if d.intervals else d.note


def _check_difference(difference: float | None, metric: str = "") -> None:
    """Refuse a difference that no two observers can have; without a metric, one that is none in any."""
    low, high = metrics.get(metric).bounds if metric in metrics else (0.0, math.inf)
    if difference is not None and not 0 < difference <= min(high - low, sys.float_info.max):
        most = f", and at most {high - low:g}: {metric} lies between {low:g} and {high:g}" if high < math.inf else ""
        raise UserError(f"a difference of {difference:g}", f"accepted: a number above 0{most}")


def _median(each: Sequence[Components]) -> Components:
    kinds = [kind for kind in each[0].sources if all(kind in c.sources for c in each)]
    return Components(
        median(c.image for c in each),
        {kind: median(c.sources[kind] for c in each) for kind in kinds},
        {kind: round(median(c.numbers[kind] for c in each)) for kind in ("images", *kinds)},
        median(c.pair for c in each),
        round(median(c.pairs for c in each)) if set(WAYS) <= set(kinds) else 0,
        median(c.freedom for c in each),
    )


def _ways(components: Components) -> dict[str, tuple[IntervalKind, ...]]:
    """Return what can grow: name → kinds of source."""
    kinds = [kind for kind in SOURCES if kind in components.sources]
    ways: dict[str, tuple[IntervalKind, ...]] = {"images of the same sources" if kinds else "images": ()}
    ways |= {SOURCES[kind]: (kind,) for kind in kinds}
    return {**ways, "of all": tuple(kinds)} if len(kinds) > 1 else ways


def _designs(components: Components) -> list[tuple[str, dict[IntervalKind, int]]]:
    designs = [("as it is", {kind: int(n) for kind, n in components.numbers.items()})]
    for name, kinds in _ways(components).items():
        for factor in FACTORS:
            designs.append((f"{factor}× {name}", {k: round(n) for k, n in components.grown(kinds, factor).items()}))
    return designs


def _needed(components: Components, difference: float, alpha: float) -> dict[str, dict[IntervalKind, int]]:
    needed = {}
    for name, kinds in _ways(components).items():
        factor = components.factor(difference, kinds, alpha)
        grown = components.grown(kinds, factor) if math.isfinite(factor) else {}
        needed[name] = {kind: math.ceil(n) for kind, n in grown.items()}
    return needed
