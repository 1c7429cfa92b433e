"""Rankings of a board: who is compared with whom, in which order, and who cannot be told apart.

Observers are compared where they were shown the same stimuli with the same version and options of a protocol: a
*track*. A rank is a range, from 1 + the number of models that are surely above to n − the number that are surely
below. Surely means: the first ``TOP`` models of a track are compared in pairs on the same images, corrected for all
pairs of them (Holm); for all others the 95 % intervals do not overlap (stricter for one
pair, not corrected for the number of pairs).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Bools
from cuebench.protocols.headline import Column, headline_column, headline_of
from cuebench.registry import protocols
from cuebench.reports.board.check import Model, Shown
from cuebench.reports.paired import answers_of, compare_pairs
from cuebench.statistics.ranking import letters, rank_ranges, separable_by_intervals, tie_groups
from cuebench.types import Direction, Score

TOP = 20
"""Models at the head of a track that are compared in pairs."""
RULE = (
    "A rank is a range: from one more than the number of models that are surely above, to the last place that is not "
    f"surely below. The first {TOP} models are compared in pairs on the same images, corrected for all of these pairs "
    "(Holm); models that share a letter cannot be told apart. Other pairs count as different where their 95 % "
    "intervals do not overlap: stricter for one pair, but not corrected for the number of pairs."
)


class Standing(NamedTuple):
    """The place of one observer in a track; people and ideal observers have none: rank 0."""

    model: Model
    score: Score
    best: int = 0
    worst: int = 0
    ties: str = ""
    same_answers: tuple[str, ...] = ()
    """Names of the observers that answered the same to every stimulus."""


@dataclass(frozen=True)
class Track:
    """Observers that can be compared: the same protocol, version, options and stimuli."""

    id: str
    shown: Shown
    title: str
    metric: str
    condition: str
    direction: Direction
    standings: tuple[Standing, ...]
    pairs: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def models(self) -> list[Standing]:
        """Those that are ranked."""
        return [s for s in self.standings if s.model.layer == "model"]


class Compared(NamedTuple):
    """Pairs of models as flat records (``paired.Pair.row``), and what a reader must know of them."""

    rows: list[dict[str, Any]]
    notes: list[str]


Pairs = Callable[["TopOfTrack"], Compared]
"""Compares the models at the head of a track; the site keeps what it has compared before."""


class TopOfTrack(NamedTuple):
    """The models at the head of a track: slug → model, and their headline, keyed by slug."""

    models: Mapping[str, Model]
    column: Column


def make_tracks(models: Sequence[Model], pairs: Pairs) -> list[Track]:
    """Put models side by side where they can be compared, and rank them; largest tracks first."""
    groups: dict[Shown, list[Model]] = {}
    for model in models:
        for shown in model.shown:
            groups.setdefault(shown, []).append(model)
    tracks = [track for shown, members in _joined(groups).items() if (track := _track(shown, members, pairs))]
    return sorted(tracks, key=lambda t: (-len(t.models), -len(t.standings), t.id))


def _joined(groups: Mapping[Shown, Sequence[Model]]) -> dict[Shown, list[Model]]:
    """Let recorded answers, which name stimuli without pictures, join the largest group that saw the same stimuli."""
    joined = {shown: list(members) for shown, members in groups.items() if shown.pixels}
    for shown, members in groups.items():
        if not shown.pixels:
            same = [other for other in groups if other.pixels and replace(other, pixels="") == shown]
            home = max(same, key=lambda other: (len(groups[other]), other.pixels), default=shown)
            joined.setdefault(home, []).extend(members)
    return joined


def _track(shown: Shown, members: Sequence[Model], pairs: Pairs) -> Track | None:
    """Rank the models of a track; None where nobody has a value of the headline."""
    by_slug = {model.slug: model for model in members}
    rows = [replace(row, observer=m.slug) for m in members for row in m.rows if row.protocol == shown.protocol]
    column = headline_column(rows, shown.protocol)
    if column is None:
        return None
    order = sorted(column.rows, key=lambda s: (-column.rows[s].value, s))
    ranked = [s for s in order if by_slug[s].layer == "model"]
    places, compared = _places({s: by_slug[s] for s in ranked}, column, pairs)
    standings = [Standing(by_slug[s], column.rows[s], *places.get(s, (0, 0, ""))) for s in order]
    standings = _with_same_answers(standings, shown.protocol)
    key = "|".join(str(v) for v in asdict(replace(shown, pixels="")).values()) + shown.pixels
    return Track(
        f"{shown.protocol}-{hashlib.sha256(key.encode()).hexdigest()[:6]}",
        shown,
        protocols.get(shown.protocol).title,
        column.metric,
        column.condition,
        headline_of(shown.protocol).direction,
        tuple(standings),
        tuple(compared.rows),
        tuple(compared.notes),
    )


def _with_same_answers(standings: Sequence[Standing], protocol: str) -> list[Standing]:
    """Mark observers whose answers are those of others under another name."""
    by_answers: dict[str, list[Model]] = {}
    for model in (s.model for s in standings):
        by_answers.setdefault(model.answers.get(protocol) or model.slug, []).append(model)
    same = {m.slug: tuple(o.name for o in alike if o is not m) for alike in by_answers.values() for m in alike}
    return [s._replace(same_answers=same[s.model.slug]) for s in standings]


def _places(
    ranked: Mapping[str, Model], column: Column, pairs: Pairs
) -> tuple[dict[str, tuple[int, int, str]], Compared]:
    """Return slug → best rank, worst rank and letters; and the pairs that were compared."""
    names = list(ranked)
    if not names:
        return {}, Compared([], [])
    rows = [column.rows[name] for name in names]
    separable = _by_intervals(rows)
    top = names[:TOP]
    compared = pairs(TopOfTrack({n: ranked[n] for n in top}, column._replace(rows={n: column.rows[n] for n in top})))
    index = {name: i for i, name in enumerate(names)}
    for pair in compared.rows:
        i, j = index[pair["first"]], index[pair["second"]]
        separable[i, j] = separable[j, i] = pair["separable"]
    values = [row.value for row in rows]
    ranges = rank_ranges(values, separable)
    head = tie_groups(values[: len(top)], separable[: len(top), : len(top)])
    ties = dict(zip(top, letters(head, len(top)))) if len(top) > 1 else {}
    return {n: (r.best, r.worst, ties.get(n, "")) for n, r in zip(names, ranges)}, compared


def _by_intervals(rows: Sequence[Score]) -> Bools:
    """Tell which intervals do not overlap; a number without one is never told apart by them."""
    low = np.array([row.ci_low for row in rows])
    high = np.array([row.ci_high for row in rows])
    known = np.isfinite(low) & np.isfinite(high)
    return separable_by_intervals(np.where(known, low, -np.inf), np.where(known, high, np.inf))


def compare_top(top: TopOfTrack, folder_of: Callable[[Model], AbstractContextManager[Path]]) -> Compared:
    """Compare the models at the head of a track on the same images.

    Parameters
    ----------
    top : TopOfTrack
        The models.
    folder_of : callable
        Opens the run folder of a model.
    """
    if len(top.models) < 2:
        return Compared([], [])
    with ExitStack() as stack:
        folders = {slug: str(stack.enter_context(folder_of(model))) for slug, model in top.models.items()}
        observers = {slug: (folders[slug], model.observer) for slug, model in top.models.items()}
        paired = compare_pairs(answers_of(dict.fromkeys(folders.values())), top.column, observers)
    return Compared([pair.row() for pair in paired.pairs], list(paired.notes))
