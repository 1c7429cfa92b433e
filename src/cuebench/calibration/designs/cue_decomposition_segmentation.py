"""Cue decomposition for segmentation: masks of 16 classes, of which a planted share of the pixels is known."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.calibration.design import OBSERVER, Design, Number, responses
from cuebench.calibration.designs.cue_conflict import CLASSES
from cuebench.calibration.designs.cue_decomposition import OTHERS, VERSIONS, decomposition, known_rates
from cuebench.calibration.planted import Planted, rates
from cuebench.protocols.cue_conflict import TARGETS
from cuebench.protocols.cue_decomposition_segmentation import NAME, Measured, qualities
from cuebench.responses.table import Responses
from cuebench.tables.engine import Result
from cuebench.types import Stimulus, StimulusSet

IMAGES, PIXELS, IN_IMAGE = 100, 1000, 4
FREQUENCY = 0.75 ** np.arange(len(CLASSES))
"""How often each class occurs in an image, up to a factor: some are rare, as in any set of masks."""
UNEVEN = 0.5
"""Spread between images that is always there: pixels of one image stand and fall together."""


@lru_cache(maxsize=4)
def _stimuli(images: float) -> StimulusSet:
    number = max(10, round(IMAGES * images))
    planned = [Stimulus(f"{i}|{v}", condition=v) for i in range(number) for v in VERSIONS]
    return StimulusSet("calibration", tuple(planned), targets=TARGETS)


def _truth(number: int, rng: np.random.Generator) -> Array:
    """Return images × classes: pixels of each class; every image has four classes of equal size."""
    keys = rng.gumbel(size=(number, len(CLASSES))) + np.log(FREQUENCY)
    chosen = np.argsort(-keys, axis=1)[:, :IN_IMAGE]
    areas = np.zeros((number, len(CLASSES)), np.int64)
    np.put_along_axis(areas, chosen, PIXELS // IN_IMAGE, axis=1)
    return areas


def _areas(truth: Array, known: Floats, rng: np.random.Generator) -> Array:
    """Return images × 3 × classes: pixels that are right, in the truth and in the answer."""
    hits = rng.binomial(truth, known[:, None])
    guesses = (truth - hits).sum(axis=1)
    guessed = rng.multinomial(guesses, np.full(len(CLASSES), 1 / len(CLASSES)))
    # A guess is right as often as its class fills what is left of the image.
    lucky = rng.binomial(guessed, (truth - hits) / np.maximum(guesses, 1)[:, None])
    return np.stack([hits + lucky, truth, hits + guessed], axis=1)


def answers(planted: Planted, rng: np.random.Generator) -> list[Responses]:
    """Return the areas of the observer and of the other models of its population, on the same images."""
    stimuli = _stimuli(planted.images)
    number = len(stimuli) // len(VERSIONS)
    truth, image = _truth(number, rng), np.arange(number)
    names = [OBSERVER, *(f"model-{k}" for k in range(len(OTHERS)))]
    everyone = []
    for name, model in zip(names, (planted, *OTHERS)):
        spread = max(UNEVEN, planted.spread)
        parts = [_areas(truth, rates(rate, spread, rng, image), rng) for rate in known_rates(model)]
        everyone.append(responses(stimuli, {"areas": np.stack(parts, axis=1).reshape(-1, 3 * len(CLASSES))}, name=name))
    return everyone


@lru_cache(maxsize=1)
def _shares() -> Floats:
    """Return the share of all pixels that belong to each class; by simulation once, to four digits."""
    areas = _truth(400_000, np.random.default_rng(0)).sum(axis=0)
    return np.asarray(areas / areas.sum())


def ious(known: float) -> Floats:
    """Return the IoU of each class where a share of the pixels is known and the rest is guessed among all classes."""
    share, size = _shares(), len(CLASSES)
    right = share * (known + (1 - known) / size)
    answered = share * known + (1 - known) / size
    return np.asarray(right / (share + answered - right))


def truths(planted: Planted) -> dict[Number, float]:
    """Return the mean IoU of each version, S_cd, R_cd and the IoU of a common and of a rare class."""
    mean_ious, *others = ([float(ious(r).mean()) for r in known_rates(p)] for p in (planted, *OTHERS))
    original, shape, texture = mean_ious
    s, t = (float(np.mean([q[k] for q in (mean_ious, *others)])) for k in (1, 2))
    bias, robustness = decomposition(shape, texture, original, s, t)
    by_class = ious(planted.competence)
    return {
        ("eed+voronoi H=run", "shape_bias_cd"): bias,
        ("eed+voronoi", "robustness_cd"): robustness,
        ("original", "quality_original"): original,
        ("eed", "quality_shape"): shape,
        ("voronoi", "quality_texture"): texture,
        (f"original/{CLASSES[0]}", "mean_iou"): float(by_class[0]),
        (f"original/{CLASSES[-1]}", "mean_iou"): float(by_class[-1]),
    }


DESIGN = Design(
    NAME,
    answers,
    truths,
    f"{IMAGES} images with masks, four of 16 classes in each, the rarest in 1 of 60; H=run: four models of weights .2, "
    ".5, .8 and the planted one",
    weight="share of the pixels, of those known in the original, that are known by shape",
    sources="images",
    of_others=lambda responses: Measured(qualities(responses), Result()),
)
