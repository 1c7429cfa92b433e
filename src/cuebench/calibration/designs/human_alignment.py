"""Human alignment: 17 data sets, four people who do as the observer does in a planted share of the trials."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.designs.cue_conflict import CLASSES
from cuebench.calibration.planted import Planted, happens
from cuebench.observers.model_vs_human import DATA_SETS
from cuebench.protocols.human_alignment import NAME
from cuebench.protocols.human_alignment.trials import DECISION
from cuebench.responses.table import Responses, once
from cuebench.stimuli.readers.model_vs_human import TARGETS
from cuebench.types import Stimulus, StimulusSet

IMAGES = 80
"""Of each data set."""
PLACES = tuple(d.name + (f"/{d.conditions[1]}" if d.conditions else "") for d in DATA_SETS.values())
"""One condition of each data set that is in the means."""
PEOPLE = 4
RIVAL = 0.6
"""Two further models agree with people by chance only, and are right so many times as often as the observer."""


@lru_cache(maxsize=4)
def _stimuli(images: float) -> StimulusSet:
    stimuli = [
        Stimulus(f"{place}/{CLASSES[i % len(CLASSES)]}/{i}", label=CLASSES[i % len(CLASSES)], condition=place)
        for place in PLACES
        for i in range(max(16, round(IMAGES * images)))
    ]
    return StimulusSet(NAME, tuple(stimuli), targets=TARGETS)


def _decided(stimuli: StimulusSet, correct: Bools) -> dict[str, Array]:
    truth = once(stimuli, "calibration codes", lambda: np.array([CLASSES.index(s.label) for s in stimuli]))
    return {DECISION: np.where(correct, truth, (truth + 1) % len(CLASSES)).astype(np.int16)}


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the observer, two models that agree with nobody, and people."""
    stimuli = _stimuli(planted.images)
    number = np.arange(len(stimuli))
    own = happens(planted.competence, planted.spread, rng, number)
    everyone = [responses(stimuli, _decided(stimuli, own))]
    for k in range(2):
        rival = rng.random(len(number)) < RIVAL * planted.competence
        everyone.append(responses(stimuli, _decided(stimuli, rival), name=f"rival-{k}"))
    for k in range(PEOPLE):
        copied, alone = rng.random(len(number)) < planted.weight, rng.random(len(number)) < planted.competence
        correct = np.where(copied, own, alone)
        everyone.append(responses(stimuli, _decided(stimuli, correct), name=f"person-{k}", kind="person"))
    return everyone


def truths(planted: Planted) -> dict[Number, float]:
    """Return the planted agreement and what follows from it; accuracies are equal, so that κ can reach 1."""
    p, agreement, rival = planted.competence, planted.weight, RIVAL * planted.competence
    by_chance = p * p + (1 - p) * (1 - p)
    observed = agreement + (1 - agreement) * by_chance
    defined = 0 < p < 1
    nan = float("nan")
    ranked = defined and agreement > 0 and observed > p * rival + (1 - p) * (1 - rival)
    return {
        ("mean", "error_consistency"): agreement if defined else nan,
        ("mean", "accuracy"): p,
        ("mean", "observed_consistency"): observed,
        ("mean", "accuracy_difference"): 0.0,
        ("mean", "error_consistency_bound"): 1.0 if defined else nan,
        ("mean", "mean_rank"): 1.0 if ranked else nan,
    }


DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{IMAGES} images of each of {len(PLACES)} data sets, four people and two further models",
    weight="share of the trials in which a person does as the observer does",
    sources="images",
    resamples=200,
)
