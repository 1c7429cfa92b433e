"""Recorded choices of people (or models) between the two matches of triplets: a decision for each trial, no features.

A recording names the three images of each trial and the choice (``observers/recorded_files.py``). Here a trial becomes
a stimulus whose id is ``CONDITION|ANCHOR|SHAPE MATCH|OTHER MATCH``; images are called ``SHAPE-TEXTURE``, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuebench.errors import all_problems
from cuebench.metrics.triplet_shape_bias import terms
from cuebench.metrics.triplets import Tally
from cuebench.observers.recorded_files import CHOICE_SHAPE, CHOICE_TEXTURE
from cuebench.protocols.base import Result, ScoreOptions
from cuebench.responses.table import Responses
from cuebench.statistics.estimates import mean_of_subjects, ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
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


def measure(responses: Responses, options: ScoreOptions) -> Result:
    """Return the share of shape choices in every condition; of pooled people also the mean over people."""
    result = Result()
    chosen = responses.columns[COLUMN].astype(np.str_)
    conditions = responses.truth("condition")
    subjects = responses.columns.get("subject") if responses.kind == "people" else None
    kinds: tuple[IntervalKind, ...] = KINDS if subjects is None else (*KINDS, "subjects")
    anchors = np.array([s.id.split("|")[1] for s in responses.stimuli], dtype=np.str_)[responses.stimulus]
    for condition in dict.fromkeys(conditions.tolist()):
        shown = conditions == condition
        rows = shown & np.isin(chosen, (CHOICE_SHAPE, CHOICE_TEXTURE))
        nothing = np.zeros(int(rows.sum()))
        shape, texture = ((chosen[rows] == word).astype(float) for word in (CHOICE_SHAPE, CHOICE_TEXTURE))
        added = terms(Tally(shape, texture, nothing))
        people = None if subjects is None else np.asarray(subjects, np.str_)[rows]
        clusters = Clusters(
            anchors[rows], responses.truth("shape_source")[rows], responses.truth("texture_source")[rows], people
        )
        (estimate,) = ratio_estimates([added], clusters, kinds, seed=options.seed, resamples=options.resamples)
        unanswered = int(shown.sum() - rows.sum())
        note = f"recorded choices in {len(set(responses.truth('id')[rows])):,} triplets"
        result.add(responses, condition, BIAS, estimate.excluding({"unanswered": unanswered}).noting(note))
        if people is not None:
            mean = mean_of_subjects(added, people, seed=options.seed, resamples=options.resamples)
            note = f"mean over {mean.n} subjects"
            result.add(responses, f"{condition}/mean_of_subjects", BIAS, mean.noting(note))
    return result
