"""Recorded choices of people (or models) between the two matches of triplets: a decision for each trial, no features.

A recording names the three images of each trial and the choice (``observers/recorded_files.py``). Here a trial becomes
a stimulus whose id is ``CONDITION|ANCHOR|SHAPE MATCH|OTHER MATCH``; images are called ``SHAPE-TEXTURE``, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import all_problems
from cuebench.metrics.triplet_shape_bias import terms
from cuebench.metrics.triplets import Tally
from cuebench.observers.recorded_files import CHOICE_SHAPE, CHOICE_TEXTURE
from cuebench.protocols.base import Result, ScoreOptions
from cuebench.protocols.trials import SHAPE, TEXTURE, TrialRows
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import mean_of_subjects, ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
from cuebench.statistics.ratios import Terms
from cuebench.types import IntervalKind, Stimulus, StimulusSet

COLUMN = "choices"
BIAS = "triplet_shape_bias"


def stimuli_from_recordings(names: Sequence[str]) -> StimulusSet:
    """Build the trials from their names; those that are no triplets are all reported at once."""
    stimuli, problems = [], []
    for name in sorted(set(names)):
        condition, *images = name.split("|")
        if len(images) != 3:
            problems.append(f"{name!r} is no triplet: anchor, shape match, other match")
            continue
        problem = _problem(*images)
        problems += [f"{' | '.join(images)}: {problem}"] if problem else []
        shape, _, texture = images[0].partition("-")
        stimuli.append(
            Stimulus(
                id=name,
                shape=shape,
                texture=texture,
                shape_source=shape,
                texture_source=texture or images[0],
                condition=condition,
            )
        )
    if problems or not stimuli:
        hint = "a shape match shares only the shape with its anchor, the other match only the texture, size or colour"
        raise all_problems("recorded triplets", problems or ["none"], hint)
    return StimulusSet("triplets", tuple(stimuli))


def _problem(anchor: str, shape_match: str, other_match: str) -> str:
    """Say why three names are no triplet; names that do not say what they show cannot be checked."""
    parts = [name.partition("-") for name in (anchor, shape_match, other_match)]
    if not all(dash for _, dash, _ in parts):
        return ""
    (shape, _, texture), (same_shape, _, other_texture), (other_shape, _, same_texture) = parts
    if shape != same_shape or texture == other_texture:
        return f"{shape_match} is no shape match of {anchor}"
    if texture != same_texture or shape == other_shape:
        return f"{other_match} is no match of {anchor} in anything but shape"
    return ""


class Chosen(NamedTuple):
    """The decided trials of one condition: row in the answers, whether the shape match was chosen, and the anchor."""

    rows: Array
    shape: Array
    anchors: Array
    unanswered: int

    @property
    def terms(self) -> Terms:
        """What each trial adds to the share of shape choices."""
        return terms(Tally(self.shape, 1 - self.shape, np.zeros(len(self.shape))))


def chosen(responses: Responses) -> dict[str, Chosen]:
    """Return condition → its decided trials."""
    answers = responses.columns[COLUMN].astype(np.str_)
    conditions = responses.truth("condition")
    anchors = np.array([s.id.split("|")[1] for s in responses.stimuli], dtype=np.str_)[responses.stimulus]
    found = {}
    for condition in dict.fromkeys(conditions.tolist()):
        shown = conditions == condition
        rows = np.flatnonzero(shown & np.isin(answers, (CHOICE_SHAPE, CHOICE_TEXTURE)))
        shape = (answers[rows] == CHOICE_SHAPE).astype(float)
        found[condition] = Chosen(rows, shape, anchors[rows], int(shown.sum()) - len(rows))
    return found


def trial_rows(responses: Responses) -> Iterator[TrialRows]:
    """Return a row for each choice: which match it was."""
    for condition, trials in chosen(responses).items():
        words = np.where(trials.shape > 0, SHAPE, TEXTURE)
        columns = {"outcome": words, "value": trials.shape, "n": np.ones(len(trials.rows))}
        yield TrialRows(condition, trials.rows, columns)


def contributions(responses: Responses, condition: str) -> Sums | None:
    """Return the share of shape choices as a ratio of sums over anchors."""
    trials = chosen(responses).get(condition)
    if trials is None:
        return None
    sources: dict[IntervalKind, Array] = {
        "shape_sources": responses.truth("shape_source")[trials.rows],
        "texture_sources": responses.truth("texture_source")[trials.rows],
    }
    return Sums.of_ratio(trials.terms, trials.anchors, sources)


def measure(responses: Responses, options: ScoreOptions) -> Result:
    """Return the share of shape choices in every condition; of pooled people also the mean over people."""
    result = Result()
    subjects = responses.columns.get("subject") if responses.kind == "people" else None
    kinds: tuple[IntervalKind, ...] = KINDS if subjects is None else (*KINDS, "subjects", "three_way")
    for condition, trials in chosen(responses).items():
        shape, texture = (responses.truth(field)[trials.rows] for field in ("shape_source", "texture_source"))
        people = None if subjects is None else np.asarray(subjects, np.str_)[trials.rows]
        clusters = Clusters(trials.anchors, shape, texture, people)
        (estimate,) = ratio_estimates([trials.terms], clusters, kinds)
        note = f"recorded choices in {len(set(responses.stimulus[trials.rows].tolist())):,} triplets"
        result.add(responses, condition, BIAS, estimate.excluding({"unanswered": trials.unanswered}).noting(note))
        if people is not None:
            mean = mean_of_subjects(trials.terms, people)
            note = f"mean over {mean.n} subjects"
            result.add(responses, f"{condition}/mean_of_subjects", BIAS, mean.noting(note))
    return result
