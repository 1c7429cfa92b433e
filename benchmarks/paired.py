"""How often paired intervals hold the truth, and how often p is small, in simulated studies of two observers.

    python -m benchmarks paired                                   200 studies for each setting
    python -m benchmarks.paired --studies 2000 --responses DIR    the pairs of shapes and textures in recorded names

Shapes and textures have random effects on the log odds of a shape decision: shared ones, and each observer's own. The
truth is the difference of the mean rates over new sources. The design is 1,200 random pairs of 160 shapes and 48
textures, or the conflict pairs that the CSV files of the public raw data name.

Triplets: the features of both observers are vectors of shapes and textures that they share, vectors of their own, and
noise of each image. Sources count with all trials in which they appear or, to compare, with those of their anchors.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.metrics.triplet_shape_bias import shared_terms
from cuebench.metrics.triplet_shape_bias import terms as triplet_terms
from cuebench.metrics.triplets import count, decide, enumerate_triplets, gram
from cuebench.protocols.cue_conflict import stimuli_from_recordings
from cuebench.statistics.clustered import Sums, ratio_intervals
from cuebench.statistics.intervals import Clusters
from cuebench.statistics.paired import paired
from cuebench.statistics.ratios import Terms
from cuebench.types import IntervalKind

Array = np.ndarray


class Setting(NamedTuple):
    """Log odds and decided fraction of both observers; spread of shared and own effects of shapes and textures."""

    logit: tuple[float, float]
    decided: tuple[float, float]
    shared: tuple[float, float] = (1.0, 1.0)
    own: tuple[float, float] = (0.5, 0.5)
    images: int = 0


SETTINGS = (
    Setting((-1.2, -1.2), (0.65, 0.65)),
    Setting((-1.2, -1.2), (0.8, 0.3)),
    Setting((-1.2, -1.2), (0.65, 0.65), (0, 0), (0, 0)),
    Setting((-1.2, -1.2), (0.65, 0.65), (0, 1), (0, 1)),
    Setting((3, 3), (0.9, 0.5)),
    Setting((-1.2, -1.2), (0.65, 0.65), images=240),
    Setting((-1.2, -0.7), (0.65, 0.65)),
    Setting((-1.2, -0.7), (0.65, 0.5), images=240),
)


def design(responses: Path | None, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the shape source and the texture source of each image, as numbers."""
    if responses is None:
        cells = rng.choice(160 * 48, 1200, replace=False)
        return cells // 48, cells % 48
    names = {row["imagename"] for file in responses.glob("*.csv") for row in csv.DictReader(file.open(newline=""))}
    stimuli = [s for s in stimuli_from_recordings(sorted(names)) if s.shape != s.texture]
    shape, texture = (
        np.unique([getattr(s, f) for s in stimuli], return_inverse=True)[1] for f in ("shape_source", "texture_source")
    )
    return shape, texture


def rate(logit: float, spread: float) -> float:
    """Return the mean rate over new sources."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float(np.sum(weights / (1 + np.exp(-logit - spread * nodes))) / weights.sum())


def simulate(
    setting: Setting, shape: Array, texture: Array, studies: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return how often each kind of interval holds the difference, two_way that of one observer, and p ≤ .05."""
    if setting.images:
        chosen = np.sort(rng.choice(len(shape), setting.images, replace=False))
        shape, texture = shape[chosen], texture[chosen]
    spread = float(np.sqrt(sum(s**2 + o**2 for s, o in zip(setting.shared, setting.own))))
    rates = [rate(logit, spread) for logit in setting.logit]
    truth = rates[0] - rates[1]
    images = np.arange(len(shape))
    places = (shape, texture)
    hits: dict[str, float] = {}
    for _ in range(studies):
        shared = [rng.normal(0, sd, place.max() + 1) for sd, place in zip(setting.shared, places)]
        answers = []
        for logit, share in zip(setting.logit, setting.decided):
            effects = [
                (common + rng.normal(0, sd, len(common)))[place]
                for common, sd, place in zip(shared, setting.own, places)
            ]
            decided = rng.random(len(images)) < share
            by_shape = rng.random(len(images)) < 1 / (1 + np.exp(-logit - sum(effects)))
            answers.append(Terms(by_shape & decided, decided))
        sources = {"shape_sources": shape, "texture_sources": texture}
        found = paired(*(Sums.of_ratio(terms, images, sources) for terms in answers))  # type: ignore[arg-type]
        ((alone,),) = ratio_intervals(answers[:1], Clusters(images, shape, texture), ["two_way"])
        held = {i.kind: i.low <= truth <= i.high for i in found.intervals}
        held |= {"one observer": alone.low <= rates[0] <= alone.high, "p ≤ .05": found.p <= 0.05}
        for name, hit in held.items():
            hits[name] = hits.get(name, 0) + hit / studies
    return {"difference": truth, **hits}


TRIPLETS = ((16, 16, (0.5, 0.5)), (16, 16, (0.55, 0.5)), (8, 8, (0.5, 0.5)), (8, 8, (0.6, 0.5)))
"""Shapes, textures, and the weight of shape in the features of both observers."""


def two_networks(
    shapes: int, textures: int, weight: tuple[float, float]
) -> Callable[[np.random.Generator], tuple[Sums, Sums]]:
    """Return what draws the triplets of two networks: half of the features of each source are the same for both."""
    shape, texture = (a.ravel() for a in np.meshgrid(np.arange(shapes), np.arange(textures), indexing="ij"))
    found = enumerate_triplets([str(i) for i in shape], [str(i) for i in texture])
    sources: dict[IntervalKind, Array] = {"shape_sources": shape, "texture_sources": texture}

    def draw(rng: np.random.Generator) -> tuple[Sums, Sums]:
        shared = rng.normal(size=(shapes, 15)), rng.normal(size=(textures, 15))
        both = []
        for w in weight:
            s, t = (np.hstack([v, rng.normal(size=v.shape)])[of] for v, of in zip(shared, (shape, texture)))
            features = w * s + (1 - w) * t + 0.5 * rng.normal(size=(len(shape), 30))
            tally = count(decide(gram(features, found)), found)
            both.append(Sums.of_ratio(triplet_terms(tally), np.arange(len(shape)), sources, shared_terms(tally)))
        return both[0], both[1]

    return draw


def simulate_triplets(
    shapes: int, textures: int, weight: tuple[float, float], studies: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return how often `two_way` holds the difference, by all sources and by those of anchors alone, and p ≤ .05."""
    draw = two_networks(shapes, textures, weight)

    def value(first: Sums, second: Sums) -> float:
        return first.value - second.value

    truth = 0.0 if weight[0] == weight[1] else float(np.mean([value(*draw(rng)) for _ in range(1000)]))
    hits: dict[str, float] = {}
    for _ in range(studies):
        both = draw(rng)
        for name, sums in (("all sources", both), ("anchors alone", tuple(replace(s, shared={}) for s in both))):
            d = paired(*sums)
            held = d.interval is not None and d.interval.low <= truth <= d.interval.high
            for what, hit in ((name, held), (f"p ≤ .05, {name}", d.p <= 0.05)):
                hits[what] = hits.get(what, 0) + hit / studies
    return {"difference": truth, **hits}


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--responses", type=Path, help="folder of raw data whose image names are the design")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments or [])
    rng = np.random.default_rng(given.seed)
    for shapes, textures, weight in TRIPLETS:
        found = simulate_triplets(shapes, textures, weight, given.studies, rng)
        print(f"triplets, {shapes} shapes × {textures} textures, weights {weight}:",
              " · ".join(f"{name} {value:.3f}" for name, value in found.items()), flush=True)  # fmt: skip
    shape, texture = design(given.responses, rng)
    print(f"{len(shape):,} images of {len(np.unique(shape))} shapes and {len(np.unique(texture))} textures")
    for setting in SETTINGS:
        found = simulate(setting, shape, texture, given.studies, rng)
        print(setting, " · ".join(f"{name} {value:.3f}" for name, value in found.items()), flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
