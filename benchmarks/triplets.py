"""All 210,103 triplets of 1,200 × 2,048 features, against a loop over the triplets in the same run; one core.

    python benchmarks/triplets.py

Prints, for each similarity, seconds, peak memory and how many times faster than the loop. The loop does what the
definition says, triplet by triplet, on a sample of the triplets; its time is scaled to all of them.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import resource
import time

import numpy as np

from cuebench.metrics.triplets import SIMILARITIES, decide, enumerate_triplets, gram

SAMPLE = 10_000
LOOP = {
    "cosine": lambda x, y: np.dot(x, y) / (np.linalg.norm(x) * np.linalg.norm(y)),
    "dot": lambda x, y: np.dot(x, y),
    "euclid": lambda x, y: -np.linalg.norm(x - y),
}


def published_like():
    """160 shapes × 7 or 8 textures of 48: as many triplets as the published set, to a few per cent."""
    rng = np.random.default_rng(0)
    shapes = np.repeat(np.arange(160), 8)[:1200]
    textures = np.concatenate([rng.permutation(48)[:8] for _ in range(160)])[:1200]
    return shapes, textures


def main():
    found = enumerate_triplets(*published_like())
    features = np.random.default_rng(1).standard_normal((1200, 2048)).astype(np.float32)
    print(f"{len(found):,} triplets of 1,200 x 2,048 features; CPU seconds on one core")
    for kind in SIMILARITIES:
        start = time.process_time()
        ours = decide(gram(features, found), kind).shape
        fast = time.process_time() - start
        rows = np.sort(np.random.default_rng(2).permutation(len(found))[:SAMPLE])
        start = time.process_time()
        loop = []
        sim = LOOP[kind]
        for a, s, t in zip(found.anchor[rows].tolist(), found.shape[rows].tolist(), found.texture[rows].tolist()):
            anchor, shape, texture = (features[i].astype(np.float64) for i in (a, s, t))
            loop.append(sim(anchor, shape) > sim(anchor, texture))
        slow = (time.process_time() - start) * len(found) / SAMPLE
        assert ours[rows].tolist() == loop
        print(f"{kind:7s} {fast:.3f} s, loop {slow:.2f} s: {slow / fast:.0f} times faster")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
