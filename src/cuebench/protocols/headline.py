"""The headline of a protocol among the rows of a result: the one number of each observer, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from cuebench.protocols.base import NOT_MEASURED
from cuebench.registry import protocols
from cuebench.types import Axis, Headline, Score


class Column(NamedTuple):
    """One metric in one condition: observer → its row with the widest interval."""

    protocol: str
    metric: str
    condition: str
    rows: dict[str, Score]


_RECORDED: dict[str, Headline] = {}


def remember_headline(protocol: str, headline: Headline) -> None:
    """Keep the headline that a run recorded, for protocols that are not installed where the run is read."""
    _RECORDED[protocol] = headline


def headline_of(protocol: str) -> Headline:
    """Return the declared headline of a protocol; of one that is not here, the headline that a run recorded."""
    if protocol not in protocols and protocol in _RECORDED:
        return _RECORDED[protocol]
    headline: Headline = protocols.get(protocol).headline
    return headline


def headline_column(scores: Iterable[Score], protocol: str, axis: Axis | None = None) -> Column | None:
    """Return the headline (or another axis) of a protocol for every observer that has it; None where nobody has.

    Parameters
    ----------
    scores : iterable of Score
        Rows of one run or of several.
    protocol : str
        Whose headline.
    axis : Axis, optional
        Another metric with its conditions, for example one axis of the headline's plane.

    Returns
    -------
    Column or None
        In the first declared condition in which any observer has a value, the same for all of them.
    """
    axis = axis or headline_of(protocol)
    values = [s for s in scores if s.protocol == protocol and s.metric == axis.metric and not math.isnan(s.value)]
    condition = chosen_condition(axis, list(dict.fromkeys(s.condition for s in values)))
    if condition is None:
        return None
    by_observer: dict[str, list[Score]] = {}
    for row in values:
        if row.condition == condition:
            by_observer.setdefault(row.observer, []).append(row)
    return Column(protocol, axis.metric, condition, {o: widest(rows) for o, rows in by_observer.items()})


def chosen_condition(axis: Axis, present: Sequence[str]) -> str | None:
    """Return the first present condition that fits the declared ones, which are ordered best first.

    Of several that are named by a number of classes, the one with the fewest: these are the classes of the stimuli,
    among which everybody decides; the others are the whole label spaces of single observers.

    >>> chosen_condition(Axis("shape_bias", ("*-way",)), ["16-way", "8-way", "1000-way"])
    '8-way'
    """
    for pattern in axis.conditions:
        fitting = [c for c in present if fnmatchcase(c, pattern)]
        if fitting:
            return min(fitting, key=number_of_classes) if pattern.endswith("*-way") else fitting[0]
    return None


def number_of_classes(condition: str) -> float:
    """Return the number of classes that a condition is named by: ``silhouettes/16-way``; infinite where it is not."""
    number = condition.rpartition("/")[2].removesuffix("-way")
    return int(number) if number.isdecimal() and len(number) < 10 else math.inf


def widest(rows: Sequence[Score]) -> Score:
    """Return the row whose interval makes the weakest claim; the first one where no interval is defined."""
    defined = [r for r in rows if math.isfinite(r.ci_low) and math.isfinite(r.ci_high)]
    return max(defined, key=lambda r: r.ci_high - r.ci_low, default=rows[0])


def one_row_each(scores: Iterable[Score]) -> list[Score]:
    """Return one row for each number, with its widest interval: what people are shown."""
    groups: dict[tuple[str, str, str, str], list[Score]] = {}
    for s in scores:
        groups.setdefault((s.protocol, s.observer, s.condition, s.metric), []).append(s)
    return [widest(rows) for rows in groups.values()]


def measured(scores: Iterable[Score]) -> list[Score]:
    """Return the rows that hold a number, not the reason for its absence."""
    return [s for s in scores if s.metric not in NOT_MEASURED]
