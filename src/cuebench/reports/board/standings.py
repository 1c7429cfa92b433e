"""Rankings of a board: who is compared with whom, in which order, and who cannot be told apart.

Observers are compared where they were shown the same stimuli with the same version and options of a protocol: a
*track*. A rank is a range, from 1 + the number of models that are surely above to n − the number that are surely
below. Surely means: different when compared in pairs on the same images, corrected for all pairs of the track (Holm).
A model that decided too rarely to be compared has no rank and stands below the others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.protocols.headline import Column, headline_column, headline_of
from cuebench.registry import protocols
from cuebench.reports.board.check import Model, Shown
from cuebench.reports.paired import answers_of, compare_pairs
from cuebench.statistics.ranking import letters, rank_ranges, separable_by_intervals, tie_groups
from cuebench.types import Direction, Score

TOP = 20
"""Models at the head of a track whose pairs are listed, with letters of those that cannot be told apart."""
RULE = (
    "A rank is a range: from one more than the number of models that are surely above, to the last place that is not "
    "surely below. Models are compared in pairs on the same images, corrected for all pairs of the ranking (Holm); of "
    f"the first {TOP}, those that share a letter cannot be told apart. A model with fewer than three decided trials, "
    "or with decisions on fewer than three shapes or textures, has no rank and stands below the others."
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
    """Pairs of models of a track.

    ``rows``: those among the first ``TOP``, as flat records (``paired.Pair.row``). ``different``: the slugs of all
    pairs that differ. ``too_few``: slugs of models that decided too rarely to be compared. ``notes``: what a reader
    must know.
    """

    rows: list[dict[str, Any]]
    different: list[list[str]]
    too_few: list[str]
    notes: list[str]


Pairs = Callable[["Ranked"], Compared]
"""Compares the models of a track; the site keeps what it has compared before."""


class Ranked(NamedTuple):
    """The models of a track: slug → model, and their headline, keyed by slug."""

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
    models_only = {s: by_slug[s] for s in order if by_slug[s].layer == "model"}
    compared = pairs(Ranked(models_only, column._replace(rows={s: column.rows[s] for s in models_only})))
    places = _places([s for s in models_only if s not in compared.too_few], column, compared)
    order.sort(key=lambda s: s in compared.too_few)
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
        tuple(_with_names(compared.notes, models_only)),
    )


def _with_names(notes: Sequence[str], models: Mapping[str, Model]) -> list[str]:
    """Name models in notes as the board does, not by their slugs."""
    named = re.compile("|".join(map(re.escape, models)) or "$^")
    return [named.sub(lambda slug: models[slug[0]].name, note) for note in notes]


def _with_same_answers(standings: Sequence[Standing], protocol: str) -> list[Standing]:
    """Mark observers whose answers are those of others under another name."""
    by_answers: dict[str, list[Model]] = {}
    for model in (s.model for s in standings):
        by_answers.setdefault(model.answers.get(protocol) or model.slug, []).append(model)
    same = {m.slug: tuple(o.name for o in alike if o is not m) for alike in by_answers.values() for m in alike}
    return [s._replace(same_answers=same[s.model.slug]) for s in standings]


def _places(names: Sequence[str], column: Column, compared: Compared) -> dict[str, tuple[int, int, str]]:
    """Return slug → best rank, worst rank and letters, of models in the order of their values."""
    index = {name: i for i, name in enumerate(names)}
    separable = np.zeros((len(names), len(names)), bool)
    for first, second in compared.different:
        i, j = index[first], index[second]
        separable[i, j] = separable[j, i] = True
    values = [column.rows[name].value for name in names]
    top = names[:TOP]
    groups = tie_groups(values[:TOP], separable[:TOP, :TOP])
    ties = dict(zip(top, letters(groups, len(top)))) if len(top) > 1 else {}
    return {n: (r.best, r.worst, ties.get(n, "")) for n, r in zip(names, rank_ranges(values, separable))}


def compare_all(ranked: Ranked, folder_of: Callable[[Model], AbstractContextManager[Path]]) -> Compared:
    """Compare the models of a track in pairs, on the same images.

    Parameters
    ----------
    ranked : Ranked
        The models, in the order of their values.
    folder_of : callable
        Opens the run folder of a model.
    """
    if not ranked.models:
        return Compared([], [], [], [])
    with ExitStack() as stack:
        folders = {slug: str(stack.enter_context(folder_of(model))) for slug, model in ranked.models.items()}
        observers = {slug: (folders[slug], model.observer) for slug, model in ranked.models.items()}
        paired = compare_pairs(answers_of(dict.fromkeys(folders.values())), ranked.column, observers)
    if protocols.get(ranked.column.protocol).contributions is None:
        note = "models differ here where their 95 % intervals do not overlap: answers cannot be paired by image"
        return Compared([], _apart(list(ranked.column.rows.values())), [], [note] if len(ranked.models) > 1 else [])
    top = [slug for slug in ranked.models if slug not in paired.too_few][:TOP]
    return Compared(
        [pair.row() for pair in paired.pairs if pair.first in top and pair.second in top],
        [[pair.first, pair.second] for pair in paired.pairs if pair.separable],
        list(paired.too_few),
        list(paired.notes),
    )


def _apart(rows: Sequence[Score]) -> list[list[str]]:
    """Return the pairs whose intervals do not overlap; a number without one differs from none."""
    ends = [(r.ci_low, r.ci_high) if np.isfinite([r.ci_low, r.ci_high]).all() else (-np.inf, np.inf) for r in rows]
    apart = separable_by_intervals(*zip(*ends))
    return [[rows[i].observer, rows[j].observer] for i, j in zip(*np.nonzero(np.triu(apart)))]
