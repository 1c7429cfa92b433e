"""Recorded choices of people (or models) between the two matches of triplets: a decision for each trial, no features.

A recording names the three images of each trial and the choice (``observers/recorded_files.py``). Here a trial becomes
a stimulus whose id is ``CONDITION|ANCHOR|SHAPE MATCH|OTHER MATCH``; images are called ``SHAPE-TEXTURE``, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError, all_problems
from cuebench.metrics.triplet_shape_bias import shared_terms, terms
from cuebench.metrics.triplets import Role, Tally
from cuebench.observers.recorded_columns import CHOICE_SHAPE, CHOICE_TEXTURE
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.trials import TrialRows
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import mean_of_subjects, ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
from cuebench.statistics.ratios import Terms
from cuebench.tables.engine import Result
from cuebench.tables.trials import SHAPE, TEXTURE
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
        stimuli.append(
            Stimulus(
                id=name,
                shape=_shape_of(images[0]),
                texture=images[0].partition("-")[2],
                shape_source=_shape_of(images[0]),
                texture_source=_texture_of(images[0]),
                condition=condition,
            )
        )
    if problems or not stimuli:
        hint = "a shape match shares only the shape with its anchor, the other match only the texture, size or colour"
        raise all_problems("recorded triplets", problems or ["none"], hint)
    return StimulusSet("triplets", tuple(stimuli))


def _shape_of(image: str) -> str:
    """Return the shape that an image shows: ``SHAPE`` of ``SHAPE-TEXTURE``; of another name, the image itself."""
    return image.partition("-")[0]


def _texture_of(image: str) -> str:
    """Return the texture of an image; of a name that does not say it, the image itself."""
    return image.partition("-")[2] or image


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
    """The decided trials of one condition: row in the answers, whether the shape match was chosen, and three images."""

    rows: Array
    shape: Array
    images: Array
    unanswered: int

    def by_image(self, people: Array | None) -> tuple[Tally, Clusters]:
        """Count the choices of each person about each image: as the anchor, as the shape match, as the other match.

        So a shape and a texture count with all trials in which they appear, as they do for networks.
        """
        names, image = np.unique(self.images, return_inverse=True)
        persons, person = np.unique(np.zeros(len(self.rows)) if people is None else people, return_inverse=True)
        cells, cell = np.unique(image.reshape(-1, 3) + len(names) * person.reshape(-1, 1), return_inverse=True)
        roles = []
        for shown_as in cell.reshape(-1, 3).T:
            by_shape, every = (np.bincount(shown_as, w, len(cells)) for w in (self.shape, np.ones(len(self.shape))))
            roles.append(Role(np.asarray(by_shape, np.float64), np.asarray(every, np.float64)))
        anchor, *matches = roles
        shown = names[cells % len(names)]
        return (
            Tally(anchor.shape, anchor.trials - anchor.shape, np.zeros(len(cells)), *matches),
            Clusters(
                shown,
                np.array([_shape_of(name) for name in shown]),
                np.array([_texture_of(name) for name in shown]),
                None if people is None else persons[cells // len(names)],
            ),
        )


def chosen(responses: Responses) -> dict[str, Chosen]:
    """Return condition → its decided trials."""
    answers = responses.columns[COLUMN].astype(np.str_)
    conditions = responses.truth("condition")
    shown = [s.id.split("|")[1:] for s in responses.stimuli]
    if any(len(images) != 3 for images in shown):
        hint = "record choices with the columns anchor, shape_match and texture_match"
        raise UserError(f"choices of {responses.observer} are not about triplets", hint)
    images = np.array(shown, dtype=np.str_).reshape(-1, 3)[responses.stimulus]
    by_condition = {}
    for condition in dict.fromkeys(conditions.tolist()):
        of_condition = conditions == condition
        rows = np.flatnonzero(of_condition & np.isin(answers, (CHOICE_SHAPE, CHOICE_TEXTURE)))
        shape = (answers[rows] == CHOICE_SHAPE).astype(float)
        by_condition[condition] = Chosen(rows, shape, images[rows], int(of_condition.sum()) - len(rows))
    return by_condition


def trial_rows(responses: Responses) -> Iterator[TrialRows]:
    """Return a row for each choice: which match it was."""
    for condition, trials in chosen(responses).items():
        words = np.where(trials.shape > 0, SHAPE, TEXTURE)
        columns = {"outcome": words, "value": trials.shape, "n": np.ones(len(trials.rows))}
        yield TrialRows(condition, trials.rows, columns)


def contributions(responses: Responses, condition: str) -> Sums | None:
    """Return the share of shape choices as a ratio of sums over images."""
    trials = chosen(responses).get(condition)
    if trials is None:
        return None
    people = responses.subjects
    tally, clusters = trials.by_image(None if people is None else people[trials.rows])
    kinds: tuple[IntervalKind, ...] = KINDS[1:3] if people is None else (*KINDS[1:3], "subjects")
    sources: dict[IntervalKind, Array] = {kind: clusters.of(kind) for kind in kinds}
    return Sums.of_ratio(terms(tally), clusters.images, sources, shared_terms(tally))


def measure(responses: Responses, options: ScoreOptions) -> Result:
    """Return the share of shape choices in every condition; of pooled people also the mean over people."""
    result = Result()
    subjects = responses.subjects
    kinds: tuple[IntervalKind, ...] = KINDS if subjects is None else (*KINDS, "subjects", "three_way")
    for condition, trials in chosen(responses).items():
        people = None if subjects is None else subjects[trials.rows]
        tally, clusters = trials.by_image(people)
        (estimate,) = ratio_estimates([terms(tally)], clusters, kinds, shared=[shared_terms(tally)])
        note = f"recorded choices in {len(set(responses.stimulus[trials.rows].tolist())):,} triplets"
        result.add(responses, condition, BIAS, estimate.excluding({"unanswered": trials.unanswered}).noting(note))
        if people is not None:
            mean = mean_of_subjects(Terms(trials.shape, np.ones(len(trials.shape))), people)
            result.add(responses, f"{condition}/mean_of_subjects", BIAS, mean)
    return result
