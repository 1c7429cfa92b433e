"""Pure shape: ten silhouettes and ten edge images of each of 16 classes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.designs.cue_conflict import CLASSES, SPACE, guessed
from cuebench.calibration.planted import Planted, happens
from cuebench.labels import label_map, label_space
from cuebench.protocols.cue_conflict import TARGETS
from cuebench.protocols.pure_shape import NAME, SETS
from cuebench.responses.table import Responses
from cuebench.tables.decide import AMONG_ALL, AMONG_TARGETS
from cuebench.types import REMOVED, Stimulus, StimulusSet


@lru_cache(maxsize=4)
def _stimuli(images: float) -> StimulusSet:
    number = max(2, round(10 * images))
    return StimulusSet(
        NAME,
        tuple(
            Stimulus(f"{name}/{c}{i}", label=c, shape=c, texture=REMOVED, shape_source=f"{c}{i}", condition=name)
            for name in SETS
            for c in CLASSES
            for i in range(number)
        ),
        targets=TARGETS,
    )


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return decisions among 16 and among 1,000 classes; an answer by texture is a guess here."""
    stimuli, space = _stimuli(planted.images), label_space(SPACE)
    truth = np.array([CLASSES.index(s.label) for s in stimuli])
    known = happens(planted.by_shape, planted.spread, rng, truth)
    owner = label_map(TARGETS).resolve(space).target_of(len(space))
    few, many = rng.integers(len(CLASSES), size=len(truth)), owner[rng.integers(len(space), size=len(truth))]
    columns = {AMONG_TARGETS: np.where(known, truth, few), AMONG_ALL: np.where(known, truth, many)}
    return [responses(stimuli, columns, space)]


def truths(planted: Planted) -> dict[Number, float]:
    """Return the recognition of both sets in both label spaces."""
    rate = planted.by_shape
    return {
        (f"{name}/{way}-way", "recognition"): rate + (1 - rate) * guessed(classes)
        for name in SETS
        for way, classes in ((16, planted.classes), (1000, 1000))
    }


DESIGN = Design(NAME, answers, truths, "160 silhouettes and 160 edge images of 16 classes", sources="classes")
