"""ImageNet accuracy: 1,000 photographs of 1,000 classes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.planted import Planted, happens
from cuebench.labels import label_space
from cuebench.labels.decisions import NONE
from cuebench.protocols.imagenet_accuracy import NAME, TOP
from cuebench.responses.table import Responses
from cuebench.tables.decide import AMONG_ALL, RANK
from cuebench.types import Stimulus, StimulusSet

SPACE = "imagenet1k"


@lru_cache(maxsize=4)
def _stimuli(images: float) -> StimulusSet:
    names = label_space(SPACE).names
    return StimulusSet(NAME, tuple(Stimulus(f"{i}", label=names[i]) for i in range(round(1000 * images))))


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the rank of the right class: the first, or any of all classes in a guess."""
    stimuli = _stimuli(planted.images)
    known = happens(planted.competence, planted.spread, rng, np.arange(len(stimuli)))
    ranks = np.where(known, 1, rng.integers(1, 1001, len(stimuli)))
    first = np.where(ranks == 1, np.arange(len(stimuli)), NONE)
    return [responses(stimuli, {AMONG_ALL: first, RANK: ranks}, label_space(SPACE), view="weights")]


def truths(planted: Planted) -> dict[Number, float]:
    """Return top-1 and top-5 accuracy."""
    c = planted.competence
    return {(f"top{k}", "accuracy"): c + (1 - c) * k / 1000 for k in TOP}


DESIGN = Design(
    NAME,
    answers,
    truths,
    "1,000 photographs of 1,000 classes",
    weight="nothing: a photograph has both cues, and they agree",
    sources="images",
)
