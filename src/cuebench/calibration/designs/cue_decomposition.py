"""Cue decomposition: photographs, their shape cue and their texture cue, of four models that are one population."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np

from cuebench.arrays import Array
from cuebench.calibration.design import OBSERVER, Design, Number, responses
from cuebench.calibration.designs.cue_conflict import CLASSES
from cuebench.calibration.planted import Planted, happens, with_guesses
from cuebench.labels import LabelSpace
from cuebench.protocols.correctness import ANSWER
from cuebench.protocols.cue_conflict import TARGETS
from cuebench.protocols.cue_decomposition import DATASET, NAME
from cuebench.protocols.cue_decomposition.populations import TRAINED, published
from cuebench.responses.table import Responses
from cuebench.stimuli.decomposition.conflicts import PREFIX
from cuebench.types import Stimulus, StimulusSet

SPACE = LabelSpace("targets", CLASSES)
IMAGES = 320
VERSIONS = ("original", "eed", "voronoi")
CONFLICT = f"{PREFIX}blend/voronoi/0.5/0.5"
OTHERS = (Planted(0.2, 0.9), Planted(0.5, 0.9), Planted(0.8, 0.9))
"""The other models of the population H of the run."""
PUBLISHED = "heinert2025"


def known_rates(planted: Planted) -> tuple[float, float, float]:
    """Return how often the class is known on originals, on shape cues and on texture cues."""
    return planted.competence, planted.by_shape, planted.by_texture


@lru_cache(maxsize=4)
def _stimuli(images: float) -> tuple[StimulusSet, Array, Array, Array]:
    """Return the pictures: versions of the images, then candidates in conflict; label or shape, texture, image."""
    number = max(16, round(IMAGES * images))
    stimuli, rows = [], []
    for i in range(number):
        label, other = i % len(CLASSES), (i + 1 + i // len(CLASSES) % 15) % len(CLASSES)
        for version in VERSIONS:
            stimuli.append(Stimulus(f"{i}|{version}", label=CLASSES[label], condition=version))
            rows.append((label, label, i))
        name = CLASSES[label]
        stimuli.append(Stimulus(f"c{i}|{CONFLICT}", label=name, shape=name, texture=CLASSES[other],
                                shape_source=f"{i}", texture_source=f"{other}", condition=CONFLICT))  # fmt: skip
        rows.append((label, other, i))
    return StimulusSet(NAME, tuple(stimuli), targets=TARGETS), *np.array(rows).T


def _answers(planted: Planted, images: float, rng: np.random.Generator) -> Array:
    _, label, texture, image = _stimuli(images)
    answer = rng.integers(len(CLASSES), size=len(label))
    every = len(VERSIONS) + 1
    for position, rate in enumerate(known_rates(planted)):
        rows = np.arange(position, len(label), every)
        known = happens(rate, planted.spread, rng, image[rows])
        answer[rows] = np.where(known, label[rows], answer[rows])
    rows = np.arange(len(VERSIONS), len(label), every)
    attends, by_shape = (happens(r, 0.0, rng, rows) for r in (planted.competence, planted.weight))
    answer[rows] = np.where(attends, np.where(by_shape, label[rows], texture[rows]), answer[rows])
    return answer


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the observer and the other models of its population."""
    stimuli, *_ = _stimuli(planted.images)
    names = [OBSERVER, *(f"model-{k}" for k in range(len(OTHERS)))]
    return [
        responses(stimuli, {ANSWER: _answers(p, planted.images, rng)}, SPACE, name=name)
        for name, p in zip(names, (planted, *OTHERS))
    ]


def decomposition(shape: float, texture: float, original: float, s: float, t: float) -> tuple[float, float]:
    """Return S_cd and R_cd by their definition."""
    nan = float("nan")
    both = shape / s + texture / t
    return shape / s / both if both else nan, (shape + texture) / (2 * original) if original else nan


@lru_cache(maxsize=1)
def _published() -> tuple[float, float]:
    models = json.loads(published()[PUBLISHED].read_text("utf-8"))["sets"][DATASET]["models"].values()
    members = [m for m in models if m.get("group") != TRAINED and {"eed", "voronoi"} <= set(m)]
    return tuple(float(np.mean([m[cue] for m in members])) for cue in ("eed", "voronoi"))  # type: ignore[return-value]


def truths(planted: Planted) -> dict[Number, float]:
    """Return the qualities, S_cd for both populations, R_cd, and the shape bias of candidates in conflict."""
    size = planted.classes or len(CLASSES)
    qualities, *others = ([with_guesses(r, size) for r in known_rates(p)] for p in (planted, *OTHERS))
    original, shape, texture = qualities
    s, t = (float(np.mean([q[k] for q in (qualities, *others)])) for k in (1, 2))
    bias, robustness = decomposition(shape, texture, original, s, t)
    guess = (1 - planted.competence) / size
    by_shape, by_texture = planted.by_shape + guess, planted.by_texture + guess
    return {
        ("eed+voronoi H=run", "shape_bias_cd"): bias,
        (f"eed+voronoi H={PUBLISHED}", "shape_bias_cd"): decomposition(shape, texture, original, *_published())[0],
        ("eed+voronoi", "robustness_cd"): robustness,
        ("original", "quality_original"): original,
        ("eed", "quality_shape"): shape,
        ("voronoi", "quality_texture"): texture,
        (CONFLICT, "shape_bias"): by_shape / (by_shape + by_texture),
        (CONFLICT, "texture_accuracy"): by_texture,
    }


DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{IMAGES} images of 16 classes, their shape cue (eed) and their texture cue (voronoi); H=run: four models of "
    "weights .2, .5, .8 and the planted one",
    sources="images",
)
