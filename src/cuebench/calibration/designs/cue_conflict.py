"""Cue conflict: 1,280 pictures of 160 shapes in 48 textures, 80 of them with both cues of one class."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array
from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.planted import Planted, happens
from cuebench.labels import label_map, label_space
from cuebench.protocols.cue_conflict import NAME, TARGETS, Measured
from cuebench.responses.table import Responses, once
from cuebench.tables.decide import AMONG_ALL, AMONG_TARGETS
from cuebench.tables.engine import Result
from cuebench.types import Stimulus, StimulusSet

CLASSES = label_map(TARGETS).names
SPACE = "imagenet1k"
AGREEMENT = 0.4
"""Share of the trials in which a simulated person does as the observer does: the error consistency."""
PEOPLE = 1


@lru_cache(maxsize=8)
def conflict_set(images: float = 1.0, *, aligned: bool = True, condition: str = "") -> StimulusSet:
    """Return pictures of every pair of classes, five of each; ten shapes and three textures of each class."""
    number = max(1, round(5 * images))
    stimuli = []
    for s, shape in enumerate(CLASSES):
        for t, texture in enumerate(CLASSES):
            for k in range(number if aligned or s != t else 0):
                # Five shapes and all three textures meet in each pair, in another order for every pair.
                sources = f"{shape}{(2 * k + t) % 10 + 1}", f"{texture}{(k + s) % 3 + 1}"
                name = "-".join(sources) + (f"|{condition}" if condition else "")
                stimuli.append(Stimulus(name, shape=shape, texture=texture, shape_source=sources[0],
                                        texture_source=sources[1], condition=condition))  # fmt: skip
    return StimulusSet(NAME, tuple(stimuli), targets=TARGETS)


def decisions(planted: Planted, stimuli: StimulusSet, rng: np.random.Generator) -> dict[str, Array]:
    """Return the decisions of a planted observer among the 16 classes and among all 1,000."""
    shape, texture, shapes, textures = _codes(stimuli)
    attends = happens(planted.competence, planted.spread, rng, shapes, textures)
    by_shape = happens(planted.weight, planted.spread, rng, shapes, textures)
    known = np.where(by_shape, shape, texture)
    few = rng.integers(len(CLASSES), size=len(shape))
    owner = _owner()
    many = owner[rng.integers(len(owner), size=len(shape))]
    return {AMONG_TARGETS: np.where(attends, known, few), AMONG_ALL: np.where(attends, known, many)}


def _codes(stimuli: StimulusSet) -> tuple[Array, Array, Array, Array]:
    def coded() -> tuple[Array, Array, Array, Array]:
        shape, texture = (np.array([CLASSES.index(getattr(s, cue)) for s in stimuli]) for cue in ("shape", "texture"))
        shapes, textures = (
            np.unique([getattr(s, f"{cue}_source") for s in stimuli], return_inverse=True)[1].ravel()
            for cue in ("shape", "texture")
        )
        return shape, texture, shapes, textures

    return once(stimuli, "calibration codes", coded)


@lru_cache(maxsize=1)
def _owner() -> Array:
    space = label_space(SPACE)
    return label_map(TARGETS).resolve(space).target_of(len(space))


def guessed(classes: int) -> float:
    """Return how often a guess names one given class of the 16: among them alone (0), or among all 1,000 (mean)."""
    return 1 / len(CLASSES) if classes in (0, len(CLASSES)) else float((_owner() >= 0).mean()) / len(CLASSES)


def outcome_rates(planted: Planted, classes: int) -> tuple[float, float]:
    """Return how often the class of the shape and that of the texture are answered."""
    lapse = (1 - planted.competence) * guessed(classes)
    return planted.by_shape + lapse, planted.by_texture + lapse


def ratio_truths(planted: Planted, condition: str, classes: int) -> dict[Number, float]:
    """Return the four ratios of cue conflict in one condition."""
    shape, texture = outcome_rates(planted, classes)
    return {
        (condition, "shape_bias"): shape / (shape + texture) if shape + texture else float("nan"),
        (condition, "shape_accuracy"): shape,
        (condition, "texture_accuracy"): texture,
        (condition, "decided_fraction"): shape + texture,
    }


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the observer and a person who agrees with it in a planted share of the trials."""
    stimuli, space = conflict_set(planted.images), label_space(SPACE)
    observer_decisions = decisions(planted, stimuli, rng)
    people = []
    for k in range(PEOPLE):
        # Where a person does not agree, it answers as often right, by chance: sources do not matter to it.
        other = decisions(Planted(planted.weight, planted.competence), stimuli, rng)
        copied = rng.random(len(stimuli)) < AGREEMENT
        both = {name: np.where(copied, observer_decisions[name], other[name]) for name in observer_decisions}
        people.append(responses(stimuli, both, space, name=f"person-{k}", kind="person"))
    return [responses(stimuli, observer_decisions, space), *people]


def of_people(person: Responses) -> Measured:
    """Return what error consistency needs of a person: whether the shape was answered, and where it could be."""
    shape, texture, *_ = _codes(person.stimuli)
    correct = person.columns[AMONG_TARGETS] == shape
    return Measured(person, "16-way", Result(), person.stimulus, correct, shape != texture)


def truths(planted: Planted) -> dict[Number, float]:
    """Return the ratios in both label spaces, and the planted agreement with people."""
    shape, _ = outcome_rates(planted, planted.classes)
    return {
        **ratio_truths(planted, "16-way", planted.classes),
        **ratio_truths(planted, "1000-way", 1000),
        ("16-way", "error_consistency"): AGREEMENT if 0 < shape < 1 else float("nan"),
    }


DESIGN = Design(
    NAME,
    answers,
    truths,
    "1,280 pictures of 160 shapes in 48 textures of 16 classes, 1,200 of them in conflict; one person",
    of_others=of_people,
)
