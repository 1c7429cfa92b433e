"""Simulated participants: ideal or noisy observers that answer the trials of a study, with reaction times.

People differ and images differ: on the logit scale, every probability is shifted by the person's and by the image's own
effect. What a person answers depends on the seed, the person and the trial only, so that a rehearsal in a browser, one
over HTTP and a table in a test give the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cuebench.errors import UserError, did_you_mean
from cuebench.observers.base import Spec
from cuebench.options import Option, parse
from cuebench.statistics.intervals import child_generator
from cuebench.study.types import Answer, StudyImage, Trial

IDEAL = {"shape": (1.0, 0.0), "texture": (0.0, 0.0), "random": (0.5, 1.0), "mixture": (0.5, 0.0)}
"""Body of the spec ``ideal:BODY`` → probability of answering by shape, and of a lapse, as in a run."""
OPTIONS: Mapping[str, Option] = {
    "shape": Option(math.nan, "probability of answering by shape where both cues can be answered", low=0, high=1),
    "lapse": Option(math.nan, "probability of a random answer", low=0, high=1),
    "shape_accuracy": Option(math.nan, "probability of the right shape; default: as ideal observers", low=0, high=1),
    "texture_accuracy": Option(math.nan, "probability of the right texture", low=0, high=1),
    "words_accuracy": Option(0.75, "probability of naming the right texture word", low=0, high=1),
    "person_sd": Option(0.0, "spread of people, standard deviation on the logit scale", low=0),
    "image_sd": Option(0.0, "spread of images, standard deviation on the logit scale", low=0),
    "missing": Option(0.0, "probability of no answer", low=0, high=1),
    "rt": Option(700.0, "median reaction time in ms", low=1),
    "rt_sd": Option(0.35, "spread of log reaction times within a person", low=0),
    "rt_person_sd": Option(0.2, "spread of log reaction times between people", low=0),
    "slower": Option(1.2, "factor of the reaction time of a wrong answer", low=0.1),
}


@dataclass(frozen=True)
class Population:
    """Whom participants are drawn from.

    Parameters
    ----------
    shape : float
        Probability of answering by shape where shape and texture can both be answered.
    lapse : float
        Probability of a random answer among the options.
    accuracy : mapping of str to float
        Task → probability of the right answer where there is one. A shape or texture that is missing is recognised as
        by an ideal observer: with probability ``shape`` or 1 − ``shape``, else guessed.
    by_class : mapping of (task, class) to float
        The same for single classes.
    person_sd, image_sd : float
        Spread of people and images, standard deviations on the logit scale.
    missing : float
        Probability of no answer.
    rt, rt_sd, rt_person_sd, slower : float
        Median reaction time in ms, spread of its logarithm within and between people, factor of wrong answers.
    """

    shape: float = 0.5
    lapse: float = 0.0
    accuracy: Mapping[str, float] = field(default_factory=dict)
    by_class: Mapping[tuple[str, str], float] = field(default_factory=dict)
    person_sd: float = 0.0
    image_sd: float = 0.0
    missing: float = 0.0
    rt: float = 700.0
    rt_sd: float = 0.35
    rt_person_sd: float = 0.2
    slower: float = 1.2


def population(spec: str) -> Population:
    """Return the people that a spec describes, written as an ideal observer of a run with a few more options.

    Examples
    --------
    >>> population("ideal:mixture?shape=0.7&lapse=0.05&person_sd=0.5").shape
    0.7
    >>> population("ideal:shape?texture_accuracy=0.86").accuracy
    {'words': 0.75, 'texture': 0.86}
    """
    parsed = Spec.parse(spec)
    if parsed.scheme != "ideal":
        raise UserError(f"simulated people {spec!r}", "write ideal:shape, ideal:mixture?shape=0.7&lapse=0.05, …")
    if parsed.body not in IDEAL:
        raise did_you_mean("ideal observer", parsed.body, IDEAL)
    values = parse(OPTIONS, parsed.options, f"simulated people {spec!r}")
    shape, lapse = (
        usual if math.isnan(values[name]) else values[name]
        for name, usual in zip(("shape", "lapse"), IDEAL[parsed.body])
    )
    accuracy = {"words": values["words_accuracy"]}
    for cue in ("shape", "texture"):
        accuracy |= {} if math.isnan(values[f"{cue}_accuracy"]) else {cue: values[f"{cue}_accuracy"]}
    rest = {name: values[name] for name in OPTIONS if name.endswith("_sd") or name in ("missing", "rt", "slower")}
    return Population(shape=shape, lapse=lapse, accuracy=accuracy, **rest)


@dataclass(frozen=True)
class Person:
    """One simulated participant: a member of a population with effects of their own.

    ``shift`` moves all probabilities on the logit scale, ``slowness`` the logarithm of reaction times.
    """

    population: Population
    number: int
    seed: int
    shift: float
    slowness: float

    def answers(self, trials: Sequence[Trial], stimuli: Mapping[str, StudyImage]) -> Iterator[Answer]:
        """Answer trials one after the other."""
        for trial in trials:
            yield self.answer(trial, stimuli)

    def answer(self, trial: Trial, stimuli: Mapping[str, StudyImage]) -> Answer:
        """Answer one trial.

        Parameters
        ----------
        trial : Trial
            With the correct answer, where there is one.
        stimuli : mapping of str to StudyImage
            The images of the study by their ids.

        Returns
        -------
        Answer
            Familiarisation asks nothing and is passed without a response.
        """
        rng = child_generator(self.seed, f"study/answer/{self.number}/{trial.position}")
        response = self._response(trial, stimuli, rng)
        wrong = bool(trial.correct) and not set(response) & set(trial.correct)
        people = self.population
        rt = people.rt * math.exp(self.slowness + people.rt_sd * rng.normal()) * (people.slower if wrong else 1)
        shown = None if trial.planned_ms is None else trial.planned_ms + float(rng.normal(0, 1))
        answered = bool(response) or trial.kind == "familiarisation"
        return Answer(trial.position, response, rt if answered else None, trial.planned_ms, shown)

    def _response(self, trial: Trial, stimuli: Mapping[str, StudyImage], rng: np.random.Generator) -> tuple[str, ...]:
        if trial.kind == "familiarisation" or (trial.kind == "trial" and rng.random() < self.population.missing):
            return ()
        guess = trial.options[int(rng.integers(len(trial.options)))]
        if rng.random() < self.population.lapse:
            return (guess,)
        if trial.kind == "attention":
            return trial.correct or (guess,)
        images = [stimuli[identity] for identity in trial.stimuli]
        if trial.task == "words":
            return self._words(trial, images[0], rng)
        if trial.task == "same_kind":
            return (self._match(trial, images, rng),)
        label = trial.correct[0] if len(trial.correct) == 1 else ""
        known = self.population.by_class.get((trial.task, label), self.population.accuracy.get(trial.task))
        if known is not None and trial.correct:
            right = rng.random() < self._shifted(known, trial, images[0])
            return trial.correct[:1] if right else (_other(trial, rng),)
        return (self._by_cue(trial, images[0], rng) or guess,)

    def _by_cue(self, trial: Trial, image: StudyImage, rng: np.random.Generator) -> str:
        """Return the class of the cue that the person goes by; empty where the image lacks it."""
        by_shape = rng.random() < self._shifted(self.population.shape, trial, image)
        answer = (image.shape if by_shape else image.texture) or (image.label if trial.task == "category" else "")
        return answer if answer in trial.options else ""

    def _match(self, trial: Trial, images: Sequence[StudyImage], rng: np.random.Generator) -> str:
        by_shape = next(i for i in (1, 2) if images[i].shape_source == images[0].shape_source)
        goes_by_shape = rng.random() < self._shifted(self.population.shape, trial, images[0])
        chosen = by_shape if goes_by_shape else 3 - by_shape
        return trial.stimuli[chosen]

    def _words(self, trial: Trial, image: StudyImage, rng: np.random.Generator) -> tuple[str, ...]:
        """Name the texture or another word, and where several are allowed a further wrong one now and then."""
        named = rng.random() < self._shifted(self.population.accuracy.get("words", 0.75), trial, image)
        others = [word for word in trial.options if word != image.texture]
        first = image.texture if named else others[int(rng.integers(len(others)))]
        more = [word for word in others if word != first]
        second = (more[int(rng.integers(len(more)))],) if trial.several and more and rng.random() < 0.2 else ()
        return tuple(word for word in trial.options if word in (first, *second))

    def _shifted(self, probability: float, trial: Trial, image: StudyImage) -> float:
        """Return a probability moved by the effects of this person and of the image, whatever its id in this study."""
        if probability in (0.0, 1.0):
            return probability
        effect = 0.0
        if self.population.image_sd:
            rng = child_generator(self.seed, f"study/image/{trial.task}/{image.name}")
            effect = self.population.image_sd * float(rng.normal())
        return 1 / (1 + math.exp(-math.log(probability / (1 - probability)) - self.shift - effect))


def person(people: Population, number: int, seed: int = 0) -> Person:
    """Draw a participant.

    Parameters
    ----------
    people : Population
        Whom from.
    number : int
        Of the participant: the same number and seed are the same person.
    seed : int
        Of the study.
    """
    rng = child_generator(seed, f"study/person/{number}")
    shift, slowness = rng.normal(0, 1, 2)
    return Person(people, number, seed, people.person_sd * float(shift), people.rt_person_sd * float(slowness))


def _other(trial: Trial, rng: np.random.Generator) -> str:
    others = [option for option in trial.options if option not in trial.correct] or list(trial.options)
    return others[int(rng.integers(len(others)))]
