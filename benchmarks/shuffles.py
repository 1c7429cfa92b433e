"""Images per second of the shuffling cues at 224×224, next to a nearest-site search by k-d tree in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from cuebench.cues import diamond_shuffle, patch_rotation, patch_shuffle, voronoi_shuffle
from cuebench.cues.voronoi_shuffle import nearest_site

TARGET = 300
"""Images per second that every shuffle must reach on one core."""


def kd_tree_sites(height: int, width: int, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
    """Find nearest sites with scipy's k-d tree: the baseline."""
    from scipy.spatial import cKDTree

    pixels = np.indices((height, width)).reshape(2, -1).T
    return cKDTree(np.stack([ys, xs], axis=1)).query(pixels)[1].reshape(height, width)


def rate(call: Callable[[int], object], seconds: float = 1.0) -> float:
    """Return calls per second of one core's time, after a first call that is not counted."""
    call(0)
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        count += 1
        call(count)
    return count / (time.process_time() - start)


def main() -> dict[str, float]:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)
    mask = rng.integers(0, 21, (224, 224), dtype=np.uint8)
    ys, xs = rng.integers(224, size=32), rng.integers(224, size=32)
    rates = {
        "voronoi_shuffle": rate(lambda n: voronoi_shuffle(image, rng=n)),
        "voronoi_shuffle, 128 sites": rate(lambda n: voronoi_shuffle(image, sites=128, rng=n)),
        "voronoi_shuffle with mask": rate(lambda n: voronoi_shuffle(image, mask=mask, rng=n)),
        "patch_shuffle": rate(lambda n: patch_shuffle(image, rng=n)),
        "diamond_shuffle": rate(lambda n: diamond_shuffle(image, rng=n)),
        "patch_rotation": rate(lambda n: patch_rotation(image, rng=n)),
        "nearest site, running minimum": rate(lambda n: nearest_site(224, 224, ys, xs)),
        "nearest site, k-d tree (baseline)": rate(lambda n: kd_tree_sites(224, 224, ys, xs)),
    }
    print("shuffling cues, 224×224×3 uint8, one core")
    for name, value in rates.items():
        print(f"  {name:36s}{value:9.0f} images/s")
    faster = rates["nearest site, running minimum"] / rates["nearest site, k-d tree (baseline)"]
    print(f"  running minimum / k-d tree: {faster:.1f}×")
    least = min(value for name, value in rates.items() if "shuffle" in name)
    print(f"  slowest shuffle / target of {TARGET}: {least / TARGET:.1f}×")
    return rates


if __name__ == "__main__":
    main()
