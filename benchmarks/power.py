"""Is a planned difference found as often as planned? Pilot studies plan, larger studies are simulated.

    python -m benchmarks power                      100 studies for each design
    python -m benchmarks.power --studies 1000

Two observers whose shape biases differ see 1,200 images of 160 shapes and 48 textures; what their difference varies
with is taken from such studies (the mean of their components), and predicts its standard error and the chance to find
it (p ≤ .05) in other designs, which are then simulated.
"""

from __future__ import annotations

import argparse

import numpy as np

from cuebench.statistics.clustered import Sums
from cuebench.statistics.paired import Difference, paired
from cuebench.statistics.power import Components
from cuebench.statistics.ratios import Terms

PILOT = (160, 48, 1200)
DESIGNS = (
    (160, 48, 1200),
    (160, 48, 2400),
    (160, 48, 4800),
    (320, 48, 2400),
    (160, 96, 2400),
    (320, 96, 2400),
    (40, 16, 300),
    (16, 48, 600),
)
LOGITS = (-1.2, -0.9)


def study(size: tuple[int, int, int], rng: np.random.Generator) -> Difference:
    """Return the paired difference of two observers in one study: shared and own effects of both kinds of source."""
    shapes, textures, images = size
    cells = rng.choice(shapes * textures, images, replace=False)
    places = cells // textures, cells % textures
    shared = [rng.normal(0, 1, n) for n in (shapes, textures)]
    sums = []
    for start in LOGITS:
        effect = sum((s + rng.normal(0, 0.5, len(s)))[place] for s, place in zip(shared, places))
        counted = rng.random(images) < 0.65
        hits = (rng.random(images) < 1 / (1 + np.exp(-start - effect))) & counted
        sources = {"shape_sources": places[0], "texture_sources": places[1]}
        sums.append(Sums.of_ratio(Terms(hits, counted), cells, sources))  # type: ignore[arg-type]
    return paired(sums[1], sums[0])


def main(arguments: list[str] | None = None) -> None:
    """Print planned and simulated standard errors and chances."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=100)
    given = parser.parse_args(arguments or [])
    rng = np.random.default_rng(0)
    pilots = [study(PILOT, rng) for _ in range(given.studies)]
    each = [d.components for d in pilots]
    mean = Components(
        float(np.mean([c.image for c in each])),
        {kind: float(np.mean([c.sources[kind] for c in each])) for kind in each[0].sources},
        each[0].numbers,
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    rates = [float(weights @ (1 / (1 + np.exp(-start - np.sqrt(2.5) * nodes))) / weights.sum()) for start in LOGITS]
    truth = rates[1] - rates[0]
    print(f"difference {truth:.4f}; parts of the variance: { {k: f'{v:.2e}' for k, v in mean.parts().items()} }")
    for size in DESIGNS:
        found = [study(size, rng) for _ in range(given.studies)]
        numbers = {"images": size[2], "shape_sources": size[0], "texture_sources": size[1]}
        error = np.sqrt(sum(mean.parts(numbers).values()))  # type: ignore[arg-type]
        print(
            f"{size[2]:,} images of {size[0]} shapes and {size[1]} textures: standard error planned {error:.4f}, "
            f"simulated {np.std([d.value for d in found]):.4f}; chance planned "
            f"{mean.chance(truth, numbers):.3f}, simulated {np.mean([d.p <= 0.05 for d in found]):.3f}",  # type: ignore[arg-type]
            flush=True,
        )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
