"""Ask again: are the answers of this observer those that are stored of it?

No hash sees everything that decides an answer: environment variables, data files that a model reads, functions replaced
from outside, another device or another version of a library. So a run that finds stored answers asks for a few of them
again, drawn by the seed, and compares. Answers are the same if no number differs by more than `TOLERANCE` of the spread
(largest minus smallest) of its row; texts and class numbers must be equal. Logits far below the largest, as the -1e9
of classes that a model may not answer, say nothing of the spread of the others, nor does a constant that many of them
share as the smallest number, nor a number that dwarfs them.
Probabilities are compared by their logarithms, by which they are scored.
The same few stimuli in smaller company give slightly other numbers on every machine, which is far below that.

The first few stimuli of the first batch are asked twice in every run. Where these two answers differ the observer is
not deterministic, or answers depend on what is shown together: a note stands in its rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.labels import are_probabilities
from cuebench.responses.device import Device
from cuebench.responses.job import Job, Pieces
from cuebench.responses.pictures import BatchPictures, DecodePool
from cuebench.responses.store import KEPT, Columns
from cuebench.types import Stimulus

FIRST = 2
"""Stimuli at the beginning of the first batch that are asked twice in every run."""
STIMULI = 4
"""Stored answers, drawn by the seed, that are asked for again."""
SHARDS = 2
"""Stored batches that they are drawn from."""
TOLERANCE = 1e-3
"""Largest difference of the same answer, in spreads of its row."""
HALF_TOLERANCE = 2e-2
"""The same for the half precisions, which keep three digits of the numbers in between."""
MARGIN = 2
"""Answers of an observer that is not deterministic may differ so many times as much as two answers of one moment."""
OUT_OF_REACH = 100.0
"""Logits so far below the largest of their row are no measure of the others, …"""
ORDINARY = 40
"""… nor are numbers so many median absolute deviations away from the median of their row, …"""
FEW = 3
"""… nor are more than so many that equal the smallest of their row, as the constant of classes that are masked, …"""
GAP = 10
"""… where the spread of all is more than so many times that of the others."""
SMALLEST, SMALLEST_HALF = 1e-30, 1e-4
"""Probabilities below are all the same: single precision, and half precision, keep too few digits of them."""
_SIZE = 1e-3
"""Weight of the numbers' own size against their spread: large numbers that hardly differ are rounded more coarsely."""


@dataclass(frozen=True)
class Difference:
    """How answers differ: how many of how many stimuli by more than the tolerance, the largest, and of which column."""

    count: int = 0
    differing: int = 0
    largest: float = 0.0
    column: str = ""

    def __add__(self, other: Difference) -> Difference:
        worst = max(self, other, key=lambda d: d.largest)
        return Difference(self.count + other.count, self.differing + other.differing, worst.largest, worst.column)

    def __str__(self) -> str:
        if not self.largest < 1:  # texts and class numbers, or another number of answers
            return f"{self.differing} of {self.count} answers differ"
        most = f"by up to {self.largest:.2%} of the spread of {self.column}"
        return f"{self.differing} of {self.count} answers differ, {most}"

    def record(self) -> dict[str, Any]:
        """Return what ``run.json`` says of it."""
        largest = self.largest if np.isfinite(self.largest) else "not comparable"
        return {"stimuli": self.count, "differing": self.differing, "largest_difference": largest}


class Verdict(NamedTuple):
    """What asking again has shown: the difference, whether the stored answers hold, and the note for the rows."""

    difference: Difference
    holds: bool = True
    note: str = ""


def compare(stored: Mapping[str, Array], again: Mapping[str, Array], tolerance: float = TOLERANCE) -> Difference:
    """Compare two answers to the same stimuli: columns with ``stimulus`` = position of the row's stimulus."""
    stored, again = _sorted(stored), _sorted(again)
    positions = stored["stimulus"]
    count = len(np.union1d(positions, again["stimulus"]))
    if not np.array_equal(positions, again["stimulus"]):
        return Difference(count, count, float("inf"), "stimulus")
    if stored.keys() != again.keys():
        return Difference(count, count, float("inf"), sorted(stored.keys() ^ again.keys())[0])
    differing, largest, column = np.zeros(len(positions), np.bool_), 0.0, ""
    for name in sorted(stored.keys() - {"stimulus"}):
        differences = _differences(name, *_as_scored(name, stored[name], again[name], tolerance))
        differing |= differences > tolerance
        if len(differences) and differences.max() > largest:
            largest, column = float(differences.max()), name
    return Difference(count, len(np.unique(positions[differing])), largest, column)


def _sorted(columns: Mapping[str, Array]) -> Columns:
    order = np.argsort(columns["stimulus"], kind="stable")
    # What is kept for people to look at is made from the answers, and is not read back with them.
    return {name: values[order] for name, values in columns.items() if not name.startswith(KEPT)}


def _as_scored(name: str, stored: Array, again: Array, tolerance: float) -> tuple[Array, Array]:
    """Return logarithms where both answers are probabilities: of two that are tiny, the larger may be the decision."""
    if name != "logits" or not (len(stored) and are_probabilities(stored) and are_probabilities(again)):
        return stored, again
    smallest = SMALLEST_HALF if tolerance > TOLERANCE else SMALLEST
    return np.log(np.maximum(stored, smallest)), np.log(np.maximum(again, smallest))


def _differences(name: str, stored: Array, again: Array) -> Array:
    """Return how much each row differs; 1 or more: another text or class."""
    rows = len(stored)
    if not rows:
        return np.zeros(0)
    first, second = stored.reshape(rows, -1), again.reshape(rows, -1)
    if first.shape != second.shape:
        return np.full(rows, np.inf)
    if name == "masks":
        return np.asarray((first != second).mean(axis=1))
    if not (first.dtype.kind in "iuf" and second.dtype.kind in "iuf"):
        return np.asarray((first != second).any(axis=1).astype(float))
    whole_numbers = first.dtype.kind in "iu" and second.dtype.kind in "iu"
    first, second = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(invalid="ignore"):
        equal = (first == second) | (np.isnan(first) & np.isnan(second))
        difference = np.where(equal, 0, np.nan_to_num(np.abs(first - second), nan=np.inf))
    if whole_numbers:  # one number is a class; several are counts, such as pixels of a confusion matrix
        if first.shape[1] == 1:
            return np.asarray((~equal[:, 0]).astype(float))
        return np.asarray(difference.sum(axis=1) / np.maximum(np.abs(first).sum(axis=1), 1))
    finite = np.isfinite(first)
    worst = _in_spreads(difference, first, second, finite)
    if name in ("logits", "features"):
        near = _without_outliers(name, first, finite)
        apart = near.any(axis=1) & (_spread(first, finite) > GAP * _spread(first, near)) & (_spread(first, near) > 0)
        worst[apart] = np.maximum(worst, _in_spreads(np.where(near, difference, 0), first, second, near))[apart]
    return worst


def _without_outliers(name: str, values: Array, finite: Array) -> Array:
    """Return which numbers of each row are the measure of the others: no masked class, none that dwarfs the rest."""
    if name != "logits":
        return _ordinary(values, finite)
    smallest = np.where(finite, values, np.inf).min(axis=1, keepdims=True)
    alike = finite & (values == smallest)
    counted = finite & ~(alike & (alike.sum(axis=1, keepdims=True) > FEW))
    near = _ordinary(values, counted)
    highest = np.where(near, values, -np.inf).max(axis=1, keepdims=True)
    return _ordinary(values, counted & (values <= highest) & (values > highest - OUT_OF_REACH))


def _ordinary(values: Array, counted: Array) -> Array:
    """Return which of the counted numbers of each row are not far from all the others."""
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # a row without any number, or all of them equal
        kept = np.where(counted, values, np.nan)
        away = np.abs(kept - np.nanmedian(kept, axis=1, keepdims=True))
        # Half of the features are 0 after a ReLU: what is exactly the median says nothing of the deviations.
        usual = np.nanmedian(np.where(away > 0, away, np.nan), axis=1, keepdims=True)
    return counted & ((away <= ORDINARY * usual) | np.isnan(usual))


def _spread(values: Array, counted: Array) -> Array:
    high, low = np.where(counted, values, -np.inf).max(axis=1), np.where(counted, values, np.inf).min(axis=1)
    return np.where(counted.any(axis=1), high - low, 0)


def _in_spreads(difference: Array, first: Array, second: Array, counted: Array) -> Array:
    """Return the largest difference of each row, in spreads of those of its first numbers that are counted."""
    size = np.maximum(*(np.where(counted & np.isfinite(a), np.abs(a), 0).max(axis=1) for a in (first, second)))
    scale = _spread(first, counted) + _SIZE * size
    worst = difference.max(axis=1)
    return np.asarray(np.divide(worst, scale, out=np.where(worst > 0, np.inf, 0.0), where=scale > 0))


def tolerance_of(job: Job) -> float:
    """Return how much the same answer may differ, for the precision of an observer."""
    return HALF_TOLERANCE if job.shards.key.precision in ("float16", "bfloat16") else TOLERANCE


def rows_of(columns: Mapping[str, Array], positions: Sequence[int]) -> Columns:
    """Return the rows of some stimuli of a batch, ``stimulus`` counted among these."""
    index = {position: number for number, position in enumerate(positions)}
    kept = np.isin(columns["stimulus"], list(positions))
    numbers = np.array([index[int(p)] for p in columns["stimulus"][kept]], dtype=np.int32)
    return {**{name: values[kept] for name, values in columns.items()}, "stimulus": numbers}


def first_asked_twice(
    job: Job, batch: Sequence[Stimulus], hidden: Mapping[int, str], images: Any, columns: Columns, pieces: Pieces
) -> Difference:
    """Ask the first few stimuli of a batch that was just answered a second time, and compare."""
    shown = [i for i in range(len(batch)) if i not in hidden][:FIRST]
    if not shown:
        return Difference()
    pixels = None if images is None else images[: len(shown)]
    again = job.answer([batch[i] for i in shown], {}, pixels, pieces)
    return compare(rows_of(columns, shown), again, tolerance_of(job))


def note_of(difference: Difference) -> str:
    """Return the note for the rows of an observer whose answers differ when it is asked twice."""
    return f"not deterministic, or dependent on what is shown together: {difference} when asked again"


@dataclass(frozen=True)
class Examiner:
    """Asks an observer for stored answers again.

    Parameters
    ----------
    device : Device
        Which observers are on the device.
    pieces : Pieces
        How much each observer can take at once.
    seed : int
        Draws the stimuli.
    """

    device: Device
    pieces: Pieces
    seed: int = 0

    def examine(self, job: Job, stored: Mapping[int, Sequence[Stimulus]]) -> Verdict:
        """Compare a few stored answers with those of now.

        Parameters
        ----------
        job : Job
            Whose answers.
        stored : mapping of int to sequence of Stimulus
            Position of the first stimulus → batch, for every batch that is stored.
        """
        beginning = [(0, self._shown(job, stored[0])[:FIRST])] if 0 in stored else []
        wanted = [*beginning, *self._drawn(job, stored)]
        differences = self._differences(job, stored, wanted)
        first = differences[0] if beginning else Difference()
        if first.differing:  # in the company in which a run asks them twice: the note of its rows stays the same
            (first,) = self._differences(job, stored, beginning)
        total, suspect, worst = Difference(), 0, first
        for (start, _), difference in zip(wanted, differences):
            if difference.largest > worst.largest:
                suspect, worst = start, difference
            total += difference
        if not total.differing:
            return Verdict(total)
        # In the company in which they were answered, once and once more: an observer may not be deterministic.
        batch, tolerance = stored[suspect], tolerance_of(job)
        shown = self._shown(job, batch)
        now, readable = self._ask(job, batch, shown)
        changed = compare(rows_of(job.shards.read(batch)[0], readable), now, tolerance)
        if not changed.differing:
            return Verdict(total, note=note_of(first) if first.differing else "")
        unsteady = compare(now, self._ask(job, batch, shown)[0], tolerance)
        much_more = changed.largest > MARGIN * unsteady.largest or changed.differing > MARGIN * (unsteady.differing + 1)
        if much_more or not unsteady.differing:
            return Verdict(total, holds=False)
        return Verdict(total, note=note_of(first if first.differing else changed))

    def _drawn(self, job: Job, stored: Mapping[int, Sequence[Stimulus]]) -> list[tuple[int, list[int]]]:
        """Draw a few positions of a few batches."""
        rng = np.random.default_rng([self.seed, int(job.shards.key.digest[:8], 16)])
        starts = rng.permutation(sorted(stored))[:SHARDS].tolist()
        each = STIMULI // len(starts)
        drawn = []
        for start in starts:
            shown = self._shown(job, stored[start])
            drawn.append((start, sorted(rng.permutation(shown)[:each].tolist())))
        return drawn

    def _shown(self, job: Job, batch: Sequence[Stimulus]) -> list[int]:
        hidden = job.shards.stored(batch) or {}
        return [i for i in range(len(batch)) if i not in hidden]

    def _differences(
        self, job: Job, stored: Mapping[int, Sequence[Stimulus]], wanted: Sequence[tuple[int, Sequence[int]]]
    ) -> list[Difference]:
        """Compare stored answers with those of now, for positions of several shards: they are asked all at once."""
        places = [(number, position) for number, (_, positions) in enumerate(wanted) for position in positions]
        if not places:
            return [Difference()] * len(wanted)
        stimuli = [stored[wanted[number][0]][position] for number, position in places]
        again, readable = self._ask(job, stimuli, range(len(stimuli)))
        differences = []
        for number, (start, _) in enumerate(wanted):
            rows = [row for row, place in enumerate(readable) if places[place][0] == number]
            positions = [places[readable[row]][1] for row in rows]
            before = rows_of(job.shards.read(stored[start])[0], positions)
            differences.append(compare(before, rows_of(again, rows), tolerance_of(job)) if rows else Difference())
        return differences

    def _ask(self, job: Job, batch: Sequence[Stimulus], positions: Sequence[int]) -> tuple[Columns, list[int]]:
        """Return the answers to some stimuli of a batch, and the positions of those that can be shown now."""
        images = None
        if job.geometry is not None:
            stimuli = [batch[i] for i in positions]
            # Here and not in worker processes: waiting until these have started would take longer.
            pictures = BatchPictures.request(DecodePool(0), job.stimuli.root, stimuli, [job.geometry])
            unreadable = pictures.unreadable()
            images = pictures.of(job.geometry)
            positions = [position for i, position in enumerate(positions) if i not in unreadable]
        self.device.admit(job.observer)
        return job.answer([batch[i] for i in positions], {}, images, self.pieces), list(positions)
