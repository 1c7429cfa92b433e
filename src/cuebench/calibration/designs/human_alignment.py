"""Human alignment: 17 data sets, four people who do as the observer does in a planted share of the trials."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array, Bools, Floats
from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.designs.cue_conflict import CLASSES
from cuebench.calibration.planted import Planted, intercept, rates
from cuebench.observers.model_vs_human import DATA_SETS
from cuebench.protocols.human_alignment import NAME
from cuebench.protocols.human_alignment.trials import DECISION
from cuebench.responses.table import Responses, once
from cuebench.statistics.logistic import normal_nodes
from cuebench.stimuli.readers.model_vs_human import TARGETS
from cuebench.types import Stimulus, StimulusSet

IMAGES = 80
"""Of each data set."""
PLACES = tuple(d.name + (f"/{d.conditions[1]}" if d.conditions else "") for d in DATA_SETS.values())
"""One condition of each data set that is in the means."""
PEOPLE = 4
RIVAL = 0.6
"""Another model agrees with people by chance only, and is right so many times as often as the observer."""


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
    """Return the observer, a model that agrees with nobody, and people.

    Where sources vary, data sets and images differ in how hard they are, and people in how often they do as the
    observer does and in how much they know otherwise. Nobody but those who do as the observer does is right or wrong on
    the same images, so that a person's κ follows from the rates of a data set.
    """
    stimuli, spread = _stimuli(planted.images), planted.spread
    place = once(stimuli, "calibration places", lambda: np.array([PLACES.index(s.condition) for s in stimuli]))
    number = len(place)
    level = intercept(planted.competence, spread * 2**0.5) + spread * rng.standard_normal(len(PLACES))
    correct = rng.random(number) < expit(level[place] + spread * rng.standard_normal(number))
    everyone = [responses(stimuli, _decided(stimuli, correct))]
    rival = rng.random(number) < RIVAL * planted.competence
    everyone.append(responses(stimuli, _decided(stimuli, rival), name="rival"))
    usual = logit(_rate_of_data_set(level, spread))
    people = []
    for _ in range(PEOPLE):
        copies = rates(planted.weight, spread, rng, np.arange(len(PLACES)))
        knows = expit(usual + spread * rng.standard_normal(len(PLACES)))
        copied, alone = rng.random(number) < copies[place], rng.random(number) < knows[place]
        people.append(_decided(stimuli, np.where(copied, correct, alone))[DECISION])
    columns = {DECISION: np.concatenate(people), "subject": np.repeat([f"person-{k}" for k in range(PEOPLE)], number)}
    everyone.append(Responses("people", "people", stimuli, np.tile(np.arange(number), PEOPLE), columns))
    return everyone


def expit(log_odds: Floats) -> Floats:
    """Return the rate of log odds."""
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def logit(rate: Floats) -> Floats:
    """Return the log odds of a rate."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(rate) - np.log1p(-rate))


def _rate_of_data_set(level: Floats, spread: float) -> Floats:
    """Return how often the observer is right on new images of data sets with given log odds."""
    # A sum of weights of 1 may be rounded to more than 1.
    return np.minimum(expit(level[..., None] + spread * _NODES) @ _WEIGHTS, 1)


def truths(planted: Planted) -> dict[Number, float]:
    """Return the planted agreement and what follows from it, over new data sets, people and images.

    Where sources are alike, so are accuracies: κ is the planted share and can reach 1.
    """
    p, nan = planted.competence, float("nan")
    if not 0 < p < 1:  # everybody is always right, or wrong
        values = {"accuracy": p, "observed_consistency": 1.0, "accuracy_difference": 0.0}
        undefined = dict.fromkeys(("error_consistency", "error_consistency_bound", "mean_rank"), nan)
        return {("mean", metric): value for metric, value in (values | undefined).items()}
    level = intercept(p, planted.spread * 2**0.5) + planted.spread * _NODES
    observer = _rate_of_data_set(level, planted.spread)[:, None, None]
    copies = _effects(planted.weight, planted.spread)[:, None]
    person = copies * observer + (1 - copies) * expit(logit(observer) + planted.spread * _NODES)
    chance = observer * person + (1 - observer) * (1 - person)
    observed = chance + 2 * copies * observer * (1 - observer)
    apart = np.abs(observer - person)

    def mean(values: Floats) -> float:
        return float(np.einsum("dwk,d,w,k->", values, _WEIGHTS, _WEIGHTS, _WEIGHTS))

    agreed, rival = mean(observed), RIVAL * p
    ranked = planted.weight > 0 and agreed > p * rival + (1 - p) * (1 - rival)
    return {
        ("mean", "error_consistency"): mean((observed - chance) / (1 - chance)),
        ("mean", "accuracy"): p,
        ("mean", "observed_consistency"): agreed,
        ("mean", "accuracy_difference"): mean(apart**2),
        ("mean", "error_consistency_bound"): mean((1 - apart - chance) / (1 - chance)),
        ("mean", "mean_rank"): 1.0 if ranked else nan,
    }


def _effects(rate: float, spread: float) -> Floats:
    """Return the rate of people with each of the effects, such that their mean is the rate."""
    if not spread or rate in (0.0, 1.0):
        return np.full(len(_NODES), rate)
    return np.asarray(expit(intercept(rate, spread) + spread * _NODES))


_NODES, _WEIGHTS = normal_nodes(40)

DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{IMAGES} images of each of {len(PLACES)} data sets, four people and another model",
    weight="share of the trials in which a person does as the observer does",
    sources="images, people and data sets",
)
