"""Small entries of a board for tests and benchmarks: planted observers with recorded answers to a whole set."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cuebench
from cuebench.labels import label_map

CLASSES = tuple(label_map("in16").names)
STIMULI = [
    (shape, texture, f"{shape}{i}-{texture}{i}") for shape in CLASSES for texture in CLASSES for i in range(1, 6)
]
"""Shape, texture and name of 1,280 stimuli: as many as the published set has, so that the answers are complete."""


def write_entry(
    folder: Path, name: str, by_shape: float, *, seed: int = 0, rt: str = "", about: Mapping[str, Any] | None = None
) -> Path:
    """Measure an observer that answers by shape with a known probability; return its run folder.

    Parameters
    ----------
    folder : Path
        Where the run folder goes.
    name : str
        Of the observer.
    by_shape : float
        Probability of an answer by shape; the others go by texture, 5 % by neither.
    seed : int
        Of the answers.
    rt : str
        Reaction time: who has one is a person.
    about : mapping, optional
        Content of ``entry.json``.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    answers = folder.with_suffix(".csv")
    with answers.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject", "stimulus", "decision", "rt"])
        chance, other = rng.random(len(STIMULI)), rng.integers(0, len(CLASSES), len(STIMULI))
        for (shape, texture, stimulus), p, k in zip(STIMULI, chance, other):
            decision = CLASSES[k] if p > 0.95 else shape if p < 0.95 * by_shape else texture
            writer.writerow([name, stimulus, decision, rt])
    cuebench.evaluate([f"recorded:{answers}"], ["cue_conflict"], out=folder, resamples=200, workers=0)
    answers.unlink()
    if about is not None:
        (folder / "entry.json").write_text(json.dumps({"format": 1, **about}))
    return folder
