"""Corruption robustness: photographs under every published corruption."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array
from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.designs.cue_conflict import CLASSES
from cuebench.calibration.planted import Planted, happens, with_guesses
from cuebench.labels import LabelSpace
from cuebench.protocols.correctness import ANSWER
from cuebench.protocols.corruption_robustness import NAME
from cuebench.protocols.corruption_robustness.corruptions import CLEAN, corruptions
from cuebench.responses.table import Responses
from cuebench.types import Stimulus, StimulusSet

SPACE = LabelSpace("targets", CLASSES)
PHOTOGRAPHS = 160


@lru_cache(maxsize=4)
def _stimuli(images: float) -> tuple[StimulusSet, Array, Array, Array]:
    """Return the pictures; class and photograph of each, and whether it is clean."""
    number = max(16, round(PHOTOGRAPHS * images))
    planned = corruptions(keep_colour=False)
    photographs = [Stimulus(f"{i}", label=CLASSES[i % len(CLASSES)]) for i in range(number)]
    stimuli = tuple(c.stimulus(s, "") for s in photographs for c in planned)
    label = np.array([CLASSES.index(s.label) for s in stimuli])
    clean = np.array([s.condition == CLEAN for s in stimuli])
    return StimulusSet(NAME, stimuli), label, np.repeat(np.arange(number), len(planned)), clean


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the class that was answered to each picture."""
    stimuli, label, photograph, clean = _stimuli(planted.images)
    known = np.zeros(len(label), bool)
    for rows, rate in ((clean, planted.competence), (~clean, planted.by_shape)):
        known[rows] = happens(rate, planted.spread, rng, photograph[rows])
    guess = rng.integers(len(CLASSES), size=len(label))
    return [responses(stimuli, {ANSWER: np.where(known, label, guess)}, SPACE)]


def truths(planted: Planted) -> dict[Number, float]:
    """Return the accuracy on clean photographs, and what is left of it."""
    clean, left = (with_guesses(r, planted.classes or len(CLASSES)) for r in (planted.competence, planted.by_shape))
    return {
        ("mean", "relative_robustness"): left / clean,
        ("contrast", "relative_robustness"): left / clean,
        (CLEAN, "accuracy"): clean,
    }


DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{PHOTOGRAPHS} photographs of 16 classes under every published corruption",
    weight="share of the known photographs that are still known when corrupted",
    sources="photographs",
    absent={"mean_iou": "calibrated in cue_decomposition_segmentation"},
)
