"""Texture association: pictures of 20 textures, each with a class of its own, and photographs."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.planted import Planted, happens, intercept
from cuebench.labels import LabelSpace
from cuebench.protocols.texture_association import NAME
from cuebench.protocols.texture_association.measure import CLEAN, TEXTURE
from cuebench.responses.table import Responses
from cuebench.types import Stimulus, StimulusSet

TEXTURES, CLASSES = 20, 40
PICTURES, PHOTOGRAPHS = 30, 120
SURE, UNSURE = 0.99, 0.5
"""Confidence of an attentive answer, and of a guess."""
PAIR: Number = ("pair/texture=texture00/class=class00", "texture_association")
TEXTUREDNESS: Number = (CLEAN, "texturedness")
DRAWN = 1000
"""Matrices of counts behind what is expected with few pictures."""
SPACE = LabelSpace("targets", tuple(f"class{i:02d}" for i in range(CLASSES)))


@lru_cache(maxsize=4)
def _pictures(images: float) -> tuple[Stimulus, ...]:
    return tuple(
        Stimulus(f"texture/{i:02d}_{k}", texture=f"texture{i:02d}", condition=TEXTURE)
        for i in range(TEXTURES)
        for k in range(_number(images))
    )


def _number(images: float) -> int:
    """Return how many pictures of each texture there are."""
    return max(5, round(PICTURES * images))


def _stimuli(images: float, labels: Array) -> StimulusSet:
    photographs = [Stimulus(f"clean/{i}", label=SPACE.names[label], condition=CLEAN) for i, label in enumerate(labels)]
    return StimulusSet(NAME, (*_pictures(images), *photographs))


def _logits(answer: Array, confidence: Floats) -> Array:
    """Return logits whose softmax gives the answer its confidence and shares the rest evenly."""
    logits = np.zeros((len(answer), CLASSES), np.float32)
    logits[np.arange(len(answer)), answer] = np.log(confidence * (CLASSES - 1) / (1 - confidence))
    return logits


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return logits: on textures, the class of the texture with the planted weight; on photographs, competence.

    Where sources vary, textures differ in how often they get their class, the same in every study, because a pair is
    about one texture; and in how sure the answers are, anew in every study, because the confidence is about all.
    """
    labels = rng.integers(CLASSES, size=max(CLASSES, round(PHOTOGRAPHS * planted.images)))
    stimuli = _stimuli(planted.images, labels)
    classes = np.concatenate([np.repeat(np.arange(TEXTURES), _number(planted.images)), labels])
    texture = np.arange(len(classes)) < len(classes) - len(labels)
    draws = rng.random((3, len(classes)))
    of_texture = draws[0] < np.append(_shares(planted), np.zeros(CLASSES - TEXTURES))[classes]
    known = np.where(texture, of_texture, draws[1] < planted.competence)
    answer = np.where(known, classes, rng.integers(CLASSES, size=len(classes)))
    sure = np.where(texture, happens(planted.competence, planted.spread, rng, classes), draws[2] < planted.competence)
    return [responses(stimuli, {"logits": _logits(answer, np.where(sure, SURE, UNSURE))}, SPACE)]


def _shares(planted: Planted) -> Floats:
    """Return how often each texture gets its class, the strongest first: evenly spaced quantiles of the effects."""
    share, spread = 1 - planted.weight, planted.spread
    if not spread or share in (0.0, 1.0):
        return np.full(TEXTURES, share)
    effects = [NormalDist().inv_cdf(1 - (i + 0.5) / TEXTURES) for i in range(TEXTURES)]
    return np.asarray(1 / (1 + np.exp(-intercept(share, spread) - spread * np.array(effects))))


def _rates(shares: Floats) -> Floats:
    """Return how often each texture is answered with each class."""
    rates = np.repeat((1 - shares)[:, None] / CLASSES, CLASSES, axis=1)
    rates[np.arange(TEXTURES), np.arange(TEXTURES)] += shares
    return rates


def association(p: Floats) -> Floats:
    """Return the association of every texture with every class, … × textures × classes, by its definition."""
    columns = p.sum(axis=-2, keepdims=True)
    of_class = np.divide(p, columns, out=np.zeros_like(p), where=columns > 0)

    def entropy(q: Floats, axis: int) -> Floats:
        return -np.sum(np.where(q > 0, q * np.log(np.where(q > 0, q, 1)), 0), axis=axis, keepdims=True)

    answered = (columns > 0).sum(axis=-1, keepdims=True)
    return np.asarray(
        p * (1 - entropy(p, -1) / np.log(answered)) * of_class * (1 - entropy(of_class, -2) / np.log(TEXTURES))
    )


def truths(planted: Planted) -> dict[Number, float]:
    """Return the mean confidence, an association, the accuracy and the texturedness of photographs."""
    c = planted.competence
    truth: dict[Number, float] = {
        ("textures", "texture_confidence"): c * SURE + (1 - c) * UNSURE,
        ("textures/sure", "texture_confidence"): c,
        (CLEAN, "accuracy"): c + (1 - c) / CLASSES,
    }
    if planted.weight < 1:  # without any association no pair is listed
        endless = association(_rates(_shares(planted)))
        truth[PAIR] = float(endless[0, 0])
        truth[TEXTUREDNESS] = float(_texturedness(endless, c))
    return truth


@lru_cache(maxsize=64)
def claims(planted: Planted) -> dict[Number, float]:
    """Return what associations and texturedness are on average with as many pictures as a study has."""
    if planted.weight == 1:
        return {}
    pictures = _number(planted.images)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(pictures, _rates(_shares(planted)), size=(DRAWN, TEXTURES))
    associations = association(counts / pictures)
    return {
        PAIR: float(associations[:, 0, 0].mean()),
        TEXTUREDNESS: float(_texturedness(associations, planted.competence).mean()),
    }


def _texturedness(tav: Floats, competence: float) -> Floats:
    """Return the mean largest cosine of a photograph's answer with a row; every class is answered equally often."""
    length = np.linalg.norm(tav, axis=-1, keepdims=True)
    unit = np.divide(tav, length, out=np.zeros_like(tav), where=length > 0)
    mean = np.zeros(tav.shape[:-2])
    for confidence, share in ((SURE, competence), (UNSURE, 1 - competence)):
        answer = np.full((CLASSES, CLASSES), (1 - confidence) / (CLASSES - 1))
        np.fill_diagonal(answer, confidence)
        answer /= np.linalg.norm(answer, axis=1, keepdims=True)
        mean += share * (unit @ answer.T).max(axis=-2).mean(axis=-1)
    return mean


_SHUFFLED = "its value without any association comes from shuffled classes and stands beside it in every run"
DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{PICTURES} pictures of each of {TEXTURES} textures and {PHOTOGRAPHS} photographs, {CLASSES} classes",
    weight="share of the texture pictures that are guessed; the rest get the class of their texture",
    sources="textures",
    claims=claims,
    claim="what as many other pictures give",
    resamples=200,
    absent={"texture_dominance": _SHUFFLED, "texture_agreement": _SHUFFLED},
)
