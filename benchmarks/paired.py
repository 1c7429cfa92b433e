"""How often paired intervals hold the truth, and how often p is small, in simulated studies of two observers.

    python -m benchmarks paired                                   200 studies for each setting
    python -m benchmarks.paired --studies 4000 -j 2               what docs/comparing.md prints
    python -m benchmarks.paired --studies 2000 --responses DIR    the pairs of shapes and textures in recorded names

Shapes and textures have random effects on the log odds of a shape decision: shared ones, and each observer's own. The
truth is the difference of the mean rates over new sources. Designs: 1,200 random pairs of 160 shapes and 48 textures
(or the conflict pairs that the CSV files of the public raw data name), all pairs of 16 × 16, of 8 × 8. Observers decide
about 1 to 780 of the images. Studies with too few decided trials to be compared count as no rejection, and apart.

Triplets: the features of both observers are vectors of shapes and textures that they share, vectors of their own, and
noise of each image. Sources count with all trials in which they appear or, to compare, with those of their anchors.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.metrics.triplet_shape_bias import shared_terms
from cuebench.metrics.triplet_shape_bias import terms as triplet_terms
from cuebench.metrics.triplets import count, decide, enumerate_triplets, gram
from cuebench.protocols.cue_conflict import stimuli_from_recordings
from cuebench.statistics.clustered import Sums
from cuebench.statistics.paired import paired
from cuebench.statistics.ratios import Terms
from cuebench.types import IntervalKind

Array = np.ndarray


class Setting(NamedTuple):
    """A design, the true shape bias and the number of decided trials of both observers, and the spread of effects."""

    design: str
    biases: tuple[float, float]
    decided: tuple[int, int]
    shared: float = 0.8
    own: float = 0.4


COUNTS = {
    "published": (*((780, n) for n in (1, 3, 10, 20, 40, 80)), (360, 360), (40, 40), (10, 10), (3, 3)),
    "16 × 16": ((166, 3), (166, 10), (166, 20), (166, 80), (40, 40)),
    "8 × 8": ((42, 3), (42, 10), (42, 20), (40, 40)),
}
SETTINGS = tuple(
    Setting(name, (bias, bias), decided)
    for name, counts in COUNTS.items()
    for decided, bias in product(counts, (0.01, 0.05, 0.2, 0.5))
) + tuple(Setting("published", (0.24, second), (360, 360), 1.0, 0.5) for second in (0.30, 0.34, 0.38))


def design(name: str, rng: np.random.Generator, responses: Path | None = None) -> tuple[Array, Array]:
    """Return the shape source and the texture source of each image, as numbers."""
    if name != "published":
        side = int(name.partition(" ")[0])
        return tuple(np.divmod(np.arange(side**2), side))  # type: ignore[return-value]
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


def logit_of(wanted: float, spread: float) -> float:
    """Return the log odds whose mean rate over new sources is that."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(middle, spread) < wanted else (low, middle)
    return low


def simulate(setting: Setting, studies: int, seed: int = 0, responses: Path | None = None) -> dict[str, float]:
    """Return rejections at .05 and .001, coverage of `two_way` where there is one, and the share of too few trials."""
    rng = np.random.default_rng([seed, SETTINGS.index(setting)])
    places = design(setting.design, rng, responses)
    number = len(places[0])
    sources: dict[IntervalKind, Array] = {"shape_sources": places[0], "texture_sources": places[1]}
    spread = float(np.sqrt(2 * (setting.shared**2 + setting.own**2)))
    logits = [logit_of(bias, spread) for bias in setting.biases]
    truth = setting.biases[0] - setting.biases[1]
    rejected, compared, held = np.zeros(2), 0, 0
    for _ in range(studies):
        shared = [rng.normal(0, setting.shared, place.max() + 1)[place] for place in places]
        both = []
        for logit, count_decided in zip(logits, setting.decided):
            own = [rng.normal(0, setting.own, place.max() + 1)[place] for place in places]
            decided = rng.random(number) < count_decided / number
            by_shape = rng.random(number) < 1 / (1 + np.exp(-logit - sum(shared) - sum(own)))
            both.append(Sums.of_ratio(Terms(by_shape & decided, decided), np.arange(number), sources))
        found = paired(*both)
        if not np.isnan(found.p):
            compared += 1
            rejected += found.p <= np.array([0.05, 0.001])
            held += found.interval is None or found.interval.low <= truth <= found.interval.high
    return {
        "p ≤ .05": rejected[0] / studies,
        "p ≤ .001": rejected[1] / studies,
        "coverage": held / compared if compared else np.nan,
        "too few": 1 - compared / studies,
    }


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
    parser.add_argument("--responses", type=Path, help="folder of raw data whose image names are the published design")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    given = parser.parse_args(arguments or [])
    rng = np.random.default_rng(given.seed)
    for shapes, textures, weight in TRIPLETS:
        found = simulate_triplets(shapes, textures, weight, max(given.studies // 10, 20), rng)
        print(f"triplets, {shapes} shapes × {textures} textures, weights {weight}:",
              " · ".join(f"{name} {value:.3f}" for name, value in found.items()), flush=True)  # fmt: skip
    run = partial(simulate, studies=given.studies, seed=given.seed, responses=given.responses)
    print("design, true biases, decided trials: rejected at .05 and .001, coverage, too few decided trials")
    with ProcessPoolExecutor(given.jobs) as pool:
        for setting, found in zip(SETTINGS, pool.map(run, SETTINGS)):
            numbers = " · ".join(f"{value:.4f}" for value in found.values())
            print(f"{setting.design}, {setting.biases}, {setting.decided}: {numbers}", flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
