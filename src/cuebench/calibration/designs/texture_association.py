"""Texture association: pictures of 20 textures, each with a class of its own, and photographs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.calibration.design import Design, Number, responses
from cuebench.calibration.planted import Planted, happens
from cuebench.labels import LabelSpace
from cuebench.protocols.texture_association import NAME
from cuebench.protocols.texture_association.measure import CLEAN, TEXTURE
from cuebench.responses.table import Responses, once
from cuebench.types import Stimulus, StimulusSet

TEXTURES, CLASSES = 20, 40
PICTURES, PHOTOGRAPHS = 30, 120
SURE, UNSURE = 0.99, 0.5
"""Confidence of an attentive answer, and of a guess."""
SPACE = LabelSpace("targets", tuple(f"class{i:02d}" for i in range(CLASSES)))


@lru_cache(maxsize=4)
def _stimuli(images: float) -> StimulusSet:
    pictures = [
        Stimulus(f"texture/{i:02d}_{k}", texture=f"texture{i:02d}", condition=TEXTURE)
        for i in range(TEXTURES)
        for k in range(max(5, round(PICTURES * images)))
    ]
    photographs = [
        Stimulus(f"clean/{i}", label=SPACE.names[i % CLASSES], condition=CLEAN)
        for i in range(max(CLASSES, round(PHOTOGRAPHS * images)))
    ]
    return StimulusSet(NAME, (*pictures, *photographs))


def _codes(stimuli: StimulusSet) -> tuple[Array, Array]:
    """Return the class that belongs to each stimulus, and which of them are pictures of textures."""
    return once(
        stimuli,
        "calibration codes",
        lambda: (
            np.array([int((s.texture or s.label)[-2:]) for s in stimuli]),
            np.array([s.condition == TEXTURE for s in stimuli]),
        ),
    )


def _logits(answer: Array, confidence: Floats) -> Array:
    """Return logits whose softmax gives the answer its confidence and shares the rest evenly."""
    logits = np.zeros((len(answer), CLASSES), np.float32)
    logits[np.arange(len(answer)), answer] = np.log(confidence * (CLASSES - 1) / (1 - confidence))
    return logits


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return logits: on textures, the class of the texture with the planted weight; on photographs, competence."""
    stimuli = _stimuli(planted.images)
    own, texture = _codes(stimuli)
    of_texture = happens(1 - planted.weight, planted.spread, rng, own)
    known = np.where(texture, of_texture, rng.random(len(own)) < planted.competence)
    answer = np.where(known, own, rng.integers(CLASSES, size=len(own)))
    sure = rng.random(len(own)) < planted.competence
    return [responses(stimuli, {"logits": _logits(answer, np.where(sure, SURE, UNSURE))}, SPACE)]


def association(share: float) -> Floats:
    """Return the association of every texture with every class for endless pictures, by its definition."""
    p = np.full((TEXTURES, CLASSES), (1 - share) / CLASSES)
    p[np.arange(TEXTURES), np.arange(TEXTURES)] += share
    columns = p.sum(axis=0)
    of_class = np.divide(p, columns, out=np.zeros_like(p), where=columns > 0)

    def entropy(q: Floats) -> Floats:
        return -np.sum(np.where(q > 0, q * np.log(np.where(q > 0, q, 1)), 0), axis=1)

    answered = int((columns > 0).sum())
    row = 1 - entropy(p) / np.log(answered)
    column = 1 - entropy(of_class.T) / np.log(TEXTURES)
    return np.asarray(p * row[:, None] * of_class * column)


def truths(planted: Planted) -> dict[Number, float]:
    """Return the mean confidence, an association, the accuracy and the texturedness of photographs."""
    c, share = planted.competence, 1 - planted.weight
    found: dict[Number, float] = {
        ("textures", "texture_confidence"): c * SURE + (1 - c) * UNSURE,
        ("textures/sure", "texture_confidence"): c,
        (CLEAN, "accuracy"): c + (1 - c) / CLASSES,
    }
    if share:  # without any association no pair is listed
        found["pair/texture=texture00/class=class00", "texture_association"] = float(association(share)[0, 0])
        found[CLEAN, "texturedness"] = _texturedness(association(share), c)
    return found


def _texturedness(tav: Floats, competence: float) -> float:
    """Return the mean largest cosine of a photograph's answer with a row; every class is answered equally often."""
    unit = tav / np.linalg.norm(tav, axis=1, keepdims=True)
    mean = 0.0
    for confidence, share in ((SURE, competence), (UNSURE, 1 - competence)):
        answer = np.full((CLASSES, CLASSES), (1 - confidence) / (CLASSES - 1))
        np.fill_diagonal(answer, confidence)
        cosines = answer @ unit.T / np.linalg.norm(answer, axis=1, keepdims=True)
        mean += share * float(cosines.max(axis=1).mean())
    return mean


_SHUFFLED = "its value without any association comes from shuffled classes and stands beside it in every run"
DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{PICTURES} pictures of each of {TEXTURES} textures and {PHOTOGRAPHS} photographs, {CLASSES} classes",
    weight="share of the texture pictures that are guessed; the rest get the class of their texture",
    sources="textures",
    resamples=200,
    absent={"texture_dominance": _SHUFFLED, "texture_agreement": _SHUFFLED},
)
