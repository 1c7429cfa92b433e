"""Feature suppression: photographs without shape, without texture, without colour, at every published level."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array
from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.designs.cue_conflict import CLASSES
from cuebench.calibration.planted import Planted, happens, with_guesses
from cuebench.labels import LabelSpace
from cuebench.protocols.correctness import ANSWER
from cuebench.protocols.feature_suppression import NAME
from cuebench.protocols.feature_suppression.suppressions import LEVELS, ORIGINAL, suppressions
from cuebench.responses.table import Responses
from cuebench.types import Stimulus, StimulusSet

SPACE = LabelSpace("targets", CLASSES)
PHOTOGRAPHS = 160


@lru_cache(maxsize=4)
def _stimuli(images: float) -> tuple[StimulusSet, Array, Array, dict[str, Array]]:
    """Return the pictures; class and photograph of each; and what was taken away → its pictures."""
    number = max(16, round(PHOTOGRAPHS * images))
    planned = [c for c in suppressions() if len(c.kinds) < 2]  # pairs enter no other number
    photographs = [Stimulus(f"{i}", label=CLASSES[i % len(CLASSES)]) for i in range(number)]
    stimuli = tuple(c.stimulus(s) for s in photographs for c in planned)
    kind = np.array([c.kinds[0] if c.kinds else ORIGINAL for _ in photographs for c in planned])
    label = np.array([CLASSES.index(s.label) for s in stimuli])
    rows = {k: kind == k for k in (ORIGINAL, *LEVELS)}
    return StimulusSet(NAME, stimuli), label, np.repeat(np.arange(number), len(planned)), rows


def known_rates(planted: Planted) -> dict[str, float]:
    """Return what was taken away → how often the class is known."""
    either = planted.competence
    return {ORIGINAL: either, "shape": planted.by_texture, "texture": planted.by_shape, "colour": either}


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the class that was answered to each picture; what is planted is drawn anew for each picture."""
    stimuli, label, photograph, rows = _stimuli(planted.images)
    known = np.zeros(len(label), bool)
    for kind, rate in known_rates(planted).items():
        known[rows[kind]] = happens(rate, planted.spread, rng, photograph[rows[kind]])
    guess = rng.integers(len(CLASSES), size=len(label))
    return [responses(stimuli, {ANSWER: np.where(known, label, guess)}, SPACE)]


def truths(planted: Planted) -> dict[Number, float]:
    """Return accuracies, relative accuracies and the shape reliance."""
    right = {kind: with_guesses(rate, planted.classes or len(CLASSES)) for kind, rate in known_rates(planted).items()}
    relative = {kind: right[kind] / right[ORIGINAL] for kind in LEVELS}
    lost = 1 - relative["shape"], 1 - relative["texture"]
    truth: dict[Number, float] = {("all", "shape_reliance"): lost[0] / sum(lost) if sum(lost) else float("nan")}
    truth |= {(f"suppress={kind}", "relative_accuracy"): value for kind, value in relative.items()}
    return {**truth, (ORIGINAL, "accuracy"): right[ORIGINAL]}


DESIGN = Design(
    NAME, answers, truths, f"{PHOTOGRAPHS} photographs of 16 classes at 41 levels of suppression", sources="photographs"
)
