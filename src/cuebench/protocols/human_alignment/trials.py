"""Who was right in which trial: the answers of all observers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools, Positions
from cuebench.labels import LabelSpace, label_map
from cuebench.labels.decisions import named, named_full, partial_space
from cuebench.observers.model_vs_human import DATA_SETS
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.trials import TrialRows, class_names
from cuebench.responses.table import Reduce, Responses, once
from cuebench.stimuli.readers.model_vs_human import TARGETS
from cuebench.types import Stimulus, StimulusSet

DECISION = "decision_among_targets"
"""What is kept of logits: the position of the category that was decided for."""


class Measured(NamedTuple):
    """What is kept of one observer: which stimuli it answered, correctly or not, and for pooled people who answered."""

    responses: Responses
    stimulus: Array
    correct: Bools
    subjects: Array | None = None


def condense(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Keep of the logits the decision among the 16 categories, by the mean probability of their members."""
    resolved = None if labels is None else label_map(stimuli.targets or TARGETS).resolve(labels)

    def decided(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        kept = {name: values for name, values in columns.items() if name != "logits"}
        if "logits" in columns and resolved is not None:
            kept[DECISION] = partial_space(columns["logits"], resolved).astype(np.int16)
        return kept

    return decided


class Answers(NamedTuple):
    """What was answered: positions among the 16 categories (−1: none of them), and whether it is correct."""

    names: tuple[str, ...]
    decisions: Positions
    correct: Bools


def answers_of(responses: Responses) -> Answers:
    """Compare the answers of one observer with the categories (in cue conflict: with the shape)."""
    targets, space, columns = label_map(responses.stimuli.targets or TARGETS), responses.labels, responses.columns
    if DECISION in columns:
        decisions = columns[DECISION].astype(np.intp)
    elif space is None or "decisions" not in columns:
        decisions = named(columns.get("decisions", np.zeros(len(responses), np.str_)), targets.names)
    else:
        decisions = named_full(columns["decisions"], space, targets.resolve(space))
    return Answers(targets.names, decisions, decisions == named(responses.truth("label"), targets.names))


def measure(responses: Responses, options: ScoreOptions) -> Measured:
    """Keep of one observer which answers are correct."""
    return Measured(responses, responses.stimulus.astype(np.int32), answers_of(responses).correct, responses.subjects)


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the decision of each answer among the 16 categories, and whether it is correct."""
    answers = answers_of(responses.condensed(condense(responses.stimuli, responses.labels)))
    columns = {"decision": class_names(answers.decisions, answers.names), "correct": answers.correct}
    return [TrialRows(responses.truth("condition"), np.arange(len(responses)), columns)]


@dataclass(frozen=True)
class Contest:
    """All observers of a run, and whom each is compared with.

    Parameters
    ----------
    observers : list of Measured
        In the order of the run.
    units : list of str
        Names of those who answered: models and people, one row each in ``seen`` and ``correct``.
    seen, correct : bool arrays units × images
        Whether an image was answered, and answered correctly.
    places : mapping of str to int array
        ``<data set>/<condition>`` → its images, in the order of the published conditions.
    members : list of int arrays
        Observer → its units: one, or all people of a pool.
    pairs : int array pairs × 2
        Units that are compared.
    compared : list of int arrays
        Observer → its pairs.
    """

    observers: list[Measured]
    units: list[str]
    seen: Bools
    correct: Bools
    places: dict[str, Positions]
    members: list[Positions]
    pairs: Positions
    compared: list[Positions]

    @classmethod
    def of(cls, everyone: Sequence[Measured]) -> Contest:
        """Put the answers of all observers side by side."""
        ids, conditions = _images([m.responses.stimuli for m in everyone])
        units, members, people, answers = _units(everyone)
        seen = np.zeros((len(units), len(ids)), bool)
        correct = np.zeros_like(seen)
        for row, (measured, rows) in enumerate(answers):
            stimuli = measured.responses.stimuli
            position = once(stimuli, "place in ids", lambda m=measured: np.searchsorted(ids, _ids(m)))  # type: ignore[misc]
            place = position[measured.stimulus[rows]]
            seen[row, place] = True
            correct[row, place] = measured.correct[rows]
        known: dict[tuple[int, int], int] = {}
        compared = []
        for measured, own_units in zip(everyone, members):
            if measured.subjects is not None:
                wanted = list(combinations(sorted(own_units.tolist()), 2))
            else:
                unit = int(own_units[0])
                wanted = [(min(unit, p), max(unit, p)) for p in people if p != unit]
            compared.append(np.array([known.setdefault(pair, len(known)) for pair in wanted], np.intp))
        pairs = np.array(list(known), np.intp).reshape(-1, 2)
        places = {c: np.flatnonzero(conditions == c) for c in _in_order(np.unique(conditions).tolist())}
        return cls(list(everyone), units, seen, correct, places, members, pairs, compared)

    @property
    def data_sets(self) -> dict[str, list[str]]:
        """Data set → the conditions of it that are there, as ``<data set>/<condition>``."""
        by_data_set: dict[str, list[str]] = {}
        for place in self.places:
            by_data_set.setdefault(place.partition("/")[0], []).append(place)
        return by_data_set


def _ids(measured: Measured) -> Array:
    return np.array([s.id for s in measured.responses.stimuli], np.str_)


def _images(sets: Sequence[StimulusSet]) -> tuple[Array, Array]:
    """Return the ids of all images, sorted, and the condition of each."""
    distinct = {id(stimuli): stimuli for stimuli in sets}.values()
    condition = {s.id: s.condition for stimuli in distinct for s in stimuli}
    ids = sorted(condition)
    for stimuli in distinct:
        vars(stimuli).get("_made", {}).pop("place in ids", None)  # of another run of the same stimuli
    return np.array(ids, np.str_), np.array([condition[i] for i in ids], np.str_)


def _units(
    everyone: Sequence[Measured],
) -> tuple[list[str], list[Positions], list[int], list[tuple[Measured, Array | slice]]]:
    """Return the units, the units of each observer, those that are people, and the rows that each unit answered.

    People of a pool are units of their own where they are no observers of the run themselves.
    """
    units, people, answers = list[str](), list[int](), list[tuple[Measured, Array | slice]]()
    persons = dict[str, int]()
    members: dict[int, Positions] = {}
    for k, measured in enumerate(everyone):
        if measured.subjects is None:
            members[k] = np.array([len(units)], np.intp)
            if measured.responses.kind == "person":
                persons[measured.responses.observer] = len(units)
                people.append(len(units))
            units.append(measured.responses.observer)
            answers.append((measured, slice(None)))
    for k, measured in enumerate(everyone):
        if measured.subjects is None:
            continue
        pool = []
        for name in np.unique(measured.subjects).tolist():
            if name not in persons:
                persons[name] = len(units)
                people.append(len(units))
                units.append(name)
                answers.append((measured, measured.subjects == name))
            pool.append(persons[name])
        members[k] = np.array(pool, np.intp)
    return units, [members[k] for k in range(len(everyone))], people, answers


def _in_order(places: Sequence[str]) -> list[str]:
    published = [f"{d.name}/{c}" if c else d.name for d in DATA_SETS.values() for c in (*d.conditions, "")]
    order = {place: k for k, place in enumerate(published)}
    return sorted(places, key=lambda place: (order.get(place, len(order)), place))
