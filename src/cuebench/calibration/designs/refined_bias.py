"""REFINED-BIAS: pure shape cues of ten classes and pure texture cues of ten others, ranked among 1,000 classes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.planted import Planted, happens
from cuebench.labels import label_map
from cuebench.metrics.refined_bias import CUES
from cuebench.protocols.refined_bias import NAME
from cuebench.protocols.refined_bias.trials import DISTORTED, RANK, TARGETS
from cuebench.responses.table import Responses, once
from cuebench.types import REMOVED, Stimulus, StimulusSet

VIEW = "faithful"
RANKED = 1000
STRANGE = 0.25
"""Share of the unknown pictures whose right class is the best of the set's, but not of all."""


@lru_cache(maxsize=4)
def _stimuli(images: float) -> StimulusSet:
    names = label_map(TARGETS).names
    number = max(4, round(30 * images))
    stimuli = []
    for cue, classes in (("shape", names[:10]), ("texture", names[10:20])):
        for c in classes:
            for i in range(number):
                patch = "" if cue == "shape" else f"patch={(4, 8, 16, 32)[i % 4]}"
                shape, texture = (c, "") if cue == "shape" else ("", c)
                stimuli.append(Stimulus(f"{cue}/{c}_{i}", shape=shape, texture=texture, condition=patch))
    return StimulusSet(NAME, tuple(stimuli), targets=TARGETS)


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the rank of the right class: the first, or any of 1,000 where the cue was not used."""
    stimuli = _stimuli(planted.images)
    shape, classes = once(
        stimuli,
        "calibration codes",
        lambda: (
            np.array([s.shape not in ("", REMOVED) for s in stimuli]),
            np.unique([s.shape or s.texture for s in stimuli], return_inverse=True)[1].ravel(),
        ),
    )
    by_cue = [happens(rate, planted.spread, rng, classes) for rate in (planted.by_shape, planted.by_texture)]
    known = np.where(shape, *by_cue)
    ranks = np.where(known, 1, rng.integers(1, RANKED + 1, len(shape))).astype(np.int32)
    strange = ~known & (rng.random(len(shape)) < STRANGE)
    return [responses(stimuli, {RANK: ranks, DISTORTED: strange}, view=VIEW)]


def truths(planted: Planted) -> dict[Number, float]:
    """Return sensitivities, accuracies and preferences; a guess has each rank equally often."""
    size = planted.classes or RANKED
    chance = {"sensitivity": sum(1 / k for k in range(1, size + 1)) / size, "top1": 1 / size, "top5": 5 / size}
    known = dict(zip(CUES, (planted.by_shape, planted.by_texture)))
    truth: dict[Number, float] = {
        (VIEW, f"{cue}_{measure}"): rate + (1 - rate) * guess
        for cue, rate in known.items()
        for measure, guess in chance.items()
    }
    both = [truth[VIEW, f"{cue}_sensitivity"] for cue in CUES]
    truth |= {(VIEW, f"{cue}_preference"): value / sum(both) for cue, value in zip(CUES, both)}
    truth |= {(f"{VIEW}/cue={cue}", "distorted_prediction"): (1 - rate) * STRANGE for cue, rate in known.items()}
    return truth


DESIGN = Design(
    NAME,
    answers,
    truths,
    "300 shape cues of ten classes and 300 texture cues of ten others, ranked among 1,000 classes",
    sources="classes",
)
