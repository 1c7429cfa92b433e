"""Embeddings of ideal observers for stimuli with known instances: a planted share of triplets is decided by shape.

An instance (``cat3``) is a fixed random direction. A stimulus is the direction of its shape times √w and that of its
texture times √(1 − w), both times √(1 − ν), and a direction of its own times √ν. All have length 1, so that cosine, dot
product and distance agree. In D dimensions the similarity to the shape match exceeds that to the texture match by a
normal variable of mean (1 − ν)·δ, δ = 2w − 1, and variance (2ν² + (1 − ν)²·(1 + δ²)/2) / D; w is chosen such that it
is positive with the planted probability.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.types import Stimulus

DIMENSIONS = 512
NOISE = 0.8
"""ν: large, so that trials are nearly independent of each other."""


def has_instances(stimuli: Sequence[Stimulus]) -> bool:
    """Tell whether every stimulus says which shape and which texture it was made from."""
    return bool(stimuli) and all(s.shape_source and s.texture_source for s in stimuli)


def instance_features(stimuli: Sequence[Stimulus], share: float, seed: int) -> Array:
    """Return embeddings in which ``share`` of all triplets are decided by shape; 0 and 1 hold exactly.

    Parameters
    ----------
    stimuli : sequence of Stimulus
        With shape and texture sources.
    share : float
        Planted triplet shape bias.
    seed : int
        Of the directions.
    """
    weight, noise = planted(share)
    shape, texture = math.sqrt((1 - noise) * weight), math.sqrt((1 - noise) * (1 - weight))
    rows = [
        np.concatenate(
            [
                shape * direction(f"{seed}|shape|{s.shape_source}"),
                texture * direction(f"{seed}|texture|{s.texture_source}"),
                math.sqrt(noise) * _direction(f"{seed}|own|{s.key}"),
            ]
        )
        for s in stimuli
    ]
    return np.array(rows, np.float32).reshape(len(rows), 3 * DIMENSIONS)


def planted(share: float) -> tuple[float, float]:
    """Return w and ν for a share."""
    if share in (0.0, 1.0):
        return share, 0.0
    z, rest = NormalDist().inv_cdf(share), 1 - NOISE
    square = z * z * (2 * NOISE**2 + rest**2 / 2) / (rest**2 * (DIMENSIONS - z * z / 2))
    return (1 + math.copysign(min(1.0, math.sqrt(square)), z)) / 2, NOISE


@lru_cache(maxsize=1024)
def direction(text: str) -> Floats:
    """Return the unit vector of a name: the same in every process."""
    return _direction(text)


def _direction(text: str) -> Floats:
    digest = hashlib.sha256(text.encode()).digest()
    vector = np.random.default_rng(int.from_bytes(digest[:16], "big")).standard_normal(DIMENSIONS)
    return vector / math.sqrt(float(vector @ vector))
