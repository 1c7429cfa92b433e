"""Simulated studies: planted observers are scored by the protocols themselves, many times, and compared with the truth.

Nothing is written and no picture is made: answers are drawn in memory and handed to the protocol's own ``measure`` and
``together``. Studies are numbered; the random numbers of a study depend on the seed, the protocol, the setting and its
number alone, so that results do not depend on the number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np

from cuebench.calibration.design import OBSERVER, RESAMPLES, Design, Number
from cuebench.calibration.designs import DESIGNS
from cuebench.calibration.planted import COMPETENCES, GRID, SETTINGS, WEIGHTS, Planted
from cuebench.errors import did_you_mean
from cuebench.options import parse
from cuebench.processes import ProcessPool
from cuebench.protocols.base import ByObserver, ScoreOptions
from cuebench.registry import protocols
from cuebench.statistics.intervals import child_generator
from cuebench.tables.engine import Measurement
from cuebench.types import IntervalKind

JUDGED = 2
"""How many of the settings have all studies."""
CHUNK = 25
"""Studies that a worker process simulates at once."""


class Task(NamedTuple):
    """Some studies of one setting."""

    protocol: str
    setting: str
    planted: Planted
    first: int
    number: int
    seed: int


@dataclass
class Tally:
    """Sums over studies of one number: of its value, and of each kind of interval.

    ``held`` counts the intervals that hold the truth, or the value that they claim to hold; ``width`` adds up their
    widths, ``made`` counts those that are defined.
    """

    truth: float
    claim: float | None = None
    studies: int = 0
    undefined: int = 0
    total: float = 0.0
    squares: float = 0.0
    n: float = 0.0
    excluded: float = 0.0
    held: dict[IntervalKind, int] = field(default_factory=dict)
    width: dict[IntervalKind, float] = field(default_factory=dict)
    made: dict[IntervalKind, int] = field(default_factory=dict)

    def add(self, m: Measurement) -> None:
        """Add the number of one study."""
        estimate = m.estimate
        if not math.isfinite(estimate.value):
            self.undefined += 1
            return
        self.studies += 1
        error = estimate.value - self.truth
        self.total += error
        self.squares += error * error
        self.n += estimate.n
        self.excluded += sum(estimate.excluded.values())
        claim = self.truth if self.claim is None else self.claim
        for interval in estimate.intervals:
            if interval.width < 0:
                continue
            kind = interval.kind
            # Rounding alone must not turn a hit into a miss where nothing varies.
            held = interval.low - 1e-9 <= claim <= interval.high + 1e-9
            self.made[kind] = self.made.get(kind, 0) + 1
            self.held[kind] = self.held.get(kind, 0) + held
            self.width[kind] = self.width.get(kind, 0.0) + interval.width

    def merge(self, other: Tally) -> None:
        """Add the studies of another process."""
        for name in ("studies", "undefined", "total", "squares", "n", "excluded"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("held", "width", "made"):
            mine, theirs = getattr(self, name), getattr(other, name)
            for kind, value in theirs.items():
                mine[kind] = mine.get(kind, 0) + value

    @property
    def bias(self) -> float:
        """Mean of the number minus its truth."""
        return self.total / self.studies if self.studies else math.nan

    @property
    def sd(self) -> float:
        """Standard deviation of the number between studies."""
        if self.studies < 2:
            return math.nan
        return math.sqrt(max(0.0, (self.squares - self.total**2 / self.studies) / (self.studies - 1)))


def simulate(task: Task) -> dict[Number, Tally]:
    """Simulate some studies of one setting."""
    design = DESIGNS[task.protocol]
    truths = design.truths(task.planted)
    claims = design.claims(task.planted) if design.claims else {}
    tallies = {number: Tally(truth, claims.get(number)) for number, truth in truths.items() if math.isfinite(truth)}
    for study in range(task.first, task.first + task.number):
        rng = child_generator(task.seed, f"calibration|{task.protocol}|{task.setting}|{task.planted}|{study}")
        for m in measured(design, task.planted, rng):
            if (m.condition, m.metric) in tallies:
                tallies[m.condition, m.metric].add(m)
    return tallies


def measured(design: Design, planted: Planted, rng: np.random.Generator, seed: int = 0) -> list[Measurement]:
    """Return the numbers of the planted observer in one study, as the protocol scores it.

    Parameters
    ----------
    design : Design
        Of the protocol.
    planted : Planted
        What is planted.
    rng : Generator
        Draws the study.
    seed : int
        Of the bootstrap; the same in all studies, as it is for users.
    """
    protocol = protocols.get(design.protocol)
    options = ScoreOptions(seed, design.resamples, parse(protocol.options, design.values, design.protocol))
    score = protocol.score
    assert isinstance(score, ByObserver)
    parts = [
        score.measure(r, options) if design.of_others is None or r.observer == OBSERVER else design.of_others(r)
        for r in design.answers(planted, rng)
    ]
    result = score.together(parts, options)
    return [m for m in result.measurements if m.responses.observer == OBSERVER]


# ------------------------------------------------------------------------------------------------------- all of it


@dataclass(frozen=True)
class Result:
    """What one setting of one protocol came to."""

    protocol: str
    setting: str
    planted: Planted
    tallies: Mapping[Number, Tally]


def tasks(names: Sequence[str], studies: int, on_grid: int, seed: int) -> Iterator[Task]:
    """Yield all studies: the settings of the intervals first, which take longest, then the grid.

    The first two settings are what intervals are judged by; of the others a quarter of the studies is enough.
    """
    for place, (setting, planted) in enumerate(SETTINGS.items()):
        number = studies if place < JUDGED else max(2, studies // 4)
        for name in names:
            yield from _chunks(name, setting, planted, number, seed)
    for competence in COMPETENCES:
        for weight in WEIGHTS:
            for name in names:
                yield from _chunks(name, GRID, Planted(weight, competence), on_grid, seed)


def _chunks(name: str, setting: str, planted: Planted, studies: int, seed: int) -> Iterator[Task]:
    for first in range(0, studies, CHUNK):
        yield Task(name, setting, planted, first, min(CHUNK, studies - first), seed)


def calibrate(
    names: Sequence[str] = (),
    *,
    studies: int = 1000,
    on_grid: int = 100,
    seed: int = 0,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Simulate studies of planted observers and compare every number with the truth.

    Parameters
    ----------
    names : sequence of str
        Protocols; default: all that can be simulated.
    studies : int
        For the coverage of intervals, in the first two of `SETTINGS`; a quarter of it in the others.
    on_grid : int
        For the value itself, at each weight and competence.
    seed : int
        The same seed gives the same result, whatever the number of processes.
    workers : int
        Processes; 0: this one.
    progress : callable, optional
        ``progress(studies done, studies in all)``.
    """
    for name in names:
        if name not in DESIGNS:
            raise did_you_mean("protocol that can be simulated", name, DESIGNS)
    planned = list(tasks(tuple(names) or tuple(DESIGNS), studies, on_grid, seed))
    total, done = sum(t.number for t in planned), 0
    merged: dict[tuple[str, str, Planted], dict[Number, Tally]] = {}
    for task, tallies in zip(planned, _simulated(planned, workers)):
        known = merged.setdefault((task.protocol, task.setting, task.planted), {})
        for number, tally in tallies.items():
            if number in known:
                known[number].merge(tally)
            else:
                known[number] = tally
        done += task.number
        if progress is not None:
            progress(done, total)
    return [Result(*key, tallies) for key, tallies in merged.items()]


def _simulated(planned: Sequence[Task], workers: int) -> Iterator[dict[Number, Tally]]:
    if not workers:
        yield from map(simulate, planned)
        return
    with ProcessPool(workers) as pool:
        futures = [pool.submit(simulate, task) for task in planned]
        for future in futures:
            yield future.result()


def claims_record(design: Design) -> dict[str, object]:
    """Return which metrics have intervals that are not about the truth, and what they claim; empty: none."""
    if design.claims is None:
        return {}
    return {"claims": {metric: design.claim for _, metric in design.claims(Planted())}}


def settings_record(studies: int, on_grid: int, seed: int) -> dict[str, object]:
    """Return what a result depends on, to be kept with it."""
    return {
        "studies": studies,
        "studies_on_grid": on_grid,
        "seed": seed,
        "resamples": RESAMPLES,
        "weights": list(WEIGHTS),
        "competences": list(COMPETENCES),
        "settings": {name: asdict(planted) for name, planted in SETTINGS.items()},
    }
