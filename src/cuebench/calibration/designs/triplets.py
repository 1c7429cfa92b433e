"""Triplets: embeddings of which a share is made of the shape and the rest of the texture, and recorded choices."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array
from cuebench.calibration.design import OBSERVER, Design, Number, responses
from cuebench.calibration.planted import Planted, happens
from cuebench.observers.recorded_columns import CHOICE_SHAPE, CHOICE_TEXTURE
from cuebench.protocols.triplets import choices
from cuebench.protocols.triplets.stimuli import NAME
from cuebench.protocols.triplets.trials import COLUMN
from cuebench.responses.table import Responses, once
from cuebench.types import Stimulus, StimulusSet

SHAPES = TEXTURES = 16
FEATURES = "experiment3/size=1.0/aligned"
CHOICES = "choices"
BASELINES = 2


@lru_cache(maxsize=4)
def _objects(images: float) -> StimulusSet:
    """Return every shape in every texture."""
    number = max(6, round(SHAPES * images**0.5))
    stimuli = [
        Stimulus(f"s{i}-t{j}/{FEATURES}", shape=f"s{i}", texture=f"t{j}", shape_source=f"s{i}", texture_source=f"t{j}",
                 condition=FEATURES)
        for i in range(number)
        for j in range(number)
    ]  # fmt: skip
    return StimulusSet(NAME, tuple(stimuli))


@lru_cache(maxsize=4)
def _chosen(images: float) -> StimulusSet:
    """Return one recorded triplet for each shape in each texture."""
    number = max(6, round(SHAPES * images**0.5))
    stimuli = []
    for i in range(number):
        for j in range(number):
            matches = f"s{i}-t{(j + 1) % number}", f"s{(i + 1) % number}-t{j}"
            name = "|".join((CHOICES, f"s{i}-t{j}", *matches))
            stimuli.append(Stimulus(name, shape=f"s{i}", texture=f"t{j}", shape_source=f"s{i}",
                                    texture_source=f"t{j}", condition=CHOICES))  # fmt: skip
    return StimulusSet(NAME, tuple(stimuli))


def _sources(stimuli: StimulusSet) -> tuple[Array, Array]:
    def coded() -> tuple[Array, Array]:
        shape, texture = (np.array([int(getattr(s, cue)[1:]) for s in stimuli]) for cue in ("shape", "texture"))
        return shape, texture

    return once(stimuli, "calibration codes", coded)


def _features(share: float, stimuli: StimulusSet, rng: np.random.Generator) -> Array:
    """Return embeddings; a picture is mostly shape with the probability ``share``, else mostly texture.

    Mostly means .9 of the squared length, give or take little, so that no two similarities are equal.
    """
    shape, texture = _sources(stimuli)
    mostly = 0.9 + rng.uniform(-0.02, 0.02, len(shape))
    part = np.where(rng.random(len(shape)) < share, mostly, 1 - mostly)
    rows, shapes = np.arange(len(shape)), int(shape.max()) + 1
    features = np.zeros((len(shape), shapes + int(texture.max()) + 1), np.float32)
    features[rows, shape] = np.sqrt(part)
    features[rows, shapes + texture] = np.sqrt(1 - part)
    return features


def share_by_shape(share: float) -> float:
    """Return how many triplets are decided by shape if a share of the pictures is mostly shape.

    An anchor that is mostly shape goes with its shape match, unless both matches are mostly texture: then it is a toss.
    An anchor that is mostly texture goes with its texture match, unless both are mostly shape.
    """
    return share * (1 - (1 - share) ** 2 / 2) + (1 - share) * share**2 / 2


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return a network with its random initialisations, and recorded choices."""
    objects, chosen = _objects(planted.images), _chosen(planted.images)
    network = responses(objects, {COLUMN: _features(_share(planted), objects, rng)})
    untrained = [
        responses(objects, {COLUMN: _features(0.5, objects, rng)}, name=f"untrained-{k}", baseline_of=OBSERVER)
        for k in range(BASELINES)
    ]
    # The other match shows another shape and the shape match another texture, which draw answers as the anchor's do.
    shape, texture = (np.stack([source, (source + 1) % (source.max() + 1)], 1) for source in _sources(chosen))
    attends = happens(planted.competence, planted.spread, rng, shape, texture)
    by_shape = happens(planted.weight, planted.spread, rng, shape, texture)
    by_shape = np.where(attends, by_shape, rng.random(len(shape)) < 0.5)
    recorded = responses(chosen, {choices.COLUMN: np.where(by_shape, CHOICE_SHAPE, CHOICE_TEXTURE)}, kind="person")
    return [network, *untrained, recorded]


def _share(planted: Planted) -> float:
    """Return how many pictures are mostly shape: an observer without attention compares either way."""
    return planted.by_shape + (1 - planted.competence) / 2


def truths(planted: Planted) -> dict[Number, float]:
    """Return the bias by embeddings and by choices, and what training added to a bias of one half."""
    by_features = share_by_shape(_share(planted))
    return {
        (FEATURES, "triplet_shape_bias"): by_features,
        (CHOICES, "triplet_shape_bias"): _share(planted),
        (FEATURES, "triplet_bias_gain"): by_features - 0.5,
    }


DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{SHAPES * TEXTURES} pictures: {SHAPES} shapes in {TEXTURES} textures, all triplets; and as many recorded choices",
    weight="share of the pictures whose embedding is mostly shape; of choices, share by shape",
    sources="shapes and textures of anchors and matches (of recorded choices)",
    values={"similarity": ("cosine",)},
)
