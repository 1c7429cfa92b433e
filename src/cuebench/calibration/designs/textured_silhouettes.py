"""Textured silhouettes: the pictures of cue conflict that are in conflict, on a background that is gone."""

from __future__ import annotations

import numpy as np

from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.designs.cue_conflict import SPACE, conflict_set, decisions, ratio_truths
from cuebench.calibration.planted import Planted
from cuebench.labels import label_space
from cuebench.protocols.textured_silhouettes import NAME
from cuebench.responses.table import Responses

CONDITION = "alpha=1.0"


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the observer's decisions on the pictures of one α."""
    stimuli = conflict_set(planted.images, aligned=False, condition=CONDITION)
    return [responses(stimuli, decisions(planted, stimuli, rng), label_space(SPACE))]


def truths(planted: Planted) -> dict[Number, float]:
    """Return the four ratios among 16 classes."""
    return ratio_truths(planted, CONDITION, planted.classes)


DESIGN = Design(NAME, answers, truths, "1,200 pictures of 160 shapes in 48 textures of 16 classes")
