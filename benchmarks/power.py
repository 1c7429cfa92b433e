"""Is a planned difference found as often as planned? Pilot studies plan, larger studies are simulated.

    python -m benchmarks power                      100 studies for each design
    python -m benchmarks.power --studies 1000

Two observers whose shape biases differ see 1,200 images of 160 shapes and 48 textures, one of each pair, or 640 images
of 8 shapes and 8 textures, ten of each pair; what their difference varies with is taken from such studies (the mean of
their components), and predicts its standard error and the chance to find it (p ≤ .05) in other designs, which are then
simulated.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from cuebench.statistics.clustered import Sums
from cuebench.statistics.paired import Difference, paired
from cuebench.statistics.power import Components
from cuebench.statistics.ratios import Terms


class World(NamedTuple):
    """Shapes, textures, images of the pilot study and of others; log odds; spread of effects of sources and pairs."""

    pilot: tuple[int, int, int]
    designs: tuple[tuple[int, int, int], ...]
    logits: tuple[float, float]
    own: float = 0.5
    pair: float = 0.0


WORLDS = (
    World(
        (160, 48, 1200),
        ((160, 48, 1200), (160, 48, 2400), (160, 48, 4800), (320, 48, 2400), (160, 96, 2400), (320, 96, 2400),
         (40, 16, 300), (16, 48, 600)),
        (-1.2, -0.85),
    ),
    World((8, 8, 640), ((8, 8, 640), (8, 8, 1280), (8, 16, 1280), (16, 16, 2560)), (-1.0, 0.0), 0.2, 1.0),
)  # fmt: skip


def study(world: World, size: tuple[int, int, int], rng: np.random.Generator) -> Difference:
    """Return the paired difference of two observers in one study: shared and own effects of sources, own of pairs."""
    shapes, textures, images = size
    pairs = rng.permutation(shapes * textures)[:images]
    cells = np.tile(pairs, -(-images // len(pairs)))[:images]
    places = cells // textures, cells % textures
    shared = [rng.normal(0, 1, n) for n in (shapes, textures)]
    sums = []
    for start in world.logits:
        effect = sum((s + rng.normal(0, world.own, len(s)))[place] for s, place in zip(shared, places))
        effect = effect + rng.normal(0, world.pair, shapes * textures)[cells]
        counted = rng.random(images) < 0.65
        hits = (rng.random(images) < 1 / (1 + np.exp(-start - effect))) & counted
        sources = {"shape_sources": places[0], "texture_sources": places[1]}
        sums.append(Sums.of_ratio(Terms(hits, counted), np.arange(images), sources))  # type: ignore[arg-type]
    return paired(sums[1], sums[0])


def mean(each: list[Components]) -> Components:
    """Return the mean of components of the same design."""
    return Components(
        float(np.mean([c.image for c in each])),
        {kind: float(np.mean([c.sources[kind] for c in each])) for kind in each[0].sources},
        each[0].numbers,
        float(np.mean([c.pair for c in each])),
        each[0].pairs,
        float(np.median([c.freedom for c in each])),
    )


def main(arguments: list[str] | None = None) -> None:
    """Print planned and simulated standard errors and chances."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=100)
    given = parser.parse_args(arguments or [])
    rng = np.random.default_rng(0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for world in WORLDS:
        components = mean([study(world, world.pilot, rng).components for _ in range(given.studies)])
        spread = np.sqrt(2 * (1 + world.own**2) + world.pair**2)
        rates = [float(weights @ (1 / (1 + np.exp(-start - spread * nodes))) / weights.sum()) for start in world.logits]
        truth = rates[1] - rates[0]
        parts = {kind: f"{v:.2e}" for kind, v in components.parts().items()}
        print(f"pilot {world.pilot}: difference {truth:.4f}; parts of the variance: {parts}")
        for size in world.designs:
            found = [study(world, size, rng) for _ in range(given.studies)]
            numbers = {"images": size[2], "shape_sources": size[0], "texture_sources": size[1]}
            error = np.sqrt(sum(components.parts(numbers).values()))  # type: ignore[arg-type]
            print(
                f"{size[2]:,} images of {size[0]} shapes and {size[1]} textures: standard error planned {error:.4f}, "
                f"simulated {np.std([d.value for d in found]):.4f}; chance planned "
                f"{components.chance(truth, numbers):.3f}, simulated {np.mean([d.p <= 0.05 for d in found]):.3f}",  # type: ignore[arg-type]
                flush=True,
            )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
